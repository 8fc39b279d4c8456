"""ALBL: active learning by learning, a bandit rewarded by how well the retrained model does on its picks."""

from __future__ import annotations

import math

import numpy as np

from tailor.bandit.base import Contest, Fit
from tailor.bandit.exp4 import ExponentialWeights, weighted_accuracy
from tailor.errors import InputError


class Albl(ExponentialWeights):
    """EXP4.P over the arms, with importance-weighted accuracy on all picks so far as reward.

    Hsu and Lin 2015, "Active Learning by Learning". `delta` is the chance that its confidence bound fails.
    """

    name = "albl"

    def __init__(self, contest: Contest, *, delta: float = 0.1) -> None:
        if not 0 < delta < 1:
            raise InputError(f"delta is {delta}: it is a chance and must lie in (0, 1)")
        super().__init__(contest)
        self.delta = delta

    @property
    def floor(self) -> float:
        m = self.contest.size
        return min(1 / m, math.sqrt(math.log(m) / (m * max(1, self.contest.total))))

    def reward(self, fit: Fit) -> float:
        return weighted_accuracy(fit, self.contest.total)

    def step(self, reward: float, p: np.ndarray) -> np.ndarray:
        m = self.contest.size
        bonus = math.sqrt(math.log(m / self.delta) / (m * max(1, self.contest.total)))
        added: np.ndarray = self.floor / 2 * (reward / p + bonus / p)
        return added
