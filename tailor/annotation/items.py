"""What the coordinator hands to a page: plain records, frozen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tailor.run.state import RunState
from tailor.task import Task

#: likeliest classes that are told of a prediction
MOST_PREDICTED = 5


@dataclass(frozen=True)
class ItemVote:
    """One annotator's answer to an example that several were asked about."""

    by: str
    label: tuple[str, ...] | None  # class names; None: skipped
    at: float


@dataclass(frozen=True)
class Item:
    """An example as an annotator sees it."""

    id: str
    label: tuple[str, ...] | None  # the label that counts; None: there is none (yet)
    skipped: bool
    by: str | None  # who gave the label
    at: float | None  # and when
    # the arm that asked for it, "hold-out", "random start", "(nobody)", or "" where nobody asked
    arm: str
    round: int  # -1 where nobody asked
    # the likeliest classes with their probabilities, likeliest first, said by a model that had not
    # learned the label; empty without a model
    predicted: dict[str, float]
    votes: tuple[ItemVote, ...] = ()


@dataclass(frozen=True)
class NextItems:
    """What an annotator gets to label next."""

    items: tuple[Item, ...]
    state: str  # "ready", "preparing" (a round is on its way, ask again soon) or "stopped"
    reason: str | None = None  # why nothing comes, in words


@dataclass(frozen=True)
class Receipt:
    """The answer is in the store."""

    id: str
    event: int  # the number of its event
    counts: dict[str, int]  # labels of each class after it
    left: int  # examples of the round without an answer


@dataclass(frozen=True)
class ItemPage:
    """Some of `total` items."""

    items: tuple[Item, ...]
    total: int


def make_item(run_state: RunState, position: int, probs: np.ndarray | None) -> Item:
    """The item of the example at a position. probs (N, K): what the model says now, if there is
    one.
    """
    label = run_state.label_of(position)
    pick = run_state.label_table.picks.get(position)
    labelled_by, labelled_at = run_state.answered_by.get(position, (None, None))
    prediction = prediction_before_label(run_state, position, probs)
    votes = run_state.consensus.on(position)
    return Item(
        id=run_state.ids[position],
        label=None if label is None else _class_names(run_state.task, np.flatnonzero(label)),
        skipped=run_state.is_skipped(position),
        by=labelled_by,
        at=labelled_at,
        arm=run_state.arm_name(pick.arm) if pick else "",
        round=pick.round if pick else -1,
        predicted=likeliest(run_state.task, prediction),
        votes=tuple(
            ItemVote(name, _class_names(run_state.task, vote.classes), vote.at)
            for name, vote in votes.items()
        ),
    )


def prediction_before_label(
    run_state: RunState, position: int, probs: np.ndarray | None
) -> np.ndarray | None:
    """(K,) what a model that had not learned the example's label said of it, or None.

    A model of today has learned the labels, mistakes too, and repeats them. So what counts is what
    was said when the example was asked for. The hold-out is never learned: of it, and of what was
    asked for before there was a model, probs (N, K), what the model says now, is used.
    """
    picks = run_state.label_table.picks
    when_asked = picks.prediction_of(position)
    if probs is None or position >= len(probs):
        return when_asked
    if when_asked is not None and not picks.is_holdout(position):
        return when_asked
    now: np.ndarray = np.asarray(probs[position])
    return now


def likeliest(task: Task, probs: np.ndarray | None) -> dict[str, float]:
    """probs (K,) -> the likeliest classes by name, likeliest first; empty for None."""
    if probs is None:
        return {}
    best = np.argsort(-probs, kind="stable")[:MOST_PREDICTED]
    return {task.classes[k]: round(float(probs[k]), 4) for k in best.tolist()}


def has_answer(run_state: RunState, position: int, annotator: str | None) -> bool:
    """Whether an example has a label, is skipped, or has this annotator's vote."""
    return (
        run_state.label_of(position) is not None
        or run_state.is_skipped(position)
        or annotator in run_state.consensus.on(position)
    )


def _class_names(task: Task, classes: Iterable[int] | None) -> tuple[str, ...] | None:
    if classes is None:
        return None
    return tuple(task.classes[k] for k in classes)
