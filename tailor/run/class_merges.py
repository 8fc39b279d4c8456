"""Changes of the class list in a run's state, and merges of classes that can be taken back.

A merge loses which labels, votes, predictions and picks were of which class. All of it can be had
again by going through the events once more, so nothing of this is stored: the state remembers it
when the merge is applied.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from tailor.errors import InputError
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
        place = []
        for k in range(task.size):
            # Classes from the source's place on make room for it.
            shift = 1 if k >= self.source else 0
            place.append(k + shift)
        kind_of_task = type(task)
        after = kind_of_task(names)
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


# ---------------------------------------------------------------------- changes


def reclass(run_state: RunState, change: ClassEdit) -> None:
    """From now on the classes are others: all that is known is told in them, as if they had been
    there at first.

    What waits goes on waiting. The rest of an open round is dropped, for its plan was made for
    other classes.
    """
    learner = run_state.learner
    after = change.after
    arms = learner.reclass(change)
    arm_count = len(learner.arms)
    run_state.task = after
    run_state.settings = replace(run_state.settings, classes=after.classes)
    for record in run_state.rounds:
        record.reclass(change, arms, arm_count)
    current = run_state.current
    if current is not None and not change.only_names:
        current.drop_rest()
    run_state.consensus.reclass(change)
    run_state.arm_statistics.reclass(arms, after.size)
    _count_anew(run_state)


def _count_anew(run_state: RunState) -> None:
    """What the arms found, and what the votes say, in the classes of now."""
    run_state.arm_statistics.found.clear()
    picks = run_state.label_table.picks
    run_state.count_found(picks.positions, 1)
    voted_on = list(run_state.consensus.asked)
    for position in voted_on:
        run_state.decide(position)


def note_answers(run_state: RunState, positions: Iterable[int], by: str | None = None) -> None:
    """These are answered now: they stay as they are when a merge before is taken back."""
    if not run_state.merges:
        return
    answers = [(position, by) for position in positions]
    for merge in run_state.merges:
        merge.since.update(answers)


def last_merge(run_state: RunState, event: int | None = None) -> Merge:
    """The merge that can be taken back; event: it must be this one. Raises InputError if not."""
    if not run_state.merges:
        raise InputError("there is no merge of classes to take back")
    latest = run_state.merges[-1]
    if event is not None and latest.event != event:
        raise InputError(
            "another merge came later or this one is taken back already: the latest is "
            f"{latest.old!r} into {latest.into!r}"
        )
    return latest


def undo(run_state: RunState, event: int, change: ClassEdit) -> None:
    """Take the latest merge back: labels, votes, predictions and picks are what they were; what
    came since stays in the class that was left. Later picks of the open round are dropped, as with
    any change.
    """
    merge = last_merge(run_state, event)
    # First the classes, so that what is remembered has a place to go back to.
    reclass(run_state, change)
    _restore(run_state, merge)
    run_state.merges = run_state.merges[:-1]
    _count_anew(run_state)


# ---------------------------------------------------------------------- remembering


def remember(run_state: RunState, change: ClassEdit, event: int, by: str | None) -> Merge | None:
    """What is about to be made one; None where no class goes."""
    before = change.before
    after = change.after
    gone = []
    for k, name in enumerate(before.classes):
        if name not in after.classes:
            gone.append(k)
    if after.size >= before.size or len(gone) != 1:
        return None
    (source,) = gone
    target = _merged_with(change, source)
    history = run_state.learner.history
    return Merge(
        event=event,
        before=before,
        source=source,
        target=target,
        by=by,
        labels=_labels_with(run_state, source),
        votes=_votes_with(run_state, source),
        picks=_picks_now(run_state, source, target),
        contest=_arm_keys(run_state),
        rounds=[copy(record) for record in run_state.rounds],
        learned=list(history.rounds),
        weights=history.weights,
    )


def _merged_with(change: ClassEdit, source: int) -> int:
    """The other class that is now in the same place as the source."""
    shared_place = change.place[source]
    together = [k for k, place in enumerate(change.place) if place == shared_place]
    together.remove(source)
    return together[0]


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


def _arm_keys(run_state: RunState) -> list[tuple[str, int]]:
    """(family, class) of every arm: the same arm in another class list has the same family."""
    contest = run_state.learner.contest
    return list(zip(contest.families, contest.classes))


# ---------------------------------------------------------------------- restoring


def _restore(run_state: RunState, merge: Merge) -> None:
    """Part again what the merge made one, in a state that has the classes apart again. What came
    since stays.
    """
    learner = run_state.learner
    before = merge.before
    # Each class is where it was: those that were added since are at the end.
    same_place = tuple(range(before.size))
    later = ClassEdit(before, run_state.task, same_place)
    arms = _arms_today(run_state, merge)
    _restore_picks(run_state, merge, arms)
    for record, remembered in zip(run_state.rounds, merge.rounds):
        parted = copy(remembered)
        parted.reclass(later, arms, len(learner.arms))
        record.weights = parted.weights
        record.chances = parted.chances
        record.pulled = parted.pulled
        record.beliefs = parted.beliefs
    learner.history.restore(
        merge.learned,
        merge.weights,
        later,
        arms,
    )
    for (position, annotator), classes in merge.votes.items():
        if (position, annotator) in merge.since:
            continue
        run_state.consensus.amend(position, annotator, classes)
    # After the votes: a label that they have given is left to them.
    _restore_labels(run_state, merge)


def _arms_today(run_state: RunState, merge: Merge) -> np.ndarray:
    """(M,) int64: what each arm of the time before the merge is in the state."""
    arm_of = {}
    for arm, key in enumerate(_arm_keys(run_state)):
        arm_of[key] = arm
    arms = [arm_of[key] for key in merge.contest]
    return np.array(arms, np.int64)


def _restore_picks(run_state: RunState, merge: Merge, arms: np.ndarray) -> None:
    """arms (M,): what each arm of that time is today."""
    picks = run_state.label_table.picks
    remembered = merge.picks
    positions = remembered.positions
    # what was skipped, offered again and asked again since is another pick
    same_round = picks.round[positions] == remembered.rounds
    same_slot = picks.slot[positions] == remembered.slots
    is_same = same_round & same_slot
    unchanged = positions[is_same]
    arms_then = remembered.arms[is_same]
    current = len(run_state.rounds) - 1
    for position, arm_then in zip(unchanged.tolist(), arms_then.tolist()):
        if arm_then < 0:
            continue
        arm = int(arms[arm_then])
        merged_arm = int(picks.arm[position])
        if arm == merged_arm:
            continue
        in_this_round = int(picks.round[position]) == current
        run_state.arm_statistics.move(merged_arm, arm, in_this_round)
        picks.arm[position] = arm
    is_unchanged = np.isin(remembered.predicted, unchanged)
    parted = remembered.predicted[is_unchanged]
    predictions = picks.predictions.get(parted)
    predictions[:, [merge.source, merge.target]] = remembered.predictions[is_unchanged]
    picks.predictions.set(parted, predictions)


def _restore_labels(run_state: RunState, merge: Merge) -> None:
    """By the same people and at the same time as before. Labels that votes have given follow from
    the votes.
    """
    positions = []
    labels = []
    for position, classes in merge.labels.items():
        was_answered_since = (position, None) in merge.since
        if was_answered_since or run_state.consensus.decides(position):
            continue
        if run_state.label_table.has_label(position):
            positions.append(position)
            labels.append(classes)
    run_state.label(np.array(positions, np.int64), labels)
