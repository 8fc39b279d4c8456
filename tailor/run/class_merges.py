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
        names = (*task.classes[: self.source], self.old, *task.classes[self.source :])
        place = tuple(k + (k >= self.source) for k in range(task.size))
        return ClassEdit(task, type(task)(names), place)


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
    arms = run_state.learner.reclass(change)
    run_state.task = change.after
    run_state.settings = replace(run_state.settings, classes=change.after.classes)
    for record in run_state.rounds:
        record.reclass(change, arms, len(run_state.learner.arms))
    if run_state.current is not None and not change.only_names:
        run_state.current.drop_rest()
    run_state.consensus.reclass(change)
    run_state.arm_statistics.reclass(arms, change.after.size)
    _count_anew(run_state)


def _count_anew(run_state: RunState) -> None:
    """What the arms found, and what the votes say, in the classes of now."""
    run_state.arm_statistics.found.clear()
    run_state.count_found(run_state.label_table.picks.positions, 1)
    for position in list(run_state.consensus.asked):
        run_state.decide(position)


def note_answers(run_state: RunState, positions: Iterable[int], by: str | None = None) -> None:
    """These are answered now: they stay as they are when a merge before is taken back."""
    for merge in run_state.merges:
        merge.since.update((position, by) for position in positions)


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
    reclass(run_state, change)
    _restore(run_state, merge)
    run_state.merges = run_state.merges[:-1]
    _count_anew(run_state)


# ---------------------------------------------------------------------- remembering


def remember(run_state: RunState, change: ClassEdit, event: int, by: str | None) -> Merge | None:
    """What is about to be made one; None where no class goes."""
    after = change.after
    gone = [k for k, name in enumerate(change.before.classes) if name not in after.classes]
    if after.size >= change.before.size or len(gone) != 1:
        return None
    (source,) = gone
    target = next(
        k for k, place in enumerate(change.place) if place == change.place[source] and k != source
    )
    learner = run_state.learner
    return Merge(
        event=event,
        before=change.before,
        source=source,
        target=target,
        by=by,
        labels=_labels_with(run_state, source),
        votes=_votes_with(run_state, source),
        picks=_picks_now(run_state, source, target),
        contest=_arm_keys(run_state),
        rounds=[copy(record) for record in run_state.rounds],
        learned=list(learner.history.rounds),
        weights=learner.history.weights,
    )


def _labels_with(run_state: RunState, klass: int) -> dict[int, tuple[int, ...]]:
    """position -> classes, of all examples that are labelled as this class."""
    table = run_state.label_table
    labelled = table.answers.labels.positions
    rows = table.labels_of(labelled)
    has_class = rows[:, klass] > 0
    return {
        position: tuple(np.flatnonzero(row).tolist())
        for position, row in zip(labelled[has_class].tolist(), rows[has_class])
    }


def _votes_with(run_state: RunState, klass: int) -> dict[tuple[int, str], tuple[int, ...]]:
    """(position, annotator) -> classes, of all votes for this class."""
    consensus = run_state.consensus
    return {
        (position, annotator): vote.classes
        for position in consensus.asked
        for annotator, vote in consensus.on(position).items()
        if vote.classes is not None and klass in vote.classes
    }


def _picks_now(run_state: RunState, source: int, target: int) -> RememberedPicks:
    picks = run_state.label_table.picks
    positions = picks.positions
    predicted = picks.predictions.positions
    return RememberedPicks(
        positions,
        picks.round[positions],
        picks.slot[positions],
        picks.arm[positions],
        predicted,
        picks.predictions.get(predicted)[:, [source, target]],
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
    # classes that were added since are at the end
    later = ClassEdit(merge.before, run_state.task, tuple(range(merge.before.size)))
    place = {key: arm for arm, key in enumerate(_arm_keys(run_state))}
    arms = np.array([place[key] for key in merge.contest], np.int64)
    _restore_picks(run_state, merge, arms)
    for record, remembered in zip(run_state.rounds, merge.rounds):
        parted = copy(remembered)
        parted.reclass(later, arms, len(learner.arms))
        record.weights = parted.weights
        record.chances = parted.chances
        record.pulled = parted.pulled
        record.beliefs = parted.beliefs
    learner.history.restore(merge.learned, merge.weights, later, arms)
    for (position, annotator), classes in merge.votes.items():
        if (position, annotator) not in merge.since:
            run_state.consensus.amend(position, annotator, classes)
    _restore_labels(run_state, merge)


def _restore_picks(run_state: RunState, merge: Merge, arms: np.ndarray) -> None:
    """arms (M,): what each arm of that time is today."""
    picks = run_state.label_table.picks
    remembered = merge.picks
    # what was skipped, offered again and asked again since is another pick
    same_round = picks.round[remembered.positions] == remembered.rounds
    same_slot = picks.slot[remembered.positions] == remembered.slots
    is_same = same_round & same_slot
    unchanged = remembered.positions[is_same]
    current = len(run_state.rounds) - 1
    for position, arm_then in zip(unchanged.tolist(), remembered.arms[is_same].tolist()):
        if arm_then < 0:
            continue
        arm = int(arms[arm_then])
        merged_arm = int(picks.arm[position])
        if arm != merged_arm:
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
    labels = {
        position: classes
        for position, classes in merge.labels.items()
        if (position, None) not in merge.since
        and not run_state.consensus.decides(position)
        and run_state.label_table.has_label(position)
    }
    run_state.label(np.fromiter(labels, np.int64, len(labels)), list(labels.values()))
