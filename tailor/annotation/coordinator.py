"""One run, open to any number of annotators at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tailor.annotation.act_history import ActHistory
from tailor.annotation.annotators import Annotators, check_annotator
from tailor.annotation.answer_collector import AnswerCollector
from tailor.annotation.assignment import Assignment
from tailor.annotation.batch_progress import BatchProgress
from tailor.annotation.class_editor import ClassEditor
from tailor.annotation.items import (
    Item,
    NextItems,
    Receipt,
    has_answer,
    make_item,
)
from tailor.annotation.leases import Leases
from tailor.annotation.model_insight import ModelInsight
from tailor.annotation.model_watch import ModelWatch
from tailor.annotation.overview import Overview
from tailor.annotation.pick_explanation import explain_pick
from tailor.annotation.planner import Planner
from tailor.annotation.review import Review
from tailor.annotation.roles import OWNER
from tailor.common.checks import (
    check_function,
    check_instance,
    check_number,
    check_whole,
)
from tailor.errors import InputError
from tailor.run.project import Project
from tailor.run.session import Session
from tailor.run.state import RunState

#: examples that are handed to one annotator at the most
MOST_IN_HAND = 1000


class Coordinator:
    """Hands examples out to annotators, takes their answers in and shows how it goes.

    Safe to call from many threads. No example goes to two annotators, unless overlap asks for it:
    `overlap_share` of the examples, drawn by a hash of their ids, go to `overlap` annotators each.
    A lease lasts `lease` seconds from its holder's last sign of life.

    No call waits for training: rounds are prepared in the background (see Planner) once start() was
    called. As a context manager it starts on entering and closes at the end.

    session       the run's session, whose lock every call takes for a moment
    planner       prepares rounds
    review        looks through what is labelled, with agreement and disagreements
    class_editor  adds, renames and merges classes
    act_history   who has decided what over others or for all, and takes it back
    model_insight how good the model is, whether to go on, and what is to be reached
    """

    def __init__(
        self,
        source: Project | Session,
        *,
        overlap: int = 1,
        overlap_share: float = 0.0,
        lease: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """clock is what leases end by: it must never jump, whatever is done to the machine's time
        of day. wall_clock is what events are dated by.
        """
        check_instance(
            source,
            (Project, Session),
            "source",
            "a Project or a Session",
        )
        overlap = check_whole(overlap, "overlap")
        _check_overlap_share(overlap_share)
        _check_lease(lease)
        check_function(clock, "clock")
        check_function(wall_clock, "wall_clock")
        # What annotators need not know: a session alone says nothing of where its files lie.
        private_folders: Sequence[Path] = ()
        facts_folder = None
        if isinstance(source, Session):
            self.session = source
        else:
            self.session = source.session()
            private_folders = source.folders
            facts_folder = source.folder
        self._lock = self.session.lock
        self._closed = False
        self._leases = Leases(lease, clock)
        self._annotators = Annotators(self.session.store, wall_clock)
        self._batch = BatchProgress(self.session, self._leases)
        self.model_watch = ModelWatch(self.session, facts_folder)
        self.planner = Planner(
            self.session,
            self._annotators.pace,
            self._batch.unassigned,
            folders=private_folders,
            model_watch=self.model_watch,
        )
        self._assignment = Assignment(
            self.session,
            self._leases,
            self.planner,
            overlap=overlap,
            overlap_share=overlap_share,
        )
        self._answer_collector = AnswerCollector(
            self.session,
            leases=self._leases,
            assignment=self._assignment,
            batch=self._batch,
            annotators=self._annotators,
            planner=self.planner,
            wall_clock=wall_clock,
        )
        self._overview = Overview(
            self.session,
            planner=self.planner,
            leases=self._leases,
            annotators=self._annotators,
            batch=self._batch,
        )
        self.review = Review(self.session, self.model_watch)
        self.model_insight = ModelInsight(self.session, self.model_watch, self.planner)
        self.class_editor = ClassEditor(self.session, self.planner)
        self.act_history = ActHistory(self.session, self.planner, self._answer_collector.rules)

    def start(self) -> None:
        """Begin to prepare rounds in the background."""
        self.planner.start()

    def close(self) -> None:
        """Stop preparing and close the store. Every answer is safe already. May be called again."""
        if not self._closed:
            self._closed = True
            self.planner.close()
            with self._lock:
                self.session.store.close()

    def __enter__(self) -> Coordinator:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names of today."""
        return self.session.run_state.task.classes

    @property
    def kind(self) -> str:
        """The kind of task: "multi-class" or "multi-label"."""
        return self.session.run_state.task.kind

    def run_state(self) -> RunState:
        """A copy of the run's state as it stands now, to read or export at leisure."""
        with self._lock:
            return self.session.run_state.copy()

    # ------------------------------------------------------------------ labelling

    def next(self, annotator: str, n: int = 1) -> NextItems:
        """Up to n examples for an annotator: first those already in hand, so that a reload gives
        the same.
        """
        check_annotator(annotator)
        n = check_whole(n, "n", most=MOST_IN_HAND)
        with self._lock:
            self._leases.heartbeat(annotator)
            self._leases.expire()
            positions, shortage = self._assignment.assign(annotator, n)
            self.planner.wake()
            # With something in hand, what is lacking need not be told yet.
            if shortage is not None and not positions:
                return NextItems((), shortage.state, shortage.reason)
            items = []
            for position in positions:
                items.append(self._item(position))
            return NextItems(tuple(items), "ready")

    def answer(
        self,
        annotator: str,
        id: str,
        label: Sequence[str] | None,
        *,
        role: str = OWNER,
        unasked: bool = True,
        was_asked: bool = False,
    ) -> Receipt:
        """Take an answer in: class names (multi-class: exactly one; multi-label: none is an answer
        too), or None to skip.

        It is in the store when this returns. Answering again corrects: one's own answer, and
        another's where the role may. What was never asked of this annotator counts only where the
        role may tell it unasked, and nothing counts that would exceed the budget. Raises
        AnswerRefused (answer_rules).

        role       what the annotator may do; whoever runs the program is owner
        unasked    False: what was not asked of this annotator is refused, whatever the role may
        was_asked  the caller has proof that this annotator was asked, from before a restart say
        """
        return self._answer_collector.collect(
            annotator,
            id,
            label,
            role=role,
            unasked=unasked,
            was_asked=was_asked,
        )

    def settle(
        self,
        id: str,
        label: Sequence[str] | None,
        by: str,
        *,
        role: str = OWNER,
    ) -> Receipt:
        """Take in the label that counts, whatever the votes say. Raises NotAllowed where the role
        may not.
        """
        return self._answer_collector.collect(
            by,
            id,
            label,
            settles=True,
            role=role,
        )

    def history(self, annotator: str, n: int = 20) -> list[Item]:
        """An annotator's latest answers, newest first; skips too, but nothing whose answer was
        withdrawn.
        """
        check_annotator(annotator)
        n = check_whole(n, "n")
        with self._lock:
            items: list[Item] = []
            for position in self._annotators.recent(annotator):
                if len(items) == n:
                    break
                # An answer that was withdrawn since is left out.
                if has_answer(self.session.run_state, position, annotator):
                    items.append(self._item(position))
            return items

    def release(self, annotator: str) -> int:
        """End the leases of an annotator who leaves; returns how many there were."""
        check_annotator(annotator)
        with self._lock:
            return len(self._leases.release(annotator))

    def heartbeat(self, annotator: str) -> None:
        """Prolong the leases of an annotator who is still there."""
        check_annotator(annotator)
        with self._lock:
            self._leases.heartbeat(annotator)

    # ------------------------------------------------------------------ watching

    def overview(self) -> dict[str, Any]:
        """Progress, pace, classes, arms, accuracy and annotators, as plain JSON. Cheap: nothing is
        counted anew.
        """
        with self._lock:
            return self._overview.as_json()

    def why(self, id: str) -> dict[str, Any]:
        """Why an example was chosen, in numbers and in sentences."""
        with self._lock:
            position = self.session.position_of(id)
            return explain_pick(self.session.run_state, position)

    def item(self, id: str) -> Item:
        """One example as an annotator sees it."""
        with self._lock:
            return self._item(self.session.position_of(id))

    def _item(self, position: int) -> Item:
        return make_item(self.session.run_state, position, self.session.probs)


def _check_overlap_share(overlap_share: float) -> None:
    needed = "a share from 0 to 1 is needed"
    share = check_number(overlap_share, "overlap_share", needed)
    if not 0 <= share <= 1:
        raise InputError(f"overlap_share is {overlap_share}: {needed}")


def _check_lease(lease: float) -> None:
    needed = "more than 0 seconds are needed"
    seconds = check_number(lease, "lease", needed)
    if seconds <= 0:
        raise InputError(f"lease is {lease}: {needed}")
