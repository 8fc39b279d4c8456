"""What every posterior over labels is: evidence that fades, a prior, and samples.

Evidence (decayed sums of what an arm's picks showed) and prior are kept apart. At round t an arm's
parameters are `scale * prior_t + evidence`, evidence <- g * evidence + sum. With
forgetting="shrink" (the TAILOR paper: a <- g * a + sum) scale is g^t; with forgetting="prior" (a <-
prior + g * (a - prior) + sum) it is 1, and an arm that is never pulled keeps its prior. A prior may
be a function of the round, so an arm may inherit one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from tailor.bandits import checks
from tailor.bandits.base import Contest, SavedState
from tailor.errors import InputError

#: (round, contest, evidence) -> a prior
PriorFunction = Callable[[int, Contest, np.ndarray], Any]
#: a number, an array (K,) or (M, K), for Beta a pair of these, or a function to it
Prior = float | np.ndarray | tuple[Any, Any] | PriorFunction

FORGETTING = ("shrink", "prior")
#: keeps a parameter positive when thousands of rounds have shrunk a prior to nothing
FLOOR = 1e-300


def check_forgetting(forget: float, forgetting: str) -> None:
    """Raise InputError where one of the two options is out of its range."""
    if not 0 < forget <= 1:
        raise InputError(f"forget is {forget}: it must lie in (0, 1]; 1 forgets nothing")
    if forgetting not in FORGETTING:
        raise InputError(f"forgetting is {forgetting!r}: it must be one of {FORGETTING}")


class Posterior(ABC):
    """A distribution over the labels of M arms and K classes.

    `evidence` is (M, K + R, P): P numbers for each arm and class, and for R further parts.
    """

    parts: int  # P
    rest = 0  # R

    def __init__(
        self,
        contest: Contest,
        *,
        forget: float = 0.9,
        forgetting: str = "shrink",
        prior: Prior = 1.0,
    ) -> None:
        check_forgetting(forget, forgetting)
        self.contest = contest
        self.forget = float(forget)
        self.forgetting = forgetting
        self.prior = prior
        self.round = 0
        arms = contest.size
        columns = contest.task.size + self.rest
        shape = (arms, columns, self.parts)
        self.evidence = np.zeros(shape)
        self.priors()  # raises where the prior does not fit

    def _full_prior(self, prior: Any) -> np.ndarray:
        """A number, (K,) or (M, K) -> (M, K), all positive."""
        arms = self.contest.size
        classes = self.contest.task.size
        shape = (arms, classes)
        try:
            numbers = checks.as_floats(prior)
            full = np.broadcast_to(numbers, shape)
        except (TypeError, ValueError):
            # As objects, ragged lists and words have a shape too.
            prior_shape = np.asarray(prior, dtype=object).shape
            raise InputError(
                f"prior of shape {prior_shape}: give a number, ({classes},) by class or {shape} by "
                "arm and class"
            ) from None
        _check_positive(full)
        return full

    @abstractmethod
    def _resolve(self, prior: Any) -> tuple[np.ndarray, ...]:
        """A prior as given -> one (M, K) for each kind of parameter."""

    def priors(self) -> tuple[np.ndarray, ...]:
        """This round's prior, before forgetting."""
        if not callable(self.prior):
            return self._resolve(self.prior)
        # A user's function sees the evidence itself, which it must not change.
        evidence = self.evidence.view()
        evidence.flags.writeable = False
        prior = self.prior(self.round, self.contest, evidence)
        return self._resolve(prior)

    @property
    def scale(self) -> float:
        """The share of the prior that is not forgotten."""
        if self.forgetting == "shrink":
            return self.forget**self.round
        return 1.0

    def learn(self, arms: np.ndarray, vectors: np.ndarray) -> None:
        """One round: arms (n,), vectors (n, K) in [0, 1]. Forgets even where n is 0."""
        contest = self.contest
        arms = checks.check_arms(contest, arms)
        picks = len(arms)
        vectors = checks.check_vectors(contest, vectors, picks)
        rows = self._evidence(vectors)
        sums = np.zeros_like(self.evidence)
        # Unlike sums[arms] += rows, this counts an arm as often as it was pulled.
        np.add.at(sums, arms, rows)
        remembered = self.forget * self.evidence
        self.evidence = remembered + sums
        self.round += 1

    @abstractmethod
    def _evidence(self, vectors: np.ndarray) -> np.ndarray:
        """vectors (n, K) -> (n, K + R, P)."""

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
        self,
        draws: int,
        weights: np.ndarray,
        rng: np.random.Generator,
        *,
        aggregate: bool = True,
    ) -> np.ndarray:
        """(draws, M): samples of <weights, theta>."""

    def state(self) -> dict[str, np.ndarray]:
        return {
            "round": np.array(self.round),
            "evidence": self.evidence.copy(),
        }

    def restore(self, state: SavedState) -> None:
        shape = self.evidence.shape
        # Both are checked before either is taken over.
        round_count = checks.restored(state, "round", ())
        evidence = checks.restored(state, "evidence", shape)
        self.round = int(round_count)
        self.evidence = evidence.astype(np.float64)


def _check_positive(prior: np.ndarray) -> None:
    is_positive = prior > 0
    is_right = is_positive & np.isfinite(prior)
    if not is_right.all():
        wrong_numbers = prior[~is_right]
        first_wrong = wrong_numbers[0]
        raise InputError(f"prior holds {first_wrong}: it must be above 0 and finite")
