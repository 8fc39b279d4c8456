"""A single arm, or the arms of a single family: the baseline that any choosing has to beat."""

from __future__ import annotations

from collections.abc import Sequence

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
        arms = self.contest.arms
        families = self.contest.families
        chosen = _positions(arms, self.arm)
        # An arm's name goes before that of a family.
        if not chosen:
            chosen = _positions(families, self.arm)
        if not chosen:
            names = {*arms, *families}
            raise UnknownName("arm or family", str(self.arm), names)
        self.chosen = np.array(chosen, dtype=np.int64)

    def plan(
        self,
        slots: int,
        weights: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        check_weights(self.contest, weights)
        slots = check_slots(slots)
        # A family's arms share its slots evenly.
        candidates = len(self.chosen)
        turns = rng.integers(candidates, size=slots)
        return self.chosen[turns]

    def learn(self, outcomes: Outcomes) -> None:
        check_outcomes(self.contest, outcomes)

    def chances(self, plan: np.ndarray) -> np.ndarray:
        chances = np.zeros(self.contest.size)
        chance = 1 / len(self.chosen)
        chances[self.chosen] = chance
        return chances


def _positions(names: Sequence[str], name: str) -> list[int]:
    positions = []
    for position, candidate in enumerate(names):
        if candidate == name:
            positions.append(position)
    return positions
