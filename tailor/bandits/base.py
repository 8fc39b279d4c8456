"""What every meta-selector is: it plans arms, and learns from what they found. It never sees
examples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tailor.task import Task


@dataclass(frozen=True)
class Contest:
    """What a selector knows before the first round: the arms that compete, and how long."""

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
    """How the retrained model does: what ALBL, COMB and DEAL turn into a reward."""

    correct: np.ndarray  # (m,) in [0, 1]: share of classes right, for every answered pick so far
    chances: np.ndarray  # (m,) the probability with which the arm of each was drawn
    rates: np.ndarray  # (K,) share of the unlabelled pool that is predicted to be in each class
    pool: int  # N
    reward: float | None = None  # the user's own, in [0, 1], in place of the selector's


@dataclass(frozen=True)
class Outcomes:
    """What a round found. Skipped examples are not in it."""

    round: int  # 0 for the first
    weights: np.ndarray  # (K,) v of the round
    arms: np.ndarray  # (n,) int, the arm behind each answered pick
    labels: np.ndarray  # (n, K) in [0, 1]
    predicted: np.ndarray | None = None  # (n, K) the model's probabilities when each was picked
    fit: Fit | None = None  # given to selectors whose needs_fit is true


class Selector(ABC):
    """A bandit over arms. Options are keyword-only arguments after the contest."""

    name: ClassVar[str]
    #: whether learn() must be given Outcomes.fit
    needs_fit: ClassVar[bool] = False

    def __init__(self, contest: Contest) -> None:
        self.contest = contest

    @abstractmethod
    def plan(self, slots: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """weights (K,) float: v of this round -> (slots,) int64, the arm of each slot. Changes no
        state.
        """

    @abstractmethod
    def learn(self, outcomes: Outcomes) -> None:
        """Called once after each round, when the model has been retrained."""

    def chances(self, plan: np.ndarray) -> np.ndarray:
        """(M,) the probability with which each arm is drawn for a slot; by default its share of the
        plan.
        """
        return np.bincount(plan, minlength=self.contest.size) / max(1, len(plan))

    def beliefs(self) -> np.ndarray | None:
        """(M, K) the label that each arm is expected to find, for selectors that hold such a
        belief.
        """
        return None

    def state(self) -> dict[str, np.ndarray]:
        """All that learning has changed, as plain arrays."""
        return {}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:  # noqa: B027  a selector that learns nothing has no state
        """Go on from what state() gave."""
