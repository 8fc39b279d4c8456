"""The posterior of a multi-class task: a Dirichlet distribution for every arm."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailor.bandits import checks
from tailor.bandits.posteriors.base import FLOOR, Posterior
from tailor.errors import InputError

#: what a vector may lack to a sum of 1, or be above it, by rounding
ROUNDING = 1e-6


class DirichletPosterior(Posterior):
    """One Dirichlet an arm, over the K classes and a "rest" of weight 0, the last of K + 1 parts.

    The rest takes what a vector lacks to a sum of 1; with labels, which are one-hot, it stays
    empty. Its prior is 0 unless the prior is given by arm and part, (M, K + 1).
    """

    parts = 1
    rest = 1

    def _resolve(self, prior: Any) -> tuple[np.ndarray, ...]:
        if isinstance(prior, tuple):
            raise InputError(
                "a pair of priors is for multi-label tasks: a Dirichlet has one number a class"
            )
        arms = self.contest.size
        parts = self.contest.task.size + 1
        rest = np.zeros((arms, 1))
        if np.shape(prior) == (arms, parts):
            full = checks.as_floats(prior)
            prior = full[:, :-1]
            rest = full[:, -1:]
            _check_rest(rest)
        by_class = self._full_prior(prior)
        with_rest = np.concatenate([by_class, rest], axis=1)
        return (with_rest,)

    def parameters(self) -> np.ndarray:
        """(M, K + 1); the last column is the rest."""
        (prior,) = self.priors()
        evidence = self.evidence[:, :, 0]
        a = self.scale * prior + evidence
        # The rest may be 0: it has no weight, and is left out where no arm has any of it.
        of_classes = a[:, :-1]
        np.maximum(of_classes, FLOOR, out=of_classes)
        return a

    def _evidence(self, vectors: np.ndarray) -> np.ndarray:
        sums = vectors.sum(axis=1)
        is_above = sums > 1 + ROUNDING
        if is_above.any():
            row = int(np.argmax(sums))
            largest = sums[row]
            raise InputError(f"the vector in row {row} sums to {largest:.6g}: the limit is 1")
        lacking = np.maximum(0.0, 1 - sums)
        # Rounding of soft labels is no evidence.
        is_rounding = lacking < ROUNDING
        lacking[is_rounding] = 0
        with_rest = np.column_stack([vectors, lacking])
        return with_rest[:, :, None]

    def mean(self) -> np.ndarray:
        a = self.parameters()
        totals = a.sum(axis=1, keepdims=True)
        of_classes = a[:, :-1]
        share: np.ndarray = of_classes / totals
        return share

    def _groups(self, weights: np.ndarray, aggregate: bool) -> tuple[np.ndarray, np.ndarray]:
        """Parameters (M, G) and weights (G,), the classes of one weight as one group.

        Exact, since sums of a Dirichlet's parts are Dirichlet.
        """
        a = self.parameters()
        v = checks.check_weights(self.contest, weights)
        v = np.append(v, 0.0)
        has_rest = a[:, -1].any()
        if not has_rest:
            a = a[:, :-1]
            v = v[:-1]
        if not aggregate:
            return np.ascontiguousarray(a), v
        # Sorted by weight, the classes of a group lie side by side.
        order = np.argsort(v, kind="stable")
        sorted_weights = v[order]
        sorted_parameters = a[:, order]
        distinct, starts = np.unique(sorted_weights, return_index=True)
        sums = np.add.reduceat(sorted_parameters, starts, axis=1)
        return np.ascontiguousarray(sums), distinct

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
        a, v = self._groups(weights, aggregate)
        if device != "cpu":
            from tailor.bandits.posteriors.torch_plan import torch_plan

            return torch_plan(
                a,
                None,
                v,
                slots,
                rng,
                device=device,
            )
        from tailor.bandits.posteriors.gamma import dirichlet_plan

        seed = int(rng.integers(2**63))
        plan: np.ndarray = dirichlet_plan(
            a,
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
        from tailor.bandits.posteriors.gamma import dirichlet_scores

        draws = checks.check_slots(draws)
        a, v = self._groups(weights, aggregate)
        seed = int(rng.integers(2**63))
        scores: np.ndarray = dirichlet_scores(
            a,
            v,
            draws,
            seed,
        )
        return scores


def _check_rest(rest: np.ndarray) -> None:
    is_not_negative = rest >= 0
    is_right = is_not_negative & np.isfinite(rest)
    if not is_right.all():
        raise InputError("the prior of the rest, the last column, must be 0 or more and finite")
