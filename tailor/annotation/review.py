"""Everything labelled so far, filtered and in pages."""

from __future__ import annotations

import numpy as np

from tailor.annotation.items import unbiased
from tailor.errors import InputError
from tailor.run.state import NAMES, RunState
from tailor.selection.label_table import LabelTable
from tailor.selection.round import NOBODY


def labelled(
    run_state: RunState,
    probs: np.ndarray | None,
    *,
    klass: str | None,
    arm: str | None,
    annotator: str | None,
    disagrees: bool,
) -> np.ndarray:
    """Positions with a label that pass every filter, in the order of the pool. probs (N, K): what
    the model says now. disagrees: where a model that had not learned the label said otherwise (see
    `unbiased`).
    """
    parts = []
    for label_table in (run_state.label_table, run_state.holdout_table):
        where = (
            label_table.labelled
            if arm is None
            else _of_arm(run_state, label_table, _arm_number(run_state, arm))
        )
        if klass is not None:
            where = where[label_table.labels_of(where)[:, run_state.task.index(klass)] > 0]
        if disagrees:
            where = where[_disagrees(run_state, probs, where, label_table.labels_of(where))]
        parts.append(where)
    where = np.sort(np.concatenate(parts))
    if annotator is not None:
        mine = [
            run_state.who.get(p, (None,))[0] == annotator or annotator in run_state.votes.on(p)
            for p in where.tolist()
        ]
        where = where[np.array(mine, bool)]
    return where


def _of_arm(run_state: RunState, label_table: LabelTable, arm: int | None) -> np.ndarray:
    where = label_table.labelled
    if arm is not None and arm >= 0:
        return where[label_table.arms_of(where) == arm]
    nobodys = where[
        label_table.arms_of(where) == NOBODY
    ]  # or the hold-out's, or of a random start, or told from outside
    asked = [run_state.pick_records.get(p, (0, 0, None))[2] == arm for p in nobodys.tolist()]
    return nobodys[np.array(asked, bool)]


def _disagrees(
    run_state: RunState, probs: np.ndarray | None, where: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """(n,) bool: whether a model that had not learned the label said something else."""
    said = [unbiased(run_state, position, probs) for position in where.tolist()]
    known = np.array([row is not None for row in said], bool)
    if not known.any():
        return known
    rows = np.stack([row for row in said if row is not None])
    known[known] = (run_state.task.predicted(rows) != (labels[known] > 0.5)).any(1)
    return known


def _arm_number(run_state: RunState, name: str) -> int | None:
    """None: examples that nobody asked for, named ""."""
    if not name:
        return None
    numbers = {text: number for number, text in NAMES.items()}
    numbers.update((one.name, at) for at, one in enumerate(run_state.learner.arms))
    if name not in numbers:
        raise InputError(f"no arm is called {name!r}: `tailor arms` lists them")
    return numbers[name]
