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
    answered_at: float


@dataclass(frozen=True)
class Item:
    """An example as an annotator sees it."""

    id: str
    label: tuple[str, ...] | None  # the label that counts; None: there is none (yet)
    skipped: bool
    by: str | None  # who gave the label
    answered_at: float | None  # and when
    # the arm that asked for it, "hold-out", "random start", "(nobody)", or "" where nobody asked
    arm: str
    round: int  # -1 where nobody asked
    # the likeliest classes with their probabilities, likeliest first, said by a model that had not
    # learned the label; empty without a model
    predicted: dict[str, float]
    votes: tuple[ItemVote, ...] = ()
    # of a labelled example under review: how likely a model that has not learned the label finds
    # it that the label is another one, and the class that it says (multi-label: doubts most)
    doubt: float | None = None
    model_says: str | None = None


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
    label_names = None
    label = run_state.label_of(position)
    if label is not None:
        classes = np.flatnonzero(label)
        label_names = _class_names(run_state.task, classes)
    arm_name = ""
    round_number = -1
    pick = run_state.label_table.picks.get(position)
    if pick is not None:
        arm_name = run_state.arm_name(pick.arm)
        round_number = pick.round
    labelled_by, labelled_at = run_state.answered_by.get(position, (None, None))
    prediction = prediction_before_label(run_state, position, probs)
    return Item(
        id=run_state.ids[position],
        label=label_names,
        skipped=run_state.is_skipped(position),
        by=labelled_by,
        answered_at=labelled_at,
        arm=arm_name,
        round=round_number,
        predicted=likeliest(run_state.task, prediction),
        votes=_votes_on(run_state, position),
    )


def _votes_on(run_state: RunState, position: int) -> tuple[ItemVote, ...]:
    votes = []
    votes_by_annotator = run_state.consensus.on(position)
    for annotator, vote in votes_by_annotator.items():
        item_vote = ItemVote(
            by=annotator,
            label=_class_names(run_state.task, vote.classes),
            answered_at=vote.at,
        )
        votes.append(item_vote)
    return tuple(votes)


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
    # Stable: of equally likely classes the first in the list comes first.
    best = np.argsort(-probs, kind="stable")[:MOST_PREDICTED]
    predicted: dict[str, float] = {}
    for k in best.tolist():
        name = task.classes[k]
        probability = float(probs[k])
        predicted[name] = round(probability, 4)
    return predicted


def has_answer(run_state: RunState, position: int, annotator: str | None) -> bool:
    """Whether an example has a label, is skipped, or has this annotator's vote."""
    if run_state.label_of(position) is not None:
        return True
    if run_state.is_skipped(position):
        return True
    return annotator in run_state.consensus.on(position)


def _class_names(task: Task, classes: Iterable[int] | None) -> tuple[str, ...] | None:
    if classes is None:
        return None
    return tuple(task.classes[k] for k in classes)
