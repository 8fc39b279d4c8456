"""DEAL: EXP4 that starts anew every few rounds, for arms whose worth drifts."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tailor.bandits.base import Contest, Fit, Outcomes
from tailor.bandits.checks import restored
from tailor.bandits.selectors.comb import Exp4
from tailor.bandits.selectors.exp4 import check_delta, confidence, weighted_accuracy
from tailor.errors import InputError


class Deal(Exp4):
    """REXP4 with ALBL's reward: weights go back to 1 every ceil((M ln M)^(1/3) (rounds / V)^(2/3))
    rounds.

    Pang, Dong, Wu and Hospedales 2018, "Dynamic Ensemble Active Learning". `variation` is the
    budget V. With bonus="every" each slot raises every arm's weight by EXP4.P's confidence bound,
    which fails with chance `delta`.
    """

    name = "deal"

    def __init__(
        self,
        contest: Contest,
        *,
        variation: float = 1.0,
        bonus: str | None = None,
        delta: float = 0.1,
    ) -> None:
        if not 0 < variation < math.inf:
            raise InputError(f"variation is {variation}: it must be above 0 and finite")
        if bonus not in (None, "every"):
            raise InputError(f"bonus is {bonus!r}: it must be none or every")
        super().__init__(contest)
        self.delta = check_delta(delta)
        self.bonus = bonus
        m = contest.size
        period = (m * math.log(m)) ** (1 / 3) * (contest.rounds / variation) ** (2 / 3)
        self.period = max(1, math.ceil(period))
        self.round = 0

    def reward(self, fit: Fit) -> float:
        return weighted_accuracy(fit, self.contest.total)

    def bonus_for_every_arm(self, p: np.ndarray) -> np.ndarray | float:
        if self.bonus is None:
            return 0.0
        added: np.ndarray = self.floor * confidence(self.contest, self.delta) / p
        return added

    def learn(self, outcomes: Outcomes) -> None:
        super().learn(outcomes)
        self.round += 1
        if self.round % self.period == 0:
            self.log_weights = np.zeros(self.contest.size)

    def state(self) -> dict[str, np.ndarray]:
        return {**super().state(), "round": np.array(self.round)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        count = restored(state, "round", ())
        super().restore(state)
        self.round = int(count)
