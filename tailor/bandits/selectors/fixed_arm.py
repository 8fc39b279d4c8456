"""A single arm, or the arms of a single family: the baseline that any choosing has to beat."""

from __future__ import annotations

import numpy as np

from tailor.bandits.base import Outcomes, Selector
from tailor.bandits.checks import check_outcomes, check_slots, check_weights
from tailor.errors import UnknownName


class FixedArm(Selector):
    """Always `arm`, the name of an arm or of a family; a family's slots go evenly at random to its
    arms.

    Formula: P(arm) = 1, or 1 / (number of arms) within the family.

    Cost: none.

    When to use: when you know which algorithm you want, or as a baseline.
    """

    name = "fixed"

    def __init__(self, *, arm: str) -> None:
        self.arm = arm
        self.chosen = np.empty(0, np.int64)

    def reset(self) -> None:
        contest = self.contest
        chosen = [i for i, name in enumerate(contest.arms) if name == self.arm]
        if not chosen:
            chosen = [i for i, family in enumerate(contest.families) if family == self.arm]
        if not chosen:
            raise UnknownName("arm or family", str(self.arm), {*contest.arms, *contest.families})
        self.chosen = np.array(chosen, dtype=np.int64)

    def plan(self, slots: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        check_weights(self.contest, weights)
        return self.chosen[rng.integers(len(self.chosen), size=check_slots(slots))]

    def learn(self, outcomes: Outcomes) -> None:
        check_outcomes(self.contest, outcomes)

    def chances(self, plan: np.ndarray) -> np.ndarray:
        chances = np.zeros(self.contest.size)
        chances[self.chosen] = 1 / len(self.chosen)
        return chances
