"""Random meta: every slot goes to any arm, all with the same chance."""

from __future__ import annotations

import numpy as np

from tailor.bandits.base import Outcomes, Selector
from tailor.bandits.checks import check_outcomes, check_slots, check_weights


class RandomMeta(Selector):
    """A uniformly random arm for every slot: what the arms give if nothing is learned about
    them.

    Formula: P(arm i) = 1/M for every slot.

    Cost: none.

    When to use: as the yardstick: what a selector has to beat. With one family it is that family
    alone. With a few good candidates it is hard to beat.
    """

    name = "random-meta"

    def plan(
        self,
        slots: int,
        weights: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        check_weights(self.contest, weights)
        slots = check_slots(slots)
        arms = self.contest.size
        return rng.integers(arms, size=slots, dtype=np.int64)

    def learn(self, outcomes: Outcomes) -> None:
        check_outcomes(self.contest, outcomes)

    def chances(self, plan: np.ndarray) -> np.ndarray:
        arms = self.contest.size
        chance = 1 / arms
        return np.full(arms, chance)
