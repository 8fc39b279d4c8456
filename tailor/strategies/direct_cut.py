"""Where direct cuts each class's line, from the scores and labels of what is labelled alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tailor.selection.pool_view import CHUNK, PoolView
from tailor.task import MultiClass

if TYPE_CHECKING:
    import torch

#: no score is above this one
HIGHEST = 1.0


@dataclass(frozen=True)
class ClassCut:
    """Where the positives of a class are parted from its negatives, in scores."""

    klass: int
    score: float  # of the cut: what has this score or more lies above it
    bottom: float  # where what is in doubt begins: the first trailing negative's score
    top: float  # where it ends: the last leading positive's score


class LabelledScores:
    """The scores that the labelled examples have for each class, and the cut that follows."""

    def __init__(self, view: PoolView) -> None:
        self._probs = view.labelled_rows
        self._labels = view.labels
        self._is_multiclass = isinstance(view.task, MultiClass)
        if self._is_multiclass:
            in_parts = np.partition(self._probs, -2, axis=1)
            self._second = in_parts[:, -2]
            self._largest = in_parts[:, -1]

    def cut(self, klass: int) -> ClassCut:
        """The cut of a class."""
        is_positive = self._labels[:, klass] == 1
        if self._is_multiclass:
            lowest = -1.0
        else:
            lowest = 0.0
        return find_cut(klass, self._scores(klass), is_positive, lowest)

    def _scores(self, klass: int) -> np.ndarray:
        """(n,) p_k, in a multi-class task less the largest of the other probabilities."""
        column = self._probs[:, klass]
        if not self._is_multiclass:
            return column
        others = np.where(column < self._largest, self._largest, self._second)
        scores: np.ndarray = column - others
        return scores


def class_scores(view: PoolView, column: torch.Tensor) -> torch.Tensor:
    """(N,) the scores that all examples of a view have for a class: p_k, in a multi-class task less
    the largest of the other probabilities.

    column  (N,) the class's probabilities
    """
    if not isinstance(view.task, MultiClass):
        return column
    scores = column - view.row_max
    # Where the class itself is the most probable, the second largest is the largest of the others.
    # Each row is such a one for a single class: all classes together read the pool once.
    is_largest = column >= view.row_max
    leading = is_largest.nonzero().squeeze(1)
    # A chunk at a time: one class may lead nearly everywhere, and rows come in single precision.
    for chunk in leading.split(CHUNK):
        two_largest = view.rows(chunk).topk(2, dim=1).values
        scores[chunk] = two_largest[:, 0] - two_largest[:, 1]
    return scores


def find_cut(
    klass: int,
    scores: np.ndarray,
    is_positive: np.ndarray,
    lowest: float,
) -> ClassCut:
    """The cut that parts labelled positives from labelled negatives best, and what is in doubt.

    A share of no examples is 0: with no positive labelled the cut lies above all negatives, with no
    negative below all positives. Of equally good cuts the highest is taken. It lies midway, in
    score, between the labelled examples next above and below it; where there is none, HIGHEST and
    `lowest` stand in.

    scores       (n,) of the labelled
    is_positive  (n,) bool: whether they are of the class
    lowest       no score is below it
    """
    order = np.argsort(-scores)
    ranked = scores[order]
    is_positive = is_positive[order]
    count = len(ranked)
    # Places 0 to n, each the number of labelled examples above it; equal scores are not parted.
    between = np.flatnonzero(ranked[1:] < ranked[:-1]) + 1
    places = np.concatenate([[0], between, [count]])
    positives = np.append(0, np.cumsum(is_positive))
    negatives = np.append(0, np.cumsum(~is_positive))
    # The difference of the shares times n+ n-: whole numbers, so that rounding decides nothing.
    all_positives = max(1, int(positives[-1]))
    all_negatives = max(1, int(negatives[-1]))
    gains = positives[places] * all_negatives - negatives[places] * all_positives
    # argmax() gives the first of equal ones.
    place = int(places[np.argmax(gains)])
    if place > 0:
        above = ranked[place - 1]
    else:
        above = HIGHEST
    if place < count:
        below = ranked[place]
    else:
        below = lowest
    # In the precision of the scores, so that every device compares with the same number.
    middle = np.array([above, below], ranked.dtype).mean()
    return ClassCut(
        klass,
        score=float(middle),
        bottom=_first_trailing(ranked, is_positive, lowest),
        top=_last_leading(ranked, is_positive),
    )


def _last_leading(ranked: np.ndarray, is_positive: np.ndarray) -> float:
    """The lowest score of the positives above all negatives; HIGHEST where there is none."""
    highest_negative = ranked[~is_positive].max(initial=-np.inf)
    is_leading = ranked > highest_negative
    return float(ranked[is_leading].min(initial=HIGHEST))


def _first_trailing(ranked: np.ndarray, is_positive: np.ndarray, lowest: float) -> float:
    """The highest score of the negatives below all positives; `lowest` where there is none."""
    lowest_positive = ranked[is_positive].min(initial=np.inf)
    is_trailing = ranked < lowest_positive
    return float(ranked[is_trailing].max(initial=lowest))
