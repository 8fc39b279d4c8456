"""The state of a run, as its events have made it. Only tailor.run.event_applier and
tailor.run.class_merges change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.run.arm_statistics import ArmStatistics
from tailor.run.consensus import Consensus, majority
from tailor.run.events import ExamplesAsked
from tailor.run.holdout import class_shares
from tailor.run.records import NO_ARM_NAMES, PickRecord, RoundRecord
from tailor.run.settings import Settings
from tailor.selection.label_table import LabelTable
from tailor.selection.learner import Learner

if TYPE_CHECKING:
    from tailor.run.class_merges import Merge


class RunState:
    """A learner with its label table, and what a run knows beyond them.

    Facts of an example stand in the label table, which the learner shares; `waiting`, `asked_in`
    and `arm_statistics` are indexes of it.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.task = settings.task
        self.event = 0  # the number of the last event that was applied
        self.ids: list[str] = []
        self.position: dict[str, int] = {}
        self.learner = Learner(
            self.task,
            LabelTable(self.task, 0),
            strategies=settings.strategies or None,
            selector=settings.selector,
            reward=settings.reward,
            rounds=settings.rounds,
            batch=settings.batch,
            seed=settings.seed,
        )
        self.aside: dict[int, str] = {}  # examples that can't be read, with the reason
        self.vanished: list[int] = []  # away from the pool for now
        self.files: dict[str, str] = {}  # whole files of the pool that can't be opened
        self.rounds: list[RoundRecord] = []
        self.asked_in: list[list[int]] = []  # for each round: the positions that were asked in it
        self.waiting: dict[int, None] = {}  # asked and neither answered nor skipped, oldest first
        self.answered_by: dict[int, tuple[str | None, float]] = {}  # (annotator, time)
        self.consensus = Consensus()
        self.arm_statistics = ArmStatistics(self.task.size)
        self.merges: list[Merge] = []  # that can be taken back, the latest last

    def copy(self) -> RunState:
        """A state of its own, as this one stands now; no round is open in it."""
        twin = copy(self)
        twin.learner = self.learner.copy()
        twin.aside = dict(self.aside)
        twin.rounds = [copy(record) for record in self.rounds]
        # only the last round's list grows
        if self.asked_in:
            twin.asked_in = [*self.asked_in[:-1], list(self.asked_in[-1])]
        else:
            twin.asked_in = []
        twin.waiting = dict(self.waiting)
        twin.answered_by = dict(self.answered_by)
        twin.consensus = self.consensus.copy()
        twin.arm_statistics = self.arm_statistics.copy()
        twin.merges = [merge.copy() for merge in self.merges]
        return twin

    @property
    def label_table(self) -> LabelTable:
        """A row an example: label, pick, hold-out or not."""
        return self.learner.label_table

    @property
    def current(self) -> RoundRecord | None:
        """The round that was opened last."""
        return self.rounds[-1] if self.rounds else None

    # ------------------------------------------------------------------ changes

    def add_examples(self, ids: list[str], for_holdout: np.ndarray) -> None:
        """New ids join at the end. for_holdout (n,) bool: which of them the hold-out drew."""
        first = len(self.ids)
        positions = range(first, first + len(ids))
        # new objects: copies of this state share the old ones
        self.position = self.position | dict(zip(ids, positions))
        self.ids = self.ids + ids
        self.label_table.grow(len(ids), for_holdout)

    def enter_picks(self, picks: ExamplesAsked) -> None:
        """Picks of the current round are asked and wait for their answers."""
        record = self.rounds[-1]
        record.asked += len(picks.positions)
        positions = picks.positions.tolist()
        self.asked_in[-1] += positions
        predicted = picks.predicted
        self.label_table.picks.enter(
            picks.positions,
            record.number,
            picks.arms,
            record.chances_of(picks.arms),
            None if predicted is None else predicted.astype(np.float32),
            picks.slots,
        )
        for position, arm in zip(positions, picks.arms.tolist()):
            self.waiting[position] = None
            self.arm_statistics.asked(arm)

    def label(self, positions: np.ndarray, classes: Sequence[Sequence[int]]) -> None:
        """These examples have these classes, whatever they had before."""
        labels = np.zeros((len(positions), self.task.size), np.float32)
        for row, listed in enumerate(classes):
            labels[row, listed] = 1
        self.count_found(positions, -1)
        self.learner.tell(positions, labels)
        self.count_found(positions, 1)
        self._update_waiting(positions)

    def unlabel(self, positions: np.ndarray) -> None:
        """These examples have no answer."""
        self.count_found(positions, -1)
        self.learner.withdraw(positions)
        self._update_waiting(positions)
        for position in positions.tolist():
            self.answered_by.pop(position, None)

    def skip(self, positions: np.ndarray) -> None:
        """These examples can't be answered."""
        self.learner.skip(positions)
        self._update_waiting(positions)

    def offer_again(self, positions: np.ndarray) -> None:
        """These skipped examples may be asked again."""
        self.learner.offer_again(positions)
        self._update_waiting(positions)

    def decide(self, position: int) -> None:
        """Count the votes on an example, where all are in and nobody has settled the matter."""
        consensus = self.consensus
        if position in consensus.settled:
            return
        if not consensus.all_in(position):
            consensus.open[position] = None
            return
        votes = consensus.on(position)
        label = majority(self.task, votes.values())
        consensus.open.pop(position, None)
        consensus.disputed.pop(position, None)
        positions = np.array([position])
        if label is not None:
            self.label(positions, [label])
            agree = sorted(name for name, vote in votes.items() if vote.classes == label)
            annotators = ", ".join(agree or sorted(votes))
            latest = max(vote.at for vote in votes.values())
            self.answered_by[position] = (annotators, latest)
            return
        self.unlabel(positions)
        if all(vote.classes is None for vote in votes.values()):
            self.skip(positions)
        else:
            consensus.open[position] = None
            consensus.disputed[position] = None

    def count_found(self, positions: np.ndarray, sign: int) -> None:
        """Add the labels of these examples to what their arms found (sign 1), or take them off."""
        table = self.label_table
        labelled = positions[table.has_label(positions)]
        labels = table.labels_of(labelled)
        for position, label in zip(labelled.tolist(), labels):
            pick = table.picks.get(position)
            if pick is not None:
                self.arm_statistics.count(pick.arm, label, sign)

    def _update_waiting(self, positions: np.ndarray) -> None:
        table = self.label_table
        is_answered = table.has_label(positions) | table.answers.skipped[positions]
        is_waiting = table.picks.stands[positions] & ~is_answered
        for position, waits in zip(positions.tolist(), is_waiting.tolist()):
            if waits:
                self.waiting[position] = None
            else:
                self.waiting.pop(position, None)

    # ------------------------------------------------------------------ what is known

    def label_of(self, position: int) -> np.ndarray | None:
        """(K,) float32: the label that counts; None where there is none."""
        table = self.label_table
        if not table.has_label(position):
            return None
        label: np.ndarray = table.labels_of(np.array([position]))[0]
        return label

    def is_skipped(self, position: int) -> bool:
        return bool(self.label_table.answers.skipped[position])

    def arm_name(self, arm: int) -> str:
        """The name of an arm; below 0: "hold-out", "random start" or "(nobody)"."""
        if arm < 0:
            return NO_ARM_NAMES[arm]
        return self.learner.arms[arm].name

    def pick_record(self, position: int) -> PickRecord | None:
        """Why an example was asked for; None where nobody asked."""
        pick = self.label_table.picks.get(position)
        if pick is None:
            return None
        record = self.rounds[pick.round]
        return PickRecord(
            id=self.ids[position],
            round=pick.round,
            slot=pick.slot,
            arm=self.arm_name(pick.arm),
            chance=record.chance(pick.arm),
            mean=record.belief(pick.arm),
            weights=record.weights,
            predicted=self.label_table.picks.prediction_of(position),
        )

    def answered(self) -> int:
        """How many examples have a label, the hold-out's too."""
        return self.label_table.total.examples

    def counts(self) -> dict[str, int]:
        """Labels of each class, the hold-out's too."""
        counts = self.label_table.total.by_class.tolist()
        return dict(zip(self.task.classes, counts))

    def summary(self) -> dict[str, Any]:
        """What `tailor status` shows."""
        table = self.label_table
        unreadable = {self.ids[p]: reason for p, reason in sorted(self.aside.items())}
        vanished_ids = [self.ids[p] for p in self.vanished]
        vanished = dict.fromkeys(vanished_ids, "it has vanished from the pool")
        holdout_labels = table.labels_of(table.holdout_labelled)
        return {
            "examples": len(self.ids),
            "answered": self.answered(),
            "holdout": table.holdout_total.examples,
            "waiting": len(self.waiting),
            "skipped": int(table.answers.skipped.sum()),
            "aside": unreadable | vanished,
            "shares": class_shares(self.task.classes, holdout_labels),
            "files": self.files,
            "counts": self.counts(),
            "round": self.current.number if self.current else None,
            "estimates": [record.estimate for record in self.rounds if record.estimate],
        }
