"""What a merge of classes loses, remembered so that the merge can be taken back.

It loses which labels, votes, predictions and picks were of which class. All of it can be had again
by going through the events once more, so nothing of this is stored: the state remembers it when the
merge is applied.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from tailor.errors import InputError
from tailor.run.acts import Act
from tailor.run.records import RoundRecord
from tailor.run.state import RunState
from tailor.selection.class_edits import ClassEdit
from tailor.selection.selector_history import LearnedRound
from tailor.task import Task

#: merges that can be taken back, the latest first: each remembers what was learned until then
REMEMBERED = 3


@dataclass
class Merge:
    """One class, `source`, became part of another, `target`: where they stood in the list before.

    What is remembered is what stood in the state at that time.
    """

    event: int
    before: Task
    source: int
    target: int
    by: str | None
    #: position -> classes, of examples that were labelled as the source
    labels: dict[int, tuple[int, ...]]
    #: (position, annotator) -> classes, of votes for the source
    votes: dict[tuple[int, str], tuple[int, ...]]
    picks: RememberedPicks
    contest: list[tuple[str, int]]  # (family, class) of every arm
    rounds: list[RoundRecord]
    learned: list[LearnedRound]
    weights: np.ndarray | None
    acts: list[Act]
    #: (position, annotator) voted since, (position, None) told, skipped or withdrawn since: these
    #: stand as they are
    since: set[tuple[int, str | None]] = field(default_factory=set)

    @property
    def old(self) -> str:
        """The name of the class that is gone."""
        return self.before.classes[self.source]

    @property
    def into(self) -> str:
        """The name that the other class had."""
        return self.before.classes[self.target]

    def copy(self) -> Merge:
        return replace(self, since=set(self.since))

    def change(self, task: Task) -> ClassEdit:
        """From today's classes, which may have been renamed and added to since, to those with `old`
        again. Raises InputError where a class has that name by now.
        """
        if self.old in task.classes:
            raise InputError(
                f"{self.old!r} is a class again: rename it first, then take back the merge"
            )
        names = list(task.classes)
        names.insert(self.source, self.old)
        kind_of_task = type(task)
        after = kind_of_task(names)
        place = []
        for k in range(task.size):
            # Classes from the source's place on make room for it.
            if k < self.source:
                place.append(k)
            else:
                place.append(k + 1)
        return ClassEdit(task, after, tuple(place))


@dataclass(frozen=True)
class RememberedPicks:
    """All picks as they stood before a merge."""

    positions: np.ndarray  # (n,)
    rounds: np.ndarray  # (n,)
    slots: np.ndarray  # (n,)
    arms: np.ndarray  # (n,)
    predicted: np.ndarray  # (m,) positions of which a model had said something
    predictions: np.ndarray  # (m, 2): what it had said of source and target


def remember(
    run_state: RunState,
    change: ClassEdit,
    event: int,
    by: str | None,
) -> Merge | None:
    """What is about to be made one; None where no class goes."""
    source = _class_that_goes(change)
    if source is None:
        return None
    target = _merged_with(change, source)
    history = run_state.learner.history
    return Merge(
        event=event,
        before=change.before,
        source=source,
        target=target,
        by=by,
        labels=_labels_with(run_state, source),
        votes=_votes_with(run_state, source),
        picks=_picks_now(run_state, source, target),
        contest=arm_keys(run_state),
        rounds=[copy(record) for record in run_state.rounds],
        learned=list(history.rounds),
        weights=history.weights,
        acts=list(run_state.acts),
    )


def _class_that_goes(change: ClassEdit) -> int | None:
    """The class that a merge leaves out; None where the change is no merge."""
    before = change.before
    after = change.after
    # A class that is renamed goes by its name, too, but then there are as many as before.
    if after.size >= before.size:
        return None
    gone = []
    for k, name in enumerate(before.classes):
        if name not in after.classes:
            gone.append(k)
    if len(gone) != 1:
        return None
    return gone[0]


def _merged_with(change: ClassEdit, source: int) -> int:
    """The other class that is now in the same place as the source."""
    others = []
    for k, place in enumerate(change.place):
        if k == source:
            continue
        if place == change.place[source]:
            others.append(k)
    return others[0]


def _labels_with(run_state: RunState, klass: int) -> dict[int, tuple[int, ...]]:
    """position -> classes, of all examples that are labelled as this class."""
    table = run_state.label_table
    labelled = table.answers.labels.positions
    rows = table.labels_of(labelled)
    has_class = rows[:, klass] > 0
    positions = labelled[has_class].tolist()
    classes_of = {}
    for position, row in zip(positions, rows[has_class]):
        classes = np.flatnonzero(row).tolist()
        classes_of[position] = tuple(classes)
    return classes_of


def _votes_with(run_state: RunState, klass: int) -> dict[tuple[int, str], tuple[int, ...]]:
    """(position, annotator) -> classes, of all votes for this class."""
    consensus = run_state.consensus
    classes_of = {}
    for position in consensus.asked:
        votes = consensus.on(position)
        for annotator, vote in votes.items():
            # A skip is for no class.
            if vote.classes is None:
                continue
            if klass in vote.classes:
                classes_of[position, annotator] = vote.classes
    return classes_of


def _picks_now(run_state: RunState, source: int, target: int) -> RememberedPicks:
    picks = run_state.label_table.picks
    positions = picks.positions
    predicted = picks.predictions.positions
    predictions = picks.predictions.get(predicted)
    return RememberedPicks(
        positions=positions,
        rounds=picks.round[positions],
        slots=picks.slot[positions],
        arms=picks.arm[positions],
        predicted=predicted,
        predictions=predictions[:, [source, target]],
    )


def arm_keys(run_state: RunState) -> list[tuple[str, int]]:
    """(family, class) of every arm: the same arm in another class list has the same family."""
    contest = run_state.learner.contest
    return list(zip(contest.families, contest.classes))
