"""The posterior of a multi-label task: a Beta distribution for every arm and class."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailor.bandits import checks
from tailor.bandits.posteriors.base import FLOOR, Posterior
from tailor.errors import InputError


class BetaPosterior(Posterior):
    """Every class of every arm has a Beta of its own. Evidence: (…, 0) for, (…, 1) against."""

    parts = 2

    def _resolve(self, prior: Any) -> tuple[np.ndarray, ...]:
        if not isinstance(prior, tuple):
            full = self._full_prior(prior)
            return full, full
        parts = len(prior)
        if parts != 2:
            raise InputError(f"a prior of {parts} parts: give one, or a pair (for, against)")
        prior_for, prior_against = prior
        full_for = self._full_prior(prior_for)
        full_against = self._full_prior(prior_against)
        return full_for, full_against

    def parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """a and b, (M, K) each."""
        prior_for, prior_against = self.priors()
        scale = self.scale
        evidence_for = self.evidence[:, :, 0]
        evidence_against = self.evidence[:, :, 1]
        a = scale * prior_for + evidence_for
        b = scale * prior_against + evidence_against
        a = np.maximum(a, FLOOR)
        b = np.maximum(b, FLOOR)
        return a, b

    def _evidence(self, vectors: np.ndarray) -> np.ndarray:
        against = 1 - vectors
        return np.stack([vectors, against], axis=2)

    def mean(self) -> np.ndarray:
        a, b = self.parameters()
        total = a + b
        share: np.ndarray = a / total
        return share

    def plan(
        self,
        slots: int,
        weights: np.ndarray,
        rng: np.random.Generator,
        *,
        aggregate: bool = True,
        device: str = "cpu",
    ) -> np.ndarray:
        slots = checks.check_slots(slots)
        v = checks.check_weights(self.contest, weights)
        a, b = self.parameters()
        if device != "cpu":
            from tailor.bandits.posteriors.torch_plan import torch_plan

            return torch_plan(
                a,
                b,
                v,
                slots,
                rng,
                device=device,
            )
        from tailor.bandits.posteriors.gamma import beta_plan

        seed = int(rng.integers(2**63))
        plan: np.ndarray = beta_plan(
            a,
            b,
            v,
            slots,
            seed,
        )
        return plan

    def scores(
        self,
        draws: int,
        weights: np.ndarray,
        rng: np.random.Generator,
        *,
        aggregate: bool = True,
    ) -> np.ndarray:
        from tailor.bandits.posteriors.gamma import beta_scores

        draws = checks.check_slots(draws)
        v = checks.check_weights(self.contest, weights)
        a, b = self.parameters()
        seed = int(rng.integers(2**63))
        scores: np.ndarray = beta_scores(
            a,
            b,
            v,
            draws,
            seed,
        )
        return scores
