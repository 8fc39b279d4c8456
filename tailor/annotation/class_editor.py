"""Changing the classes while people label."""

from __future__ import annotations

from typing import Any

from tailor.annotation.annotators import check_annotator
from tailor.annotation.items import has_answer
from tailor.annotation.planner import Planner
from tailor.common.checks import check_whole
from tailor.run.class_merges import Merge
from tailor.run.session import Session
from tailor.run.state import RunState
from tailor.selection.class_edits import merged


class ClassEditor:
    """Adds, renames and merges classes, for everybody who labels; each call returns the class names
    after it. Examples in hand stay in hand. Safe to call from many threads.
    """

    def __init__(self, session: Session, planner: Planner) -> None:
        self._session = session
        self._planner = planner

    def add(self, name: str, by: str) -> tuple[str, ...]:
        check_annotator(by)
        self._session.add_class(name, by=by)
        return self._classes_after_edit()

    def rename(
        self,
        old: str,
        new: str,
        by: str,
    ) -> tuple[str, ...]:
        check_annotator(by)
        self._session.rename_class(old, new, by=by)
        return self._classes_after_edit()

    def merge(
        self,
        old: str,
        into: str,
        by: str,
    ) -> tuple[str, ...]:
        """What was labelled `old` is labelled `into`, and `old` is no class any more."""
        check_annotator(by)
        self._session.merge_classes(old, into, by=by)
        return self._classes_after_edit()

    def undo_merge(self, event: int, by: str) -> tuple[str, ...]:
        """Take back the merge with this event number; InputError unless it is the latest."""
        event = check_whole(event, "event")
        check_annotator(by)
        self._session.undo_merge(event, by=by)
        return self._classes_after_edit()

    def _classes_after_edit(self) -> tuple[str, ...]:
        self._planner.forget()  # a round that is ready was planned for the classes before
        return self._session.run_state.task.classes

    def labels_to_merge(self, old: str, into: str) -> tuple[int, int]:
        """How many labels of `old` a merge would move, and how many `into` has already; InputError
        where the merge can't be done.
        """
        with self._session.lock:
            run_state = self._session.run_state
            merged(run_state.task, old, into)
            counts = run_state.counts()
            return counts[old], counts[into]

    def last_merge(self) -> dict[str, Any] | None:
        """The merge that can be taken back, or None.

        Returns its "event" number, the names "old" and "into" (as it is called now), "by", how many
        "labels" would come back, and how many answers "since" would stay as they are.
        """
        with self._session.lock:
            run_state = self._session.run_state
            if not run_state.merges:
                return None
            merge = run_state.merges[-1]
            # The merged class is gone from the list: those after it moved up by one.
            into = merge.target
            if merge.target > merge.source:
                into -= 1
            return {
                "event": merge.event,
                "old": merge.old,
                "into": run_state.task.classes[into],
                "by": merge.by,
                "labels": _labels_coming_back(merge),
                "since": _answered_since(run_state, merge),
            }


def _labels_coming_back(merge: Merge) -> int:
    """How many labels of the merged class nobody has changed since."""
    count = 0
    for position in merge.labels:
        if (position, None) not in merge.since:
            count += 1
    return count


def _answered_since(run_state: RunState, merge: Merge) -> int:
    """How many examples were answered after the merge and still are."""
    positions = set()
    for position, annotator in merge.since:
        if has_answer(run_state, position, annotator):
            positions.add(position)
    return len(positions)
