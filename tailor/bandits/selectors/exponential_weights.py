"""Exponential weights over arms, kept as logarithms: what ALBL, COMB and DEAL have in common."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from tailor.bandits.base import Contest, Fit, Outcomes, SavedState, Selector
from tailor.bandits.checks import (
    as_floats,
    check_fit,
    check_outcomes,
    check_slots,
    check_weights,
    restored,
)
from tailor.errors import InputError


class ExponentialWeights(Selector):
    """Each slot draws an arm from p, a mixture of the normalised weights and the uniform
    distribution.

    Auer, Cesa-Bianchi, Freund and Schapire 2002. All slots of a round share p; after the round
    every slot of arm i multiplies w_i once. A round's logarithms are shifted so that the largest
    weight is 1.
    """

    needs_fit = True
    log_weights: np.ndarray  # (M,)

    def reset(self) -> None:
        self.log_weights = np.zeros(self.contest.size)

    @property
    @abstractmethod
    def floor(self) -> float:
        """The least chance of an arm, at most 1/M."""

    def probabilities(self) -> np.ndarray:
        """p (M,): (1 - M * floor) * w / sum(w) + floor."""
        floor = self.floor
        # Shifted so that the largest weight is 1: none overflows.
        largest = self.log_weights.max()
        shifted = self.log_weights - largest
        w = np.exp(shifted)
        sum_of_floors = self.contest.size * floor
        above_floors = 1 - sum_of_floors
        shares = above_floors * w / w.sum()
        p: np.ndarray = shares + floor
        return p

    def chances(self, plan: np.ndarray) -> np.ndarray:
        return self.probabilities()

    def plan(
        self,
        slots: int,
        weights: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        check_weights(self.contest, weights)
        slots = check_slots(slots)
        p = self.probabilities()
        # rng.choice() checks that they sum to 1, which rounding may have spoilt.
        p = p / p.sum()
        arms = self.contest.size
        plan = rng.choice(arms, size=slots, p=p)
        return plan.astype(np.int64)

    def learn(self, outcomes: Outcomes) -> None:
        contest = self.contest
        arms, _ = check_outcomes(contest, outcomes)
        fit = check_fit(contest, outcomes, self.name)
        reward = self._reward_of(fit)
        pulls = np.bincount(arms, minlength=contest.size)
        # All slots of the round were drawn from this p: the weights move only here.
        p = self.probabilities()
        slots = len(arms)
        step = self.step(reward, p)
        bonus = self.bonus_for_every_arm(p)
        log_weights = self.log_weights + pulls * step
        log_weights = log_weights + slots * bonus
        # Only ratios count: shifted, so that many rounds do not add up to an overflow.
        largest = log_weights.max()
        self.log_weights = log_weights - largest

    def _reward_of(self, fit: Fit) -> float:
        """The user's own reward, else the selector's."""
        if fit.reward is None:
            return self.reward(fit)
        return float(fit.reward)

    @abstractmethod
    def reward(self, fit: Fit) -> float:
        """The round's reward in [0, 1]; the user's own, where there is one, takes its place."""

    @abstractmethod
    def step(self, reward: float, p: np.ndarray) -> np.ndarray:
        """p (M,) -> (M,): what one slot of each arm adds to the logarithm of its weight."""

    def bonus_for_every_arm(self, p: np.ndarray) -> np.ndarray | float:
        """p (M,) -> (M,): what each slot, whichever arm has it, adds to the logarithm of every
        arm's weight; by default 0.
        """
        return 0.0

    def state(self) -> dict[str, np.ndarray]:
        log_weights = self.log_weights.copy()
        return {"log_weights": log_weights}

    def restore(self, state: SavedState) -> None:
        shape = self.log_weights.shape
        log_weights = restored(state, "log_weights", shape)
        self.log_weights = log_weights.astype(np.float64)


class EXP4(ExponentialWeights):
    """EXP4-style weights: floor g/M, and w_i *= exp(g r / (M p_i)) for each slot of arm i."""

    @property
    def floor(self) -> float:
        arms = self.contest.size
        total = self.contest.total
        rate = exploration(arms, total)
        return rate / arms

    def step(self, reward: float, p: np.ndarray) -> np.ndarray:
        scaled = self.floor * reward
        added: np.ndarray = scaled / p
        return added


def check_delta(delta: float) -> float:
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta}: it is a chance and must lie in (0, 1)")
    return delta


def confidence(contest: Contest, delta: float) -> float:
    """EXP4.P's bonus before it is divided by p: sqrt(ln(M / delta) / (M T))."""
    arms = contest.size
    total = max(1, contest.total)
    log_ratio = math.log(arms / delta)
    squared = log_ratio / (arms * total)
    return math.sqrt(squared)


def weighted_accuracy(fit: Fit, total: int) -> float:
    """Importance-weighted accuracy of the retrained model on all picks so far: sum(correct / q) /
    (N T).
    """
    correct = as_floats(fit.correct)
    chances = as_floats(fit.chances)
    weighted = correct / chances
    normaliser = fit.pool * total
    accuracy = weighted.sum() / normaliser
    # Few picks with small chances may weigh more than the whole pool.
    clipped = np.clip(accuracy, 0, 1)
    return float(clipped)


def exploration(arms: int, total: int) -> float:
    """EXP4's mixing rate g = sqrt(M ln M / ((e - 1) T)), at most 1."""
    slots = max(1, total)
    numerator = arms * math.log(arms)
    denominator = (math.e - 1) * slots
    rate = math.sqrt(numerator / denominator)
    return min(1.0, rate)
