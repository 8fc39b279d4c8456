"""The hold-out: a random part of the pool that is labelled like the rest and never trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from tailor.task import MultiClass, Task

#: standard deviations of a normal distribution on each side of its mean that hold 95% of it
Z_95 = 1.959964

#: (share, lower end, upper end)
ShareWithInterval = tuple[float, float, float]


def sample_by_id(ids: Sequence[str], share: float, seed: int) -> np.ndarray:
    """(n,) bool: a random sample of about `share` of the ids. Each is decided by a hash of the id
    alone, so a pool that grows changes nothing for the examples that were there.
    """
    is_drawn = np.zeros(len(ids), bool)
    if share <= 0:
        return is_drawn
    key = seed.to_bytes(8, "little", signed=False)
    # Eight bytes of a hash are a number that is equally likely to be any below 2**64.
    limit = int(share * 2**64)
    for position, example_id in enumerate(ids):
        hashed = blake2b(example_id.encode(), digest_size=8, key=key)
        number = int.from_bytes(hashed.digest(), "little")
        is_drawn[position] = number < limit
    return is_drawn


@dataclass(frozen=True)
class HoldoutEstimate:
    """Accuracy on the hold-out with a 95% interval.

    balanced_accuracy  the mean over the classes in the hold-out of the share that is right; None in
                       multi-label tasks and in runs written before it was measured
    """

    examples: int
    accuracy: float
    lower: float
    upper: float
    balanced_accuracy: float | None = None

    def __str__(self) -> str:
        return (
            f"{self.accuracy:.3f}, 95% interval {self.lower:.3f} to {self.upper:.3f}, "
            f"{self.examples} examples"
        )


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share of n, which need not be a whole number of them.

    >>> lower, upper = wilson(0.5, 10)
    >>> round(lower, 3), round(upper, 3)
    (0.237, 0.763)
    """
    z_squared = Z_95 * Z_95
    shrinkage = 1 + z_squared / n
    shifted = share + z_squared / (2 * n)
    centre = shifted / shrinkage
    sampling_variance = share * (1 - share) / n
    correction = z_squared / (4 * n * n)
    deviation = np.sqrt(sampling_variance + correction)
    half_width = Z_95 / shrinkage * deviation
    lowest = max(0.0, centre - half_width)
    highest = min(1.0, centre + half_width)
    # Rounding must not leave a share of 0 or 1 outside its own interval.
    lower = min(share, lowest)
    upper = max(share, highest)
    return float(lower), float(upper)


def class_shares(classes: Sequence[str], labels: np.ndarray) -> dict[str, ShareWithInterval]:
    """labels (n, K) of the hold-out -> the share of each class in the pool, with the ends of its
    95% interval.
    """
    count = len(labels)
    if count == 0:
        return {}
    # In float64: a sum of many float32 would lose counts.
    shares = labels.mean(0, dtype=np.float64)
    with_intervals = {}
    for name, share in zip(classes, shares.tolist()):
        lower, upper = wilson(share, count)
        with_intervals[name] = (share, lower, upper)
    return with_intervals


def estimate(task: Task, labels: np.ndarray, probs: np.ndarray) -> HoldoutEstimate | None:
    """labels, probs (n, K) -> the share of examples (multi-class) or of class decisions
    (multi-label) that is right; None for no examples.

    Wilson's interval; for multi-label with the number of examples, since the classes of one example
    go together.
    """
    count = len(labels)
    if count == 0:
        return None
    is_labelled = labels > 0.5
    is_right = task.predicted(probs) == is_labelled
    balanced = None
    if isinstance(task, MultiClass):
        right_share = is_right.all(1)
        balanced = _balanced_accuracy(is_labelled, right_share)
    else:
        right_share = is_right.mean(1)
    accuracy = float(right_share.mean())
    lower, upper = wilson(accuracy, count)
    return HoldoutEstimate(
        examples=count,
        accuracy=accuracy,
        lower=lower,
        upper=upper,
        balanced_accuracy=balanced,
    )


def _balanced_accuracy(labels: np.ndarray, is_right: np.ndarray) -> float:
    """labels (n, K) bool, one class each, is_right (n,) bool -> the mean over the classes that
    occur of the share of their examples that is right.
    """
    counts = labels.sum(0)
    right_labels = labels[is_right]
    right_counts = right_labels.sum(0)
    # A class that does not occur has no share.
    occurs = counts > 0
    shares = right_counts[occurs] / counts[occurs]
    return float(shares.mean())
