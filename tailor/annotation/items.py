"""What a room hands to a page: plain records, frozen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailor.run.state import HOLDOUT, RunState
from tailor.selection.round import NOBODY
from tailor.task import Task


@dataclass(frozen=True)
class Vote:
    """One person's answer to an example that several were asked about. label None: skipped."""

    by: str
    label: tuple[str, ...] | None
    at: float


@dataclass(frozen=True)
class Item:
    """An example as an annotator sees it."""

    id: str
    label: tuple[str, ...] | None  # the label that counts; None: there is none (yet)
    skipped: bool
    by: str | None  # who gave the label, and when
    at: float | None
    # the arm that asked for it, "hold-out", "random start", "(nobody)", or "" where nobody asked
    arm: str
    round: int  # -1 where nobody asked
    predicted: dict[
        str, float
    ]  # `unbiased`: the likeliest classes, at most 5, likeliest first; empty without a model
    votes: tuple[Vote, ...] = ()


@dataclass(frozen=True)
class Handed:
    """What next() gives. `state` is "ready", "preparing" (a round is on its way, ask again soon) or
    "stopped".
    """

    items: tuple[Item, ...]
    state: str
    reason: str | None = None  # why nothing comes, in words


@dataclass(frozen=True)
class Receipt:
    """The answer is safe. `event` is its number in the store."""

    id: str
    event: int
    counts: dict[str, int]  # labels of each class after it
    left: int  # examples of the round without an answer


@dataclass(frozen=True)
class Page:
    """Some of many items."""

    items: tuple[Item, ...]
    total: int


def unbiased(run_state: RunState, position: int, probs: np.ndarray | None) -> np.ndarray | None:
    """(K,) what a model said of an example that it had not learned; None where no model said
    anything.

    A model of today has learned the labels, mistakes too, and repeats them. So what counts is what
    was said when the example was asked for. The hold-out is never learned: of it, and of what was
    asked for before there was a model, probs (N, K), what the model says now, is used.
    """
    then = run_state.predicted.get(position)
    is_holdout = run_state.pick_records.get(position, (0, 0, NOBODY))[2] == HOLDOUT
    if probs is None or position >= len(probs) or (then is not None and not is_holdout):
        return then
    now: np.ndarray = np.asarray(probs[position])
    return now


def item_of(run_state: RunState, position: int, probs: np.ndarray | None) -> Item:
    """probs (N, K): what the model says now."""
    label = run_state.label_of(position)
    pick_record = run_state.pick_records.get(position)
    by, at = run_state.who.get(position, (None, None))

    def names(classes: Sequence[int]) -> tuple[str, ...]:
        return tuple(run_state.task.classes[k] for k in classes)

    return Item(
        run_state.ids[position],
        None if label is None else names(np.flatnonzero(label).tolist()),
        run_state.is_skipped(position),
        by,
        at,
        run_state.arm_name(pick_record[2]) if pick_record else "",
        pick_record[0] if pick_record else -1,
        likeliest(run_state.task, unbiased(run_state, position, probs)),
        tuple(
            Vote(name, None if ballot.classes is None else names(ballot.classes), ballot.at)
            for name, ballot in run_state.votes.on(position).items()
        ),
    )


def likeliest(task: Task, probs: np.ndarray | None, most: int = 5) -> dict[str, float]:
    """probs (K,) -> the likeliest classes, likeliest first."""
    if probs is None:
        return {}
    best = np.argsort(-probs, kind="stable")[:most]
    return {task.classes[k]: round(float(probs[k]), 4) for k in best.tolist()}
