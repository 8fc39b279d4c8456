"""Statistics over trials: means with standard errors, paired differences, areas, labels to a
target, ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tailor.errors import InputError


@dataclass(frozen=True)
class Mean:
    mean: float
    error: float  # standard error; NaN with fewer than two values
    n: int


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, with a confidence interval by Student's t."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def clear(self) -> bool:
        """Whether 0 lies outside the interval; never where the pairs show no spread to judge by."""
        return self.low < self.high and (self.low > 0 or self.high < 0)

    @property
    def verdict(self) -> str:
        """ahead or behind where the interval leaves out 0, level where it doesn't, unknown without
        an interval.
        """
        if np.isnan(self.low) or self.n < 2:
            return "unknown"
        return "level" if not self.clear else "ahead" if self.mean > 0 else "behind"


def mean_error(values: np.ndarray) -> Mean:
    """values (n,), NaN left out.

    >>> mean_error(np.array([1.0, 2.0, 3.0]))
    Mean(mean=2.0, error=0.5773502691896258, n=3)
    """
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return Mean(float("nan"), float("nan"), 0)
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return Mean(float(values.mean()), error, len(values))


def paired(a: np.ndarray, b: np.ndarray, level: float = 0.95) -> Difference:
    """a (n,) minus b (n,), pair by pair. With one pair the interval is NaN; with no spread it is a
    point.
    """
    if a.shape != b.shape or a.ndim != 1 or len(a) == 0:
        raise InputError(
            f"pairs of shapes {a.shape} and {b.shape}: give two arrays of one length, at least 1"
        )
    if not 0 < level < 1:
        raise InputError(f"level is {level}: it must lie in (0, 1)")
    found = mean_error(a - b)
    if found.n < 2:
        return Difference(found.mean, float("nan"), float("nan"), found.n)
    from scipy.stats import t

    half = float(t.ppf(0.5 + level / 2, found.n - 1)) * found.error
    return Difference(found.mean, found.mean - half, found.mean + half, found.n)


def area(labels: np.ndarray, scores: np.ndarray) -> float:
    """labels (n,), scores (n,) -> the area under the curve over its width: the mean height
    (trapezoids).
    """
    if len(labels) < 2:
        return float(scores[0]) if len(scores) else float("nan")
    return float(np.trapezoid(scores, labels) / (labels[-1] - labels[0]))


def labels_to(labels: np.ndarray, scores: np.ndarray, target: float) -> float:
    """The fewest labels at which a measured score was at least the target; infinite where it never
    was.
    """
    reached = np.flatnonzero(scores >= target)
    return float(labels[reached[0]]) if len(reached) else float("inf")


def smooth(values: np.ndarray, window: int = 3) -> np.ndarray:
    """values (..., n) -> the mean over a sliding window around each; at the ends over what there is
    of it.
    """
    if window < 1:
        raise InputError(f"window is {window}: at least 1 is needed")
    n = values.shape[-1]
    before = window // 2
    spans = [(max(0, i - before), min(n, i - before + window)) for i in range(n)]
    return np.stack([values[..., low:high].mean(-1) for low, high in spans], -1) if n else values


def mean_ranks(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """dataset -> contender -> score, larger is better; the mean rank of those that every dataset
    has, 1 the best.

    >>> mean_ranks({"a": {"x": 0.9, "y": 0.8}, "b": {"x": 0.5, "y": 0.5}})
    {'x': 1.25, 'y': 1.75}
    """
    from scipy.stats import rankdata

    if not scores:
        return {}
    common = [c for c in next(iter(scores.values())) if all(c in row for row in scores.values())]
    table = np.array([[row[c] for c in common] for row in scores.values()]).reshape(
        len(scores), len(common)
    )
    ranks = np.array([rankdata(-row) for row in table])
    order = sorted(zip(common, ranks.mean(0).tolist()), key=lambda pair: pair[1])
    return dict(order)
