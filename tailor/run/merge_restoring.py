"""Taking a merge of classes back: what it made one is parted again."""

from __future__ import annotations

from copy import copy

import numpy as np

from tailor.run import acts
from tailor.run.merge_memory import Merge, arm_keys
from tailor.run.state import RunState
from tailor.selection.class_edits import ClassEdit


def restore(run_state: RunState, merge: Merge) -> None:
    """Part again what the merge made one, in a state that has the classes apart again. What came
    since stays.
    """
    before = merge.before
    # Each class is where it was: those that were added since are at the end.
    same_place = tuple(range(before.size))
    later = ClassEdit(before, run_state.task, same_place)
    arms_today = _arms_today(run_state, merge)
    _restore_picks(run_state, merge, arms_today)
    arm_count = len(run_state.learner.arms)
    for record, remembered in zip(run_state.rounds, merge.rounds):
        # A copy: what is remembered may be restored in another copy of the state, too.
        parted = copy(remembered)
        parted.reclass(later, arms_today, arm_count)
        record.weights = parted.weights
        record.chances = parted.chances
        record.pulled = parted.pulled
        record.beliefs = parted.beliefs
    run_state.learner.history.restore(
        merge.learned,
        merge.weights,
        later,
        arms_today,
    )
    _restore_votes(run_state, merge)
    # After the votes: a label that they have given is left to them.
    _restore_labels(run_state, merge)
    acts.part_again(run_state, merge.acts, later)


def _arms_today(run_state: RunState, merge: Merge) -> np.ndarray:
    """(M,) int64: what each arm of the time before the merge is in the state."""
    arm_of = {}
    for arm, key in enumerate(arm_keys(run_state)):
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
    for position, arm_then in zip(unchanged.tolist(), arms_then.tolist()):
        # Below 0 no arm has picked, which is the same in any class list.
        if arm_then < 0:
            continue
        arm = int(arms[arm_then])
        _move_pick(run_state, position, arm)
    _restore_predictions(run_state, merge, unchanged)


def _move_pick(run_state: RunState, position: int, arm: int) -> None:
    """The pick of an example was this arm's."""
    picks = run_state.label_table.picks
    merged_arm = int(picks.arm[position])
    if arm == merged_arm:
        return
    current_round = len(run_state.rounds) - 1
    pick_round = int(picks.round[position])
    run_state.arm_statistics.move(merged_arm, arm, in_this_round=pick_round == current_round)
    picks.arm[position] = arm


def _restore_predictions(run_state: RunState, merge: Merge, unchanged: np.ndarray) -> None:
    """unchanged (n,): positions whose picks are those of the time before the merge."""
    remembered = merge.picks
    all_predictions = run_state.label_table.picks.predictions
    is_unchanged = np.isin(remembered.predicted, unchanged)
    positions = remembered.predicted[is_unchanged]
    predictions = all_predictions.get(positions)
    parted_classes = [merge.source, merge.target]
    predictions[:, parted_classes] = remembered.predictions[is_unchanged]
    all_predictions.set(positions, predictions)


def _restore_votes(run_state: RunState, merge: Merge) -> None:
    """Votes that nobody has given anew since are for the classes that they were for."""
    for voter, classes in merge.votes.items():
        if voter in merge.since:
            continue
        position, annotator = voter
        run_state.consensus.amend(position, annotator, classes)


def _restore_labels(run_state: RunState, merge: Merge) -> None:
    """By the same people and at the same time as before. Labels that votes have given follow from
    the votes.
    """
    table = run_state.label_table
    positions: list[int] = []
    labels = []
    for position, classes in merge.labels.items():
        was_answered_since = (position, None) in merge.since
        if was_answered_since:
            continue
        if run_state.consensus.decides(position):
            continue
        if table.has_label(position):
            positions.append(position)
            labels.append(classes)
    position_array = np.array(positions, np.int64)
    run_state.label(position_array, labels)
