"""DEAL: EXP4 that starts anew every few rounds, for arms whose worth drifts."""

from __future__ import annotations

import math

import numpy as np

from tailor.bandits.base import Fit, Outcomes, SavedState
from tailor.bandits.checks import restored
from tailor.bandits.selectors.exponential_weights import (
    EXP4,
    check_delta,
    confidence,
    weighted_accuracy,
)
from tailor.errors import InputError


class DEAL(EXP4):
    """REXP4 with ALBL's reward: weights go back to 1 every ceil((M ln M)^(1/3) (rounds / V)^(2/3))
    rounds.

    Pang, Dong, Wu and Hospedales 2018, "Dynamic Ensemble Active Learning".

    variation  the budget V
    bonus      None, or "every": each slot raises every arm's weight by EXP4.P's confidence bound
    delta      the chance that this bound fails

    Formula: as COMB with ALBL's reward r, and every w_i back to 1 every ⌈(M ln M)^⅓ (rounds / V)^⅔⌉
    rounds.

    Cost: M numbers; it must be told how the retrained model does on all picks.

    When to use: to compare with what was published, where the best arm changes during a run.
    """

    name = "deal"

    def __init__(
        self,
        *,
        variation: float = 1.0,
        bonus: str | None = None,
        delta: float = 0.1,
    ) -> None:
        if not 0 < variation < math.inf:
            raise InputError(f"variation is {variation}: it must be above 0 and finite")
        if bonus not in (None, "every"):
            raise InputError(f"bonus is {bonus!r}: it must be none or every")
        self.variation = variation
        self.bonus = bonus
        self.delta = check_delta(delta)
        self.round = 0

    def reset(self) -> None:
        super().reset()
        self.round = 0

    @property
    def period(self) -> int:
        """Rounds until the weights start anew."""
        arms = self.contest.size
        weighted_arms = arms * math.log(arms)
        arms_factor = weighted_arms ** (1 / 3)
        per_budget = self.contest.rounds / self.variation
        rounds_factor = per_budget ** (2 / 3)
        rounds = math.ceil(arms_factor * rounds_factor)
        # One arm gives 0: ln 1 is 0.
        return max(1, rounds)

    def reward(self, fit: Fit) -> float:
        return weighted_accuracy(fit, self.contest.total)

    def bonus_for_every_arm(self, p: np.ndarray) -> np.ndarray | float:
        if self.bonus is None:
            return 0.0
        bonus = confidence(self.contest, self.delta)
        scaled = self.floor * bonus
        added: np.ndarray = scaled / p
        return added

    def learn(self, outcomes: Outcomes) -> None:
        super().learn(outcomes)
        self.round += 1
        period_is_over = self.round % self.period == 0
        if period_is_over:
            super().reset()

    def state(self) -> dict[str, np.ndarray]:
        state = super().state()
        state["round"] = np.array(self.round)
        return state

    def restore(self, state: SavedState) -> None:
        round_count = restored(state, "round", ())
        super().restore(state)
        self.round = int(round_count)
