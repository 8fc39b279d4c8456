"""Merges of classes that can be taken back: what a merge makes one is remembered apart.

A merge loses which labels, votes, predictions and picks were of which class. All of it can be had
again by going through the events once more, so nothing of this is stored: a journal remembers it as
it takes the merge in.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tailor.bandits.base import Outcomes
from tailor.errors import InputError
from tailor.run.records import RoundRecord
from tailor.selection.class_edits import ClassEdit
from tailor.task import Task

if TYPE_CHECKING:
    from tailor.run.state import RunState

#: merges that can be taken back, the latest first: each remembers what was learned until then
REMEMBERED = 3


@dataclass
class Merge:
    """One class became part of another. gone and kept are where they stood in the list before."""

    event: int
    before: Task
    gone: int
    kept: int
    by: str | None
    labels: dict[
        int, tuple[int, ...]
    ]  # position -> classes, of those that were labelled as the class that is gone
    ballots: dict[tuple[int, str], tuple[int, ...]]
    pick_records: dict[int, tuple[int, int, int]]
    predicted: dict[int, np.ndarray]  # (2,): what the model said of gone and kept
    contest: list[tuple[str, int]]  # (family, class) of every arm
    rounds: list[RoundRecord]
    learned: list[tuple[np.ndarray, Outcomes]]
    weights: np.ndarray | None
    #: (position, who) voted since, (position, None) told, skipped or withdrawn since: these stand
    #: as they are
    since: set[tuple[int, str | None]] = field(default_factory=set)

    @property
    def old(self) -> str:
        return self.before.classes[self.gone]

    @property
    def into(self) -> str:
        return self.before.classes[self.kept]

    def copy(self) -> Merge:
        return replace(self, since=set(self.since))

    def change(self, task: Task) -> ClassEdit:
        """From today's classes, which may have been renamed and added to since, to those with `old`
        again.
        """
        if self.old in task.classes:
            raise InputError(
                f"{self.old!r} is a class again: rename it first, then take back the merge"
            )
        names = (*task.classes[: self.gone], self.old, *task.classes[self.gone :])
        return ClassEdit(
            task, type(task)(names), tuple(k + (k >= self.gone) for k in range(task.size))
        )


def remember(run_state: RunState, change: ClassEdit, event: int, by: str | None) -> Merge | None:
    """What is about to be made one; None where no class goes."""
    lost = [k for k, name in enumerate(change.before.classes) if name not in change.after.classes]
    if change.after.size >= change.before.size or len(lost) != 1:
        return None
    (gone,) = lost
    kept = next(
        k for k, place in enumerate(change.place) if place == change.place[gone] and k != gone
    )
    labels = {}
    for label_table in (run_state.label_table, run_state.holdout_table):
        rows = label_table.labels
        for position, row in zip(
            label_table.labelled[rows[:, gone] > 0].tolist(), rows[rows[:, gone] > 0]
        ):
            labels[position] = tuple(np.flatnonzero(row).tolist())
    ballots = {
        (position, who): ballot.classes
        for position in run_state.votes.asked
        for who, ballot in run_state.votes.on(position).items()
        if ballot.classes is not None and gone in ballot.classes
    }
    learner = run_state.learner
    return Merge(
        event,
        change.before,
        gone,
        kept,
        by,
        labels,
        ballots,
        pick_records=dict(run_state.pick_records),
        predicted={p: row[[gone, kept]] for p, row in run_state.predicted.items()},
        contest=list(zip(learner.contest.families, learner.contest.classes)),
        rounds=[copy(record) for record in run_state.rounds],
        learned=list(learner._learned),
        weights=learner._weights,
    )


def restore(run_state: RunState, merge: Merge) -> None:
    """Part again what the merge made one, in a journal that has the classes apart again. What came
    since stays.
    """
    learner = run_state.learner
    later = ClassEdit(
        merge.before, run_state.task, tuple(range(merge.before.size))
    )  # classes added since are at the end
    place = {
        key: at for at, key in enumerate(zip(learner.contest.families, learner.contest.classes))
    }
    arms = np.array([place[key] for key in merge.contest], np.int64)
    same = {
        p: pick_record
        for p, pick_record in merge.pick_records.items()
        if run_state.pick_records.get(p, (-1, -1))[:2] == pick_record[:2]
    }
    for position, (_, _, arm) in same.items():
        if arm >= 0:
            run_state.credit(position, int(arms[arm]))
    for rows in (
        run_state.predicted,
        run_state.label_table.predicted,
        run_state.holdout_table.predicted,
    ):
        for position in rows.keys() & merge.predicted.keys() & same.keys():
            row = rows[position].copy()
            row[[merge.gone, merge.kept]] = merge.predicted[position]
            rows[position] = row
    for record, then in zip(run_state.rounds, merge.rounds):
        known = copy(then)
        known.reclass(later, arms, len(learner.arms))
        record.weights = known.weights
        record.chances = known.chances
        record.pulled = known.pulled
        record.beliefs = known.beliefs
    learner.learn_as_before(merge.learned, merge.weights, later, arms)
    for (position, who), classes in merge.ballots.items():
        if (position, who) not in merge.since:
            run_state.votes.amend(position, who, classes)
    # labels that votes have given follow from the votes
    told = {p: classes for p, classes in merge.labels.items() if (p, None) not in merge.since}
    run_state.relabel({p: classes for p, classes in told.items() if not run_state.votes.decide(p)})
