"""Taking in what annotators did: answers, corrections, skips and deletions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tailor.label_studio.answers import Answer, settled
from tailor.label_studio.board import Board
from tailor.session import SKIP, Session

#: ends the name under which an annotator of Label Studio is kept
VIA = " (Label Studio)"


class Intake:
    """Makes the run say what the annotations say.

    An answer that came into the run by another way stays as long as no annotation is newer. A label whose task was
    deleted stays too: what was known is known; to take it back, delete the annotation.
    """

    def __init__(self, session: Session, board: Board, say: Callable[[str], None]) -> None:
        self.session, self.board, self._say = session, board, say
        self._skipped = self._skipped_before()  # in Label Studio, that is
        self._said: set[tuple[str, str]] = set()

    def take(self, examples: Iterable[str]) -> None:
        """Compare these, which are in the run, and tell what differs."""
        journal = self.session.journal
        answers: dict[str, dict[str, Any]] = {}
        withdrawn: list[str] = []
        for one in sorted(set(examples) & self.board.shown.keys()):
            answer, label, (ours, at) = settled(self.board.annotations(one)), self._label(one), self._told_here(one)
            skipped = journal.is_skipped(journal.position[one])
            if answer is None:
                if one in self._skipped if skipped else label is not None and ours:
                    withdrawn.append(one)
            elif answer.classes is None:
                if label is not None and ours:
                    withdrawn.append(one)
                if ours if label is not None else not skipped:
                    answers.setdefault(self._name(answer), {})[one] = SKIP
            elif answer.classes != label and (label is None or ours or answer.at > at):
                given = self._given(one, answer.classes)
                if given is not SKIP:
                    answers.setdefault(self._name(answer), {})[one] = given
        if withdrawn:
            self.session.withdraw(withdrawn)
            self._skipped -= set(withdrawn)
        for by, told in answers.items():
            self.session.tell(told, by=by)
            self._skipped = (self._skipped - told.keys()) | {one for one, given in told.items() if given is SKIP}

    def _given(self, one: str, classes: tuple[str, ...]) -> Any:
        """An answer as `tell` takes it; SKIP, with a word about it, where the run can't have it."""
        task = self.session.journal.task
        unknown = [name for name in classes if name not in task.classes]
        if unknown or (task.kind == "multi-class" and len(classes) != 1):
            what = f"{unknown[0]!r}, which is no class of this run" if unknown else f"{len(classes)} classes"
            if (one, what) not in self._said:
                self._say(f"{one} was annotated with {what}: it is left out.")
                self._said.add((one, what))
            return SKIP
        return list(classes) if task.kind == "multi-label" else classes[0]

    def unknown_classes(self, examples: Iterable[str]) -> set[str]:
        """Names in the annotations of these that the run does not know."""
        chosen = (a.classes or () for one in examples for a in self.board.annotations(one))
        return {name for classes in chosen for name in classes} - set(self.session.journal.task.classes)

    # ------------------------------------------------------------------ what the run says

    def _label(self, one: str) -> tuple[str, ...] | None:
        journal = self.session.journal
        label = journal.label_of(journal.position[one])
        return None if label is None else tuple(sorted(journal.task.classes[k] for k in np.flatnonzero(label).tolist()))

    def _told_here(self, one: str) -> tuple[bool, float]:
        """(whether its label came from Label Studio, when it came)"""
        by, at = self.session.journal.who.get(self.session.journal.position[one], (None, 0.0))
        return (by or "").endswith(VIA), at

    def _name(self, answer: Answer) -> str:
        return self.board.studio.name_of(answer.who) + VIA

    def _skipped_before(self) -> set[str]:
        found: set[int] = set()
        for event in self.session.store.events():
            for kind, body in event.body["events"] if event.kind == "several" else [(event.kind, event.body)]:
                if kind == "told":
                    found -= {position for position, _ in body["answers"]}
                    if (body.get("by") or "").endswith(VIA):
                        found |= set(body["skipped"])
                elif kind in ("withdrawn", "again"):
                    found -= set(body["positions"])
        return {self.session.journal.ids[p] for p in found}
