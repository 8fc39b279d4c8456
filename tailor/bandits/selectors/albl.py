"""ALBL: active learning by learning, a bandit rewarded by how well the retrained model does on its
picks.
"""

from __future__ import annotations

import math

import numpy as np

from tailor.bandits.base import Fit
from tailor.bandits.selectors.exponential_weights import (
    ExponentialWeights,
    check_delta,
    confidence,
    weighted_accuracy,
)
from tailor.errors import InputError


class ALBL(ExponentialWeights):
    """EXP4.P over the arms, with importance-weighted accuracy on all picks so far as reward.

    Hsu and Lin 2015, "Active Learning by Learning".

    delta  the chance that its confidence bound fails
    bonus  whose weight the bound raises at each slot: that of the arm that was "pulled", or that
           of "every" arm, as in EXP4.P itself and in libact

    Formula: p_i = (1 − M ε) w_i / Σ_j w_j + ε; each slot of arm i multiplies w_i by exp((ε/2) (r +
    b) / p_i), with r the reward of the round, b EXP4.P's bonus and ε = √(ln M / (M T)).

    Cost: M numbers; it must be told how the retrained model does on all picks.

    When to use: to compare with what was published. All slots of a round share one reward, so it
    hardly leaves uniform choice within a run.
    """

    name = "albl"

    def __init__(self, *, delta: float = 0.1, bonus: str = "pulled") -> None:
        if bonus not in ("pulled", "every"):
            raise InputError(f"bonus is {bonus!r}: it must be pulled or every")
        self.delta = check_delta(delta)
        self.bonus = bonus

    @property
    def floor(self) -> float:
        arms = self.contest.size
        total = max(1, self.contest.total)
        log_arms = math.log(arms)
        squared = log_arms / (arms * total)
        rate = math.sqrt(squared)
        equal_chance = 1 / arms
        return min(equal_chance, rate)

    def reward(self, fit: Fit) -> float:
        return weighted_accuracy(fit, self.contest.total)

    def step(self, reward: float, p: np.ndarray) -> np.ndarray:
        bonus = 0.0
        if self.bonus == "pulled":
            bonus = confidence(self.contest, self.delta)
        rate = self.floor / 2
        estimated_reward = reward / p
        estimated_bonus = bonus / p
        gain = estimated_reward + estimated_bonus
        added: np.ndarray = rate * gain
        return added

    def bonus_for_every_arm(self, p: np.ndarray) -> np.ndarray | float:
        if self.bonus == "pulled":
            return 0.0
        rate = self.floor / 2
        bonus = confidence(self.contest, self.delta)
        scaled = rate * bonus
        added: np.ndarray = scaled / p
        return added
