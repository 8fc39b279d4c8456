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
    """What rules look at."""

    labels: int  # answered, hold-out included
    counts: np.ndarray  # (K,) labels of each class
    classes: tuple[str, ...]
    accuracy: tuple[float, ...]  # on the hold-out, after each training; empty without a hold-out
    lower: tuple[float, ...]  # the lower end of its interval


class StoppingRule(ABC):
    @abstractmethod
    def met(self, progress: RunProgress) -> str | None:
        """Why to stop, or None."""


@dataclass(frozen=True)
class Budget(StoppingRule):
    """So many answers, and no more are asked for."""

    labels: int

    def __post_init__(self) -> None:
        check_whole(self.labels, "budget")

    def met(self, progress: RunProgress) -> str | None:
        return (
            f"the budget of {self.labels} labels is spent"
            if progress.labels >= self.labels
            else None
        )


@dataclass(frozen=True)
class TargetAccuracy(StoppingRule):
    """The lower end of the hold-out's interval is at or above a target."""

    accuracy: float

    def __post_init__(self) -> None:
        if not 0 < check_number(self.accuracy, "target accuracy", "it must lie in (0, 1]") <= 1:
            raise InputError(f"target accuracy is {self.accuracy}: it must lie in (0, 1]")

    def met(self, progress: RunProgress) -> str | None:
        if progress.lower and progress.lower[-1] >= self.accuracy:
            return (
                f"accuracy on the hold-out is at least {progress.lower[-1]:.3f}, the target "
                f"was {self.accuracy}"
            )
        return None


@dataclass(frozen=True)
class Plateau(StoppingRule):
    """The last `rounds` trainings brought less than `gain` on the hold-out over the best before
    them.
    """

    rounds: int = 5
    gain: float = 0.005

    def __post_init__(self) -> None:
        gain = check_number(self.gain, "gain of a plateau", "0 or more is needed")
        if gain < 0 or (isinstance(self.rounds, int) and self.rounds < 1):
            raise InputError(
                f"plateau of {self.rounds} rounds and {self.gain}: rounds >= 1 and gain >= 0 are "
                "needed"
            )
        check_whole(self.rounds, "rounds of a plateau")

    def met(self, progress: RunProgress) -> str | None:
        seen = progress.accuracy
        if (
            len(seen) > self.rounds
            and max(seen[-self.rounds :]) < max(seen[: -self.rounds]) + self.gain
        ):
            return f"accuracy on the hold-out grew by less than {self.gain} in {self.rounds} rounds"
        return None


@dataclass(frozen=True)
class ClassCounts(StoppingRule):
    """Every class has so many labels."""

    count: int

    def __post_init__(self) -> None:
        check_whole(self.count, "class count")

    def met(self, progress: RunProgress) -> str | None:
        return (
            f"every class has {self.count} labels" if progress.counts.min() >= self.count else None
        )


def why_stop(rules: Sequence[StoppingRule], progress: RunProgress) -> str | None:
    return next((reason for rule in rules if (reason := rule.met(progress))), None)
