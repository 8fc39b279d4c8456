"""When to stop asking. Rules can be combined: the first that is met ends the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailor.common.checks import check_number, check_whole
from tailor.errors import InputError


@dataclass(frozen=True)
class RunProgress:
    """How far a run has come, as stopping rules see it.

    labels    examples that were answered, those of the hold-out included
    counts    (K,) labels of each class
    classes   their K names
    accuracy  on the hold-out, after each training; empty without a hold-out
    lower     the lower end of the interval of each accuracy
    """

    labels: int
    counts: np.ndarray
    classes: tuple[str, ...]
    accuracy: tuple[float, ...]
    lower: tuple[float, ...]


class StoppingRule(ABC):
    """A reason to ask for no more labels."""

    @abstractmethod
    def met(self, progress: RunProgress) -> str | None:
        """Why to stop, in words for the user, or None to go on."""


@dataclass(frozen=True)
class Budget(StoppingRule):
    """Stop when so many labels were given.

    >>> progress = RunProgress(50, np.array([20, 30]), ("cat", "dog"), (), ())
    >>> Budget(50).met(progress)
    'the budget of 50 labels is spent'
    """

    labels: int

    def __post_init__(self) -> None:
        check_whole(self.labels, "budget")

    def met(self, progress: RunProgress) -> str | None:
        if progress.labels < self.labels:
            return None
        return f"the budget of {self.labels} labels is spent"


@dataclass(frozen=True)
class TargetAccuracy(StoppingRule):
    """Stop when the accuracy is surely high enough: the lower end of the hold-out's interval
    reaches the target, in (0, 1].

    >>> progress = RunProgress(50, np.array([20, 30]), ("cat", "dog"), (0.95,), (0.91,))
    >>> TargetAccuracy(0.9).met(progress)
    'accuracy on the hold-out is at least 0.910, the target was 0.9'
    """

    accuracy: float

    def __post_init__(self) -> None:
        accuracy = check_number(self.accuracy, "target accuracy", "it must lie in (0, 1]")
        if not 0 < accuracy <= 1:
            raise InputError(f"target accuracy is {self.accuracy}: it must lie in (0, 1]")

    def met(self, progress: RunProgress) -> str | None:
        if not progress.lower:
            return None
        lower = progress.lower[-1]
        if lower < self.accuracy:
            return None
        return f"accuracy on the hold-out is at least {lower:.3f}, the target was {self.accuracy}"


@dataclass(frozen=True)
class Plateau(StoppingRule):
    """Stop when the last `rounds` trainings brought less than `gain` on the hold-out over the best
    before them.

    >>> progress = RunProgress(50, np.array([20, 30]), ("cat", "dog"), (0.90, 0.89, 0.90), ())
    >>> Plateau(rounds=2).met(progress)
    'accuracy on the hold-out grew by less than 0.005 in 2 rounds'
    """

    rounds: int = 5
    gain: float = 0.005

    def __post_init__(self) -> None:
        gain = check_number(self.gain, "gain of a plateau", "0 or more is needed")
        # What is no whole number is left to check_whole, which says so.
        too_few_rounds = isinstance(self.rounds, int) and self.rounds < 1
        if gain < 0 or too_few_rounds:
            raise InputError(
                f"plateau of {self.rounds} rounds and {self.gain}: rounds >= 1 and gain >= 0 are "
                "needed"
            )
        check_whole(self.rounds, "rounds of a plateau")

    def met(self, progress: RunProgress) -> str | None:
        accuracy = progress.accuracy
        if len(accuracy) <= self.rounds:
            return None
        best_before = max(accuracy[: -self.rounds])
        best_since = max(accuracy[-self.rounds :])
        needed = best_before + self.gain
        if best_since >= needed:
            return None
        return f"accuracy on the hold-out grew by less than {self.gain} in {self.rounds} rounds"


@dataclass(frozen=True)
class ClassCounts(StoppingRule):
    """Stop when every class has so many labels.

    >>> progress = RunProgress(50, np.array([20, 30]), ("cat", "dog"), (), ())
    >>> ClassCounts(20).met(progress)
    'every class has 20 labels'
    """

    count: int

    def __post_init__(self) -> None:
        check_whole(self.count, "class count")

    def met(self, progress: RunProgress) -> str | None:
        if progress.counts.min() < self.count:
            return None
        return f"every class has {self.count} labels"


def why_stop(rules: Sequence[StoppingRule], progress: RunProgress) -> str | None:
    """The reason of the first rule that is met, or None."""
    for rule in rules:
        reason = rule.met(progress)
        if reason is not None:
            return reason
    return None
