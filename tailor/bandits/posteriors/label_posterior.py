"""What is believed about every arm's labels, apart from what is done with it.

Evidence (decayed sums of what an arm's picks showed) and prior are kept apart. At round t an arm's
parameters are `scale * prior_t + evidence`, evidence <- g * evidence + sum. With
forgetting="shrink" (the TAILOR paper: a <- g * a + sum) scale is g^t; with forgetting="prior" (a <-
prior + g * (a - prior) + sum) it is 1, and an arm that is never pulled keeps its prior. A prior may
be a function of the round, so an arm may inherit one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tailor.bandits import checks
from tailor.bandits.base import Contest
from tailor.errors import InputError

#: a number, an array (K,) or (M, K), for Beta a pair of these, or a function (round, contest,
#: evidence) to it
Prior = float | np.ndarray | tuple[Any, Any] | Callable[[int, Contest, np.ndarray], Any]

FORGETTING = ("shrink", "prior")
#: keeps a parameter positive when thousands of rounds have shrunk a prior to nothing
_FLOOR = 1e-300


class Posterior(ABC):
    """Beliefs about M arms and K classes. `evidence` is (M, K + R, P), P numbers for each arm and
    class.
    """

    parts: int  # P
    rest = 0  # R: parts besides the classes

    def __init__(
        self,
        contest: Contest,
        *,
        forget: float = 0.9,
        forgetting: str = "shrink",
        prior: Prior = 1.0,
    ) -> None:
        if not 0 < forget <= 1:
            raise InputError(f"forget is {forget}: it must lie in (0, 1]; 1 forgets nothing")
        if forgetting not in FORGETTING:
            raise InputError(f"forgetting is {forgetting!r}: it must be one of {FORGETTING}")
        self.contest = contest
        self.forget = float(forget)
        self.forgetting = forgetting
        self.prior = prior
        self.round = 0
        self.evidence = np.zeros((contest.size, contest.task.size + self.rest, self.parts))
        self.priors()  # a wrong prior is told at once

    def _one(self, prior: Any) -> np.ndarray:
        """A number, (K,) or (M, K) -> (M, K), all positive."""
        shape = (self.contest.size, self.contest.task.size)
        try:
            full = np.broadcast_to(np.asarray(prior, dtype=np.float64), shape)
        except (TypeError, ValueError):
            given = getattr(np.asarray(prior, dtype=object), "shape", None)
            raise InputError(
                f"prior of shape {given}: give a number, {shape[1:]} by class or {shape} by arm "
                "and class"
            ) from None
        wrong = ~((full > 0) & np.isfinite(full))
        if wrong.any():
            raise InputError(f"prior holds {full[wrong][0]}: it must be above 0 and finite")
        return full

    @abstractmethod
    def _resolve(self, prior: Any) -> tuple[np.ndarray, ...]:
        """A prior as given -> one (M, K) for each kind of parameter."""

    def priors(self) -> tuple[np.ndarray, ...]:
        """This round's prior, before forgetting."""
        if callable(self.prior):
            seen = self.evidence.view()
            seen.flags.writeable = False
            return self._resolve(self.prior(self.round, self.contest, seen))
        return self._resolve(self.prior)

    @property
    def scale(self) -> float:
        """What is left of the prior."""
        return self.forget**self.round if self.forgetting == "shrink" else 1.0

    def learn(self, arms: np.ndarray, vectors: np.ndarray) -> None:
        """One round: arms (n,), vectors (n, K) in [0, 1]. Forgets even where n is 0."""
        checked = checks.check_arms(self.contest, arms)
        rows = self._evidence(checks.check_vectors(self.contest, vectors, len(checked)))
        sums = np.zeros_like(self.evidence)
        np.add.at(sums, checked, rows)
        self.evidence = self.forget * self.evidence + sums
        self.round += 1

    @abstractmethod
    def _evidence(self, vectors: np.ndarray) -> np.ndarray:
        """vectors (n, K) -> (n, K, P)."""

    @abstractmethod
    def mean(self) -> np.ndarray:
        """(M, K): the expected label of each arm's next pick."""

    @abstractmethod
    def plan(
        self,
        slots: int,
        weights: np.ndarray,
        rng: np.random.Generator,
        *,
        aggregate: bool = True,
        device: str = "cpu",
    ) -> np.ndarray:
        """(slots,) int64: for each slot a fresh sample, and the arm whose <weights, theta> is
        largest.
        """

    @abstractmethod
    def scores(
        self, draws: int, weights: np.ndarray, rng: np.random.Generator, *, aggregate: bool = True
    ) -> np.ndarray:
        """(draws, M): samples of <weights, theta>."""

    def state(self) -> dict[str, np.ndarray]:
        return {"round": np.array(self.round), "evidence": self.evidence.copy()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        count = checks.restored(state, "round", ())
        evidence = checks.restored(state, "evidence", self.evidence.shape)
        self.round = int(count)
        self.evidence = evidence.astype(np.float64)


class BetaPosterior(Posterior):
    """Multi-label: every class of every arm has a Beta of its own. Evidence: (…, 0) for, (…, 1)
    against.
    """

    parts = 2

    def _resolve(self, prior: Any) -> tuple[np.ndarray, ...]:
        if isinstance(prior, tuple):
            if len(prior) != 2:
                raise InputError(
                    f"a prior of {len(prior)} parts: give one, or a pair (for, against)"
                )
            return self._one(prior[0]), self._one(prior[1])
        return self._one(prior), self._one(prior)

    def parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """a and b, (M, K) each."""
        first, second = (
            np.maximum(self.scale * p + self.evidence[:, :, i], _FLOOR)
            for i, p in enumerate(self.priors())
        )
        return first, second

    def _evidence(self, vectors: np.ndarray) -> np.ndarray:
        return np.stack([vectors, 1 - vectors], axis=2)

    def mean(self) -> np.ndarray:
        a, b = self.parameters()
        share: np.ndarray = a / (a + b)
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

            return torch_plan(a, b, v, slots, rng, device=device)
        from tailor.bandits.posteriors.gamma import beta_plan

        planned: np.ndarray = beta_plan(a, b, v, slots, int(rng.integers(2**63)))
        return planned

    def scores(
        self, draws: int, weights: np.ndarray, rng: np.random.Generator, *, aggregate: bool = True
    ) -> np.ndarray:
        from tailor.bandits.posteriors.gamma import beta_scores

        draws = checks.check_slots(draws)
        v = checks.check_weights(self.contest, weights)
        drawn: np.ndarray = beta_scores(*self.parameters(), v, draws, int(rng.integers(2**63)))
        return drawn


class DirichletPosterior(Posterior):
    """Multi-class: one Dirichlet an arm, over the K classes and a "rest" of weight 0, the last of K
    + 1 parts.

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
        shape = (self.contest.size, self.contest.task.size + 1)
        if np.shape(prior) == shape:
            full = np.asarray(prior, dtype=np.float64)
            if not ((full[:, -1] >= 0) & np.isfinite(full[:, -1])).all():
                raise InputError(
                    "the prior of the rest, the last column, must be 0 or more and finite"
                )
            return (np.concatenate([self._one(full[:, :-1]), full[:, -1:]], axis=1),)
        return (np.concatenate([self._one(prior), np.zeros((shape[0], 1))], axis=1),)

    def parameters(self) -> np.ndarray:
        """(M, K + 1); the last column is the rest."""
        (prior,) = self.priors()
        a = self.scale * prior + self.evidence[:, :, 0]
        a[:, :-1] = np.maximum(a[:, :-1], _FLOOR)
        return a

    def _evidence(self, vectors: np.ndarray) -> np.ndarray:
        sums = vectors.sum(axis=1)
        if (sums > 1 + 1e-6).any():
            row = int(np.argmax(sums))
            raise InputError(f"the vector in row {row} sums to {sums[row]:.6g}: the limit is 1")
        lacking = np.maximum(0.0, 1 - sums)
        lacking[lacking < 1e-6] = 0  # rounding of soft labels is no evidence
        return np.concatenate([vectors, lacking[:, None]], axis=1)[:, :, None]

    def mean(self) -> np.ndarray:
        a = self.parameters()
        return a[:, :-1] / a.sum(axis=1, keepdims=True)

    def _groups(self, weights: np.ndarray, aggregate: bool) -> tuple[np.ndarray, np.ndarray]:
        """Parameters (M, G) and weights (G,): exact, as sums of a Dirichlet's parts are
        Dirichlet.
        """
        a = self.parameters()
        v = np.append(checks.check_weights(self.contest, weights), 0.0)
        if not a[:, -1].any():
            a = a[:, :-1]
            v = v[:-1]
        if not aggregate:
            return np.ascontiguousarray(a), v
        order = np.argsort(v, kind="stable")
        distinct, starts = np.unique(v[order], return_index=True)
        return np.ascontiguousarray(np.add.reduceat(a[:, order], starts, axis=1)), distinct

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

            return torch_plan(a, None, v, slots, rng, device=device)
        from tailor.bandits.posteriors.gamma import dirichlet_plan

        planned: np.ndarray = dirichlet_plan(a, v, slots, int(rng.integers(2**63)))
        return planned

    def scores(
        self, draws: int, weights: np.ndarray, rng: np.random.Generator, *, aggregate: bool = True
    ) -> np.ndarray:
        from tailor.bandits.posteriors.gamma import dirichlet_scores

        draws = checks.check_slots(draws)
        a, v = self._groups(weights, aggregate)
        drawn: np.ndarray = dirichlet_scores(a, v, draws, int(rng.integers(2**63)))
        return drawn


def posterior(contest: Contest, **options: Any) -> Posterior:
    """The posterior that fits the task's kind of label."""
    kind = DirichletPosterior if contest.task.kind == "multi-class" else BetaPosterior
    return kind(contest, **options)
