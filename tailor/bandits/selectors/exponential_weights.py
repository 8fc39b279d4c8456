"""Exponential weights over arms, kept as logarithms: what ALBL, COMB and DEAL have in common."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from tailor.bandits.base import Contest, Fit, Outcomes, Selector
from tailor.bandits.checks import check_fit, check_outcomes, check_slots, check_weights, restored
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
        shifted = self.log_weights - self.log_weights.max()
        w = np.exp(shifted)
        above_floors = 1 - self.contest.size * floor
        p: np.ndarray = above_floors * w / w.sum() + floor
        return p

    def chances(self, plan: np.ndarray) -> np.ndarray:
        return self.probabilities()

    def plan(self, slots: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        check_weights(self.contest, weights)
        slots = check_slots(slots)
        p = self.probabilities()
        # rng.choice() checks that they sum to 1, which rounding may have spoilt.
        p = p / p.sum()
        plan = rng.choice(self.contest.size, size=slots, p=p)
        return plan.astype(np.int64)

    def learn(self, outcomes: Outcomes) -> None:
        arms, _ = check_outcomes(self.contest, outcomes)
        fit = check_fit(self.contest, outcomes, self.name)
        if fit.reward is None:
            reward = self.reward(fit)
        else:
            reward = float(fit.reward)
        pulls = np.bincount(arms, minlength=self.contest.size)
        p = self.probabilities()
        steps = pulls * self.step(reward, p)
        bonuses = len(arms) * self.bonus_for_every_arm(p)
        log_weights = self.log_weights + steps + bonuses
        self.log_weights = log_weights - log_weights.max()

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
        return {"log_weights": self.log_weights.copy()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        log_weights = restored(state, "log_weights", self.log_weights.shape)
        self.log_weights = log_weights.astype(np.float64)


class EXP4(ExponentialWeights):
    """EXP4-style weights: floor g/M, and w_i *= exp(g r / (M p_i)) for each slot of arm i."""

    @property
    def floor(self) -> float:
        arms = self.contest.size
        return exploration(arms, self.contest.total) / arms

    def step(self, reward: float, p: np.ndarray) -> np.ndarray:
        added: np.ndarray = self.floor * reward / p
        return added


def check_delta(delta: float) -> float:
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta}: it is a chance and must lie in (0, 1)")
    return delta


def confidence(contest: Contest, delta: float) -> float:
    """EXP4.P's bonus before it is divided by p: sqrt(ln(M / delta) / (M T))."""
    arms = contest.size
    total = max(1, contest.total)
    return math.sqrt(math.log(arms / delta) / (arms * total))


def weighted_accuracy(fit: Fit, total: int) -> float:
    """Importance-weighted accuracy of the retrained model on all picks so far: sum(correct / q) /
    (N T).
    """
    correct = np.asarray(fit.correct, dtype=np.float64)
    chances = np.asarray(fit.chances, dtype=np.float64)
    weighted = correct / chances
    accuracy = weighted.sum() / (fit.pool * total)
    return float(np.clip(accuracy, 0, 1))


def exploration(arms: int, total: int) -> float:
    """EXP4's mixing rate g = sqrt(M ln M / ((e - 1) T)), at most 1."""
    slots = max(1, total)
    squared = arms * math.log(arms) / ((math.e - 1) * slots)
    return min(1.0, math.sqrt(squared))
