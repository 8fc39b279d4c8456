"""The search reward: find positives."""

from __future__ import annotations

import numpy as np

from tailor.bandits.rewards.base import LabelSummary, Reward


class Search(Reward):
    """Every positive label is worth the same: v_k = 1 / K.

    Formula: v_k = 1/K.

    Cost: none.

    When to use: multi-label tasks in which the number of positive labels counts, whichever the
    class.
    """

    def class_weights(self, summary: LabelSummary) -> np.ndarray:
        size = summary.task.size
        worth = 1 / size
        return np.full(size, worth)
