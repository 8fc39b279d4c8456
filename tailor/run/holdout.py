"""The hold-out: a random part of the pool that is labelled like the rest and never trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from tailor.task import MultiClass, Task


def sample_by_id(ids: Sequence[str], share: float, seed: int) -> np.ndarray:
    """(n,) bool: a random sample of about `share` of the ids. Each is decided by a hash of the id
    alone, so a pool that grows changes nothing for the examples that were there.
    """
    if share <= 0:
        return np.zeros(len(ids), bool)
    key = seed.to_bytes(8, "little", signed=False)
    limit = int(share * 2**64)
    draws = (
        int.from_bytes(blake2b(one.encode(), digest_size=8, key=key).digest(), "little")
        for one in ids
    )
    return np.fromiter((draw < limit for draw in draws), bool, len(ids))


@dataclass(frozen=True)
class HoldoutEstimate:
    """Accuracy on the hold-out with a 95% interval."""

    examples: int
    accuracy: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return (
            f"{self.accuracy:.3f}, 95% interval {self.lower:.3f} to {self.upper:.3f}, "
            f"{self.examples} examples"
        )


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share of n."""
    z = 1.959964
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Rounding must not leave a share of 0 or 1 outside its own interval.
    return float(min(share, max(0.0, centre - half))), float(max(share, min(1.0, centre + half)))


def class_shares(
    classes: Sequence[str], labels: np.ndarray
) -> dict[str, tuple[float, float, float]]:
    """labels (n, K) of the hold-out -> the share of each class in the pool, with its 95%
    interval.
    """
    if len(labels) == 0:
        return {}
    shares = labels.mean(0, dtype=np.float64).tolist()
    return {name: (share, *wilson(share, len(labels))) for name, share in zip(classes, shares)}


def estimate(task: Task, labels: np.ndarray, probs: np.ndarray) -> HoldoutEstimate | None:
    """labels, probs (n, K) -> the share of examples (multi-class) or of class decisions
    (multi-label) that is right.

    Wilson's interval; for multi-label with the number of examples, since the classes of one example
    go together.
    """
    if len(labels) == 0:
        return None
    right = task.predicted(probs) == (labels > 0.5)
    per_example = right.all(1) if isinstance(task, MultiClass) else right.mean(1)
    share = float(per_example.mean())
    return HoldoutEstimate(len(labels), share, *wilson(share, len(labels)))
