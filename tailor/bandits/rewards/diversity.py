"""The diversity reward: rare classes are worth more."""

from __future__ import annotations

import numpy as np

from tailor.bandits.rewards.base import LabelSummary, Reward
from tailor.errors import InputError


class Diversity(Reward):
    """A class is worth the less the more of it has been labelled: v_k = 1 / (K max(1,
    count_k)^power).

    With negative weighting a class found in more than half of the labelled examples gets the
    opposite sign, for there the label 0 is the rare one. TAILOR paper, sections 4.1 and "Negative
    Weighting for Common Classes".

    negative  None: on for multi-label tasks, off for multi-class
    power     in [0, 4]; 1 is the paper's, 1/2 leans less on the rarest

    Formula: v_k = ±1 / (K · max(1, count_k)^power).

    Cost: next to nothing: K numbers a round.

    When to use: the default: it balances the labels over the classes. A power of 0.5 leans less on
    the rarest class.

    >>> from tailor.task import MultiClass
    >>> Diversity().weights(LabelSummary(MultiClass(2), 0, np.array([1, 4]), 5))
    array([0.5  , 0.125])
    """

    def __init__(self, *, negative: bool | None = None, power: float = 1.0) -> None:
        if not 0 <= power <= 4:
            raise InputError(f"power is {power}: it must lie in [0, 4]; 1 is the paper's")
        self.negative = negative
        self.power = power

    def class_weights(self, summary: LabelSummary) -> np.ndarray:
        task = summary.task
        # A class that was never found counts as found once: nothing is divided by 0.
        counts = np.maximum(1, summary.counts)
        commonness = counts**self.power
        divisors = task.size * commonness
        v: np.ndarray = 1 / divisors
        negative = self.negative
        if negative is None:
            negative = task.kind == "multi-label"
        if not negative:
            return v
        half = summary.labelled / 2
        is_common = summary.counts > half
        return np.where(is_common, -v, v)
