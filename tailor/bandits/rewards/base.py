"""What every reward is: a vector v over the classes, such that <v, y> is what an example with label
y is worth.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tailor.errors import InputError
from tailor.task import Task


@dataclass(frozen=True)
class LabelSummary:
    """What a reward may go by: the labels so far.

    Raises InputError where the counts are not possible ones.
    """

    task: Task
    round: int  # 0 for the first
    counts: np.ndarray  # (K,) float64: labels so far of each class
    labelled: int  # examples that have a label
    #: (K,) in [0, 1]: how much of each class's labels was news to the model when they were picked;
    #: given to rewards whose needs_difficulty is true, where it is known
    difficulty: np.ndarray | None = None

    def __post_init__(self) -> None:
        size = self.task.size
        counts = np.asarray(self.counts, dtype=np.float64)
        if counts.shape != (size,):
            raise InputError(f"counts have shape {counts.shape}: give one a class, ({size},)")
        _check_counts(counts, self.labelled)
        # The class is frozen: this is the way to keep the counts as an array of floats.
        object.__setattr__(self, "counts", counts)


def _check_counts(counts: np.ndarray, labelled: int) -> None:
    """counts (K,) that are possible among so many labelled examples, or InputError."""
    # Asked for what is right, so that NaN is found too: it compares as false.
    is_not_negative = counts >= 0
    is_right = is_not_negative & np.isfinite(counts)
    if not is_right.all():
        negative = counts[~is_not_negative]
        raise InputError(f"counts hold {negative}: they must be 0 or more")
    # Soft labels add up with rounding.
    limit = labelled + 1e-6
    is_above = counts > limit
    if labelled < 0 or is_above.any():
        largest = counts.max()
        raise InputError(f"a class is counted {largest:g} times among {labelled} labelled examples")


class Reward(ABC):
    """Turns the labels so far into v, each entry in [-1/K, 1/K]. A subclass writes
    `class_weights`.
    """

    #: whether LabelSummary.difficulty is to be worked out
    needs_difficulty: ClassVar[bool] = False

    def weights(self, summary: LabelSummary) -> np.ndarray:
        """v (K,) float64. Raises InputError where class_weights() gave anything else."""
        size = summary.task.size
        class_weights = self.class_weights(summary)
        # A copy: a reward may hand out the same array every round.
        v = np.array(class_weights, dtype=np.float64)
        if v.shape != (size,):
            raise InputError(f"weights have shape {v.shape}: give one a class, ({size},)")
        # float32 may round up; NaN compares as false and so is found too.
        tolerance = 1 + 1e-6
        limit = 1 / size * tolerance
        is_right = np.abs(v) <= limit
        if not is_right.all():
            k = int(np.argmin(is_right))
            name = summary.task.classes[k]
            weight = v[k]
            raise InputError(
                f"weight of class {name!r} is {weight:.6g}: with {size} classes it "
                f"must lie in [-1/{size}, 1/{size}]; scale the vector"
            )
        return v

    @abstractmethod
    def class_weights(self, summary: LabelSummary) -> Any:
        """(K,) what a label of each class is worth, in [-1/K, 1/K]."""
