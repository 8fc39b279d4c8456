"""The state of a run, as its events have made it. Only tailor.run.event_applier, tailor.run.acts,
tailor.run.class_merges and tailor.run.merge_restoring change it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.run.arm_statistics import ArmStatistics
from tailor.run.consensus import Consensus, Vote, majority
from tailor.run.goals import Goals
from tailor.run.holdout import class_shares
from tailor.run.records import NO_ARM_NAMES, PickRecord, RoundRecord
from tailor.run.round_events import ExamplesAsked
from tailor.run.settings import Settings
from tailor.selection.label_table import LabelTable
from tailor.selection.learner import Learner

if TYPE_CHECKING:
    from tailor.run.acts import Act
    from tailor.run.merge_memory import Merge


class RunState:
    """A learner with its label table, and what a run knows beyond them.

    Facts of an example stand in the label table, which the learner shares; `waiting`, `asked_in`
    and `arm_statistics` are indexes of it.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.task = settings.task
        #: the number of the last event that was applied
        self.event = 0
        self.ids: list[str] = []
        self.position: dict[str, int] = {}
        self.learner = _new_learner(settings)
        #: examples that can't be read, with the reason
        self.aside: dict[int, str] = {}
        #: away from the pool for now
        self.vanished: list[int] = []
        #: whole files of the pool that can't be opened, with the reason
        self.files: dict[str, str] = {}
        self.rounds: list[RoundRecord] = []
        #: for each round: the positions that were asked in it
        self.asked_in: list[list[int]] = []
        #: asked and neither answered nor skipped, oldest first
        self.waiting: dict[int, None] = {}
        #: position -> (annotator, time)
        self.answered_by: dict[int, tuple[str | None, float]] = {}
        self.consensus = Consensus()
        self.arm_statistics = ArmStatistics(self.task.size)
        #: merges that can be taken back, the latest last
        self.merges: list[Merge] = []
        #: what was decided over others or changed for all, the latest last
        self.acts: list[Act] = []
        #: positions that an act was ever about
        self.acted_on: set[int] = set()
        #: set while labelling; frozen, so copies share it
        self.goals = Goals()

    def copy(self) -> RunState:
        """A state of its own, as this one stands now; no round is open in it."""
        # What is replaced and never changed in place (ids, position, vanished, files) is shared.
        twin = copy(self)
        twin.learner = self.learner.copy()
        twin.aside = dict(self.aside)
        twin.rounds = [copy(record) for record in self.rounds]
        twin.asked_in = list(self.asked_in)
        # only the last round's list grows
        if twin.asked_in:
            twin.asked_in[-1] = list(twin.asked_in[-1])
        twin.waiting = dict(self.waiting)
        twin.answered_by = dict(self.answered_by)
        twin.consensus = self.consensus.copy()
        twin.arm_statistics = self.arm_statistics.copy()
        twin.merges = [merge.copy() for merge in self.merges]
        twin.acts = list(self.acts)
        twin.acted_on = set(self.acted_on)
        return twin

    @property
    def label_table(self) -> LabelTable:
        """A row an example: label, pick, hold-out or not."""
        return self.learner.label_table

    @property
    def current(self) -> RoundRecord | None:
        """The round that was opened last."""
        if not self.rounds:
            return None
        return self.rounds[-1]

    # ------------------------------------------------------------------ changes

    def add_examples(self, ids: list[str], for_holdout: np.ndarray) -> None:
        """New ids join at the end. for_holdout (n,) bool: which of them the hold-out drew."""
        first = len(self.ids)
        count = len(ids)
        positions = range(first, first + count)
        new_positions = dict(zip(ids, positions))
        # new objects: copies of this state share the old ones
        self.position = self.position | new_positions
        self.ids = self.ids + ids
        self.label_table.grow(count, for_holdout)

    def enter_picks(self, picks: ExamplesAsked) -> None:
        """Picks of the current round are asked and wait for their answers."""
        record = self.rounds[-1]
        positions = picks.positions.tolist()
        record.asked += len(positions)
        self.asked_in[-1] += positions
        # Half the precision is enough in the store; the table counts in float32.
        predicted = picks.predicted
        if predicted is not None:
            predicted = predicted.astype(np.float32)
        self.label_table.picks.enter(
            picks.positions,
            record.number,
            picks.arms,
            record.chances_of(picks.arms),
            predicted,
            picks.slots,
        )
        for position in positions:
            self.waiting[position] = None
        for arm in picks.arms.tolist():
            self.arm_statistics.asked(arm)

    def label(self, positions: np.ndarray, classes: Sequence[Sequence[int]]) -> None:
        """These examples have these classes, whatever they had before."""
        shape = (len(positions), self.task.size)
        labels = np.zeros(shape, np.float32)
        for row, classes_of_row in enumerate(classes):
            labels[row, classes_of_row] = 1
        # Before the change and after it: the old labels go, the new ones come.
        self.count_found(positions, -1)
        self.learner.tell(positions, labels)
        self.count_found(positions, 1)
        _update_waiting(self.waiting, self.label_table, positions)

    def unlabel(self, positions: np.ndarray) -> None:
        """These examples have no answer."""
        self.count_found(positions, -1)
        self.learner.withdraw(positions)
        _update_waiting(self.waiting, self.label_table, positions)
        for position in positions.tolist():
            self.answered_by.pop(position, None)

    def skip(self, positions: np.ndarray) -> None:
        """These examples can't be answered."""
        self.learner.skip(positions)
        _update_waiting(self.waiting, self.label_table, positions)

    def offer_again(self, positions: np.ndarray) -> None:
        """These skipped examples may be asked again."""
        self.learner.offer_again(positions)
        _update_waiting(self.waiting, self.label_table, positions)

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
        if label is None:
            _leave_open(self, position, votes)
        else:
            _take_majority(self, position, label, votes)

    def count_found(self, positions: np.ndarray, sign: int) -> None:
        """Add the labels of these examples to what their arms found (sign 1), or take them off."""
        table = self.label_table
        has_label = table.has_label(positions)
        labelled = positions[has_label]
        labels = table.labels_of(labelled)
        for position, label in zip(labelled.tolist(), labels):
            pick = table.picks.get(position)
            # Told without being asked for: no arm found it.
            if pick is None:
                continue
            self.arm_statistics.count(pick.arm, label, sign)

    # ------------------------------------------------------------------ what is known

    def label_of(self, position: int) -> np.ndarray | None:
        """(K,) float32: the label that counts; None where there is none."""
        table = self.label_table
        if not table.has_label(position):
            return None
        positions = np.array([position])
        rows = table.labels_of(positions)
        label: np.ndarray = rows[0]
        return label

    def is_skipped(self, position: int) -> bool:
        answers = self.label_table.answers
        return bool(answers.skipped[position])

    def arm_name(self, arm: int) -> str:
        """The name of an arm; below 0: "hold-out", "random start" or "(nobody)"."""
        if arm < 0:
            return NO_ARM_NAMES[arm]
        return self.learner.arms[arm].name

    def pick_record(self, position: int) -> PickRecord | None:
        """Why an example was asked for; None where nobody asked."""
        picks = self.label_table.picks
        pick = picks.get(position)
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
            predicted=picks.prediction_of(position),
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
        skipped = table.answers.skipped.sum()
        holdout_labels = table.labels_of(table.holdout_labelled)
        shares = class_shares(self.task.classes, holdout_labels)
        current_round = None
        if self.current is not None:
            current_round = self.current.number
        estimates = []
        for record in self.rounds:
            if record.estimate is not None:
                estimates.append(record.estimate)
        return {
            "examples": len(self.ids),
            "answered": self.answered(),
            "holdout": table.holdout_total.examples,
            "waiting": len(self.waiting),
            "skipped": int(skipped),
            "aside": _aside_by_id(self),
            "shares": shares,
            "files": self.files,
            "counts": self.counts(),
            "round": current_round,
            "estimates": estimates,
        }


def _new_learner(settings: Settings) -> Learner:
    """One that knows of no example yet."""
    task = settings.task
    return Learner(
        task,
        LabelTable(task, 0),
        strategies=settings.strategies or None,
        selector=settings.selector,
        reward=settings.reward,
        cover=settings.cover,
        rounds=settings.rounds,
        batch=settings.batch,
        seed=settings.seed,
    )


def _update_waiting(waiting: dict[int, None], table: LabelTable, positions: np.ndarray) -> None:
    """Enter these examples among those that wait for an answer, or take them out, as the table
    has them now.
    """
    is_skipped = table.answers.skipped[positions]
    is_answered = table.has_label(positions) | is_skipped
    is_asked = table.picks.stands[positions]
    is_waiting = is_asked & ~is_answered
    for position in positions[~is_waiting].tolist():
        waiting.pop(position, None)
    for position in positions[is_waiting].tolist():
        waiting[position] = None


def _take_majority(
    run_state: RunState,
    position: int,
    label: tuple[int, ...],
    votes: Mapping[str, Vote],
) -> None:
    """The label that more than half of the votes are for counts from now on."""
    positions = np.array([position])
    run_state.label(positions, [label])
    annotators = _who_gave(label, votes)
    times = [vote.at for vote in votes.values()]
    run_state.answered_by[position] = (annotators, max(times))


def _leave_open(run_state: RunState, position: int, votes: Mapping[str, Vote]) -> None:
    """All votes are in, and no label has won: it is skipped where all have skipped it, disputed
    otherwise.
    """
    positions = np.array([position])
    # A vote that was changed may have undone an earlier majority.
    run_state.unlabel(positions)
    all_skipped = all(vote.classes is None for vote in votes.values())
    if all_skipped:
        run_state.skip(positions)
        return
    run_state.consensus.open[position] = None
    run_state.consensus.disputed[position] = None


def _who_gave(label: tuple[int, ...], votes: Mapping[str, Vote]) -> str:
    """The people whose votes are the label; all of them where it is nobody's, which can be in a
    multi-label task.
    """
    agreeing = []
    for name, vote in votes.items():
        if vote.classes == label:
            agreeing.append(name)
    if not agreeing:
        agreeing = list(votes)
    return ", ".join(sorted(agreeing))


def _aside_by_id(run_state: RunState) -> dict[str, str]:
    """The examples that can't be asked for, with the reason."""
    reasons = {}
    for position, reason in sorted(run_state.aside.items()):
        example_id = run_state.ids[position]
        reasons[example_id] = reason
    # Last: of an example that can't be read and has vanished, the latter is said.
    for position in run_state.vanished:
        example_id = run_state.ids[position]
        reasons[example_id] = "it has vanished from the pool"
    return reasons
