"""What every selector is, and the records that it is given.

A selector sees arms and labels, never examples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from tailor.errors import InputError
from tailor.task import Task

#: what was learned, by name: arrays alone, so that it can be stored anywhere
SavedState = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Contest:
    """The arms that a selector chooses among, and for how long."""

    task: Task
    arms: tuple[str, ...]  # M names
    families: tuple[str, ...]  # (M,) the family of each arm
    classes: tuple[int, ...]  # (M,) the class an arm works for, or -1
    rounds: int  # planned rounds
    slots: int  # planned picks a round

    @property
    def size(self) -> int:
        """M, the number of arms."""
        return len(self.arms)

    @property
    def total(self) -> int:
        """T, the number of slots over all rounds."""
        return self.rounds * self.slots


@dataclass(frozen=True)
class Fit:
    """How the retrained model does: ALBL, COMB and DEAL turn it into their reward."""

    correct: np.ndarray  # (m,) in [0, 1]: share of classes right, for every answered pick so far
    chances: np.ndarray  # (m,) the probability with which the arm of each was drawn
    rates: np.ndarray  # (K,) share of the unlabelled pool that is predicted to be in each class
    pool: int  # N
    reward: float | None = None  # the user's own, in [0, 1], in place of the selector's


@dataclass(frozen=True)
class Outcomes:
    """The answers to the picks of a round. Skipped examples are not among them."""

    round: int  # 0 for the first
    weights: np.ndarray  # (K,) v of the round
    arms: np.ndarray  # (n,) int, the arm behind each answered pick
    labels: np.ndarray  # (n, K) in [0, 1]
    predicted: np.ndarray | None = None  # (n, K) the model's probabilities when each was picked
    fit: Fit | None = None  # given to selectors whose needs_fit is true

    def probabilities(self) -> np.ndarray:
        """(n, K) float64: `predicted`, clipped to [0, 1].

        Raises InputError where `predicted` is None.
        """
        if self.predicted is None:
            raise InputError(
                "surprise needs the model's probabilities at the time of picking: give "
                "Outcomes.predicted"
            )
        predicted = np.asarray(self.predicted, np.float64)
        return np.clip(predicted, 0, 1)


class Selector(ABC):
    """A bandit over arms: it plans which arm gets each slot, and learns from the labels found.

    A selector is made from its options alone, all of them keyword-only. `begin(contest)` hands it
    the arms; only then can it plan and learn. A learner calls `begin` once at its start, and again
    whenever everything has to be learned anew: after a correction of an answer that the selector
    has learned from, and after a change of the classes. A subclass that learns overrides `reset`,
    `state` and `restore`.

    >>> from tailor.bandits import RandomMeta
    >>> from tailor.task import MultiClass
    >>> contest = Contest(MultiClass(2), ("a", "b"), ("a", "b"), (-1, -1), rounds=3, slots=4)
    >>> RandomMeta().begin(contest).plan(3, np.array([0.5, 0.5]), np.random.default_rng(0))
    array([1, 1, 1])
    """

    name: ClassVar[str]
    #: whether learn() must be given Outcomes.fit
    needs_fit: ClassVar[bool] = False
    _contest: Contest | None = None

    @property
    def contest(self) -> Contest:
        """The arms that it chooses among. Raises InputError before begin()."""
        if self._contest is None:
            raise InputError(
                f"selector {self.name!r} has no arms yet: call begin(contest) first, or hand it "
                "to a Learner, which does"
            )
        return self._contest

    def begin(self, contest: Contest) -> Self:
        """Start with these arms and with nothing learned. Returns the selector itself."""
        self._contest = contest
        self.reset()
        return self

    def reset(self) -> None:  # noqa: B027  a selector that learns nothing has nothing to forget
        """Forget all that was learned. begin() calls it when `contest` is set."""

    @abstractmethod
    def plan(
        self,
        slots: int,
        weights: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Choose the arm of each slot of a round. Changes no state.

        slots    how many picks
        weights  (K,) float: v of this round, what a label of each class is worth
        rng      where all randomness comes from

        Returns (slots,) int64, indices of arms.
        """

    @abstractmethod
    def learn(self, outcomes: Outcomes) -> None:
        """Take in the answers to a round. Called once a round, when the model is retrained."""

    def chances(self, plan: np.ndarray) -> np.ndarray:
        """(M,) the probability with which each arm is drawn for a slot; by default its share of the
        plan.
        """
        arms = self.contest.size
        slots_of_arms = np.bincount(plan, minlength=arms)
        slots = max(1, len(plan))
        return slots_of_arms / slots

    def beliefs(self) -> np.ndarray | None:
        """(M, K) the label that each arm is expected to find; None where the selector expects
        nothing of the kind.
        """
        return None

    def state(self) -> dict[str, np.ndarray]:
        """All that learning has changed, as plain arrays that later learning leaves alone."""
        return {}

    def restore(self, state: SavedState) -> None:  # noqa: B027  as reset
        """Go on from what state() gave."""
