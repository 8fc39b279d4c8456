"""Rewards: a vector v over the classes, such that <v, y> is what an example with label y is
worth.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tailor.errors import InputError
from tailor.registry import Registry
from tailor.task import Task


class Reward(ABC):
    """Turns what has been labelled so far into v, each entry in [-1/K, 1/K]."""

    #: whether _weights() is given the keyword `difficulty`
    needs_difficulty: ClassVar[bool] = False

    def weights(
        self,
        task: Task,
        round: int,
        counts: np.ndarray,
        labelled: int,
        difficulty: np.ndarray | None = None,
    ) -> np.ndarray:
        """-> v (K,) float64.

        counts (K,): labels so far of each class, among `labelled` examples. difficulty (K,) in [0,
        1]: how much of each class's labels was news to the model when they were picked, where that
        is known.
        """
        counted = np.asarray(counts, dtype=np.float64)
        if counted.shape != (task.size,):
            raise InputError(f"counts have shape {counted.shape}: give one a class, ({task.size},)")
        if not (np.isfinite(counted) & (counted >= 0)).all():
            raise InputError(f"counts hold {counted[~(counted >= 0)]}: they must be 0 or more")
        if labelled < 0 or (counted > labelled + 1e-6).any():
            raise InputError(
                f"a class is counted {counted.max():g} times among {labelled} labelled examples"
            )
        more: dict[str, Any] = {"difficulty": difficulty} if self.needs_difficulty else {}
        return _checked(task, self._weights(task, round, counted, labelled, **more))

    @abstractmethod
    def _weights(self, task: Task, round: int, counts: np.ndarray, labelled: int) -> Any: ...


def _checked(task: Task, weights: Any) -> np.ndarray:
    v = np.array(weights, dtype=np.float64)
    if v.shape != (task.size,):
        raise InputError(f"weights have shape {v.shape}: give one a class, ({task.size},)")
    limit = 1 / task.size
    wrong = ~(np.abs(v) <= limit * (1 + 1e-6))  # float32 may round up; NaN fails too
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"weight of class {task.classes[k]!r} is {v[k]:.6g}: with {task.size} classes it "
            "must lie in "
            f"[-1/{task.size}, 1/{task.size}]; scale the vector"
        )
    return v


class Diversity(Reward):
    """A class is worth the less the more of it has been labelled: v_k = 1 / (K max(1,
    count_k)^power).

    With negative weighting a class found in more than half of the labelled examples gets the
    opposite sign, for there the label 0 is the rare one. None: on for multi-label tasks, off for
    multi-class. TAILOR paper, sections 4.1 and "Negative Weighting for Common Classes". A power of
    1/2 leans less on the rarest.
    """

    def __init__(self, *, negative: bool | None = None, power: float = 1.0) -> None:
        if not 0 <= power <= 4:
            raise InputError(f"power is {power}: it must lie in [0, 4]; 1 is the paper's")
        self.negative = negative
        self.power = power

    def _weights(self, task: Task, round: int, counts: np.ndarray, labelled: int) -> Any:
        v = 1 / (task.size * np.maximum(1, counts) ** self.power)
        negative = task.kind == "multi-label" if self.negative is None else self.negative
        return np.where(counts > labelled / 2, -v, v) if negative else v


class Search(Reward):
    """Every positive label is worth the same: v_k = 1 / K."""

    def _weights(self, task: Task, round: int, counts: np.ndarray, labelled: int) -> Any:
        return np.full(task.size, 1 / task.size)


class Difficulty(Reward):
    """A class is worth what the model gets wrong of it: v_k in proportion to its difficulty, the
    hardest 1 / K.

    For balanced data, where counting labels says nothing; together with evidence="surprise" arms
    are pulled that find what the model does not know of the classes it knows least.
    """

    needs_difficulty = True

    def _weights(
        self,
        task: Task,
        round: int,
        counts: np.ndarray,
        labelled: int,
        difficulty: np.ndarray | None = None,
    ) -> Any:
        if difficulty is None:
            return np.full(task.size, 1 / task.size)
        return difficulty / (max(difficulty.max(), 1e-9) * task.size)


class Domain(Reward):
    """The user's own: a vector (K,), or a function (round, counts) that gives one. Never
    clipped.
    """

    def __init__(self, *, weights: Any | Callable[[int, np.ndarray], Any]) -> None:
        self.given = weights

    def _weights(self, task: Task, round: int, counts: np.ndarray, labelled: int) -> Any:
        return self.given(round, counts.copy()) if callable(self.given) else self.given


rewards: Registry[Reward] = Registry(
    "reward",
    "tailor.rewards",
    {
        "diversity": "tailor.bandits.rewards:Diversity",
        "search": "tailor.bandits.rewards:Search",
        "domain": "tailor.bandits.rewards:Domain",
        "difficulty": "tailor.bandits.rewards:Difficulty",
    },
)


def make_reward(given: str | tuple[str, dict[str, Any]] | Reward) -> Reward:
    """A reward from its name, "name(option=value)", (name, options) or itself."""
    if isinstance(given, Reward):
        return given
    name, options = rewards.named(given)
    return rewards.make(name, **options)
