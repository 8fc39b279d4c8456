"""The domain reward: weights that the user gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tailor.bandits.rewards.base import LabelSummary, Reward


class Domain(Reward):
    """The user's own weights: a vector (K,), or a function (round, counts (K,)) that gives one.

    Never clipped: an entry outside [-1/K, 1/K] is an error.

    weights  a vector (K,), or a function of the round's number and the counts (K,) that gives one

    Formula: v_k = weights_k, in [−1/K, 1/K].

    Cost: that of your function, once a round.

    When to use: you know what a label of each class is worth to you.
    """

    def __init__(self, *, weights: Any | Callable[[int, np.ndarray], Any]) -> None:
        self._given_weights = weights

    def class_weights(self, summary: LabelSummary) -> Any:
        if callable(self._given_weights):
            # A copy: the user's function may write into it.
            counts = summary.counts.copy()
            return self._given_weights(summary.round, counts)
        return self._given_weights
