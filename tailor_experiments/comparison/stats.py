"""Statistics over trials: means with standard errors, paired differences, areas, labels to a
target, ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tailor.errors import InputError

NAN = float("nan")


@dataclass(frozen=True)
class Mean:
    """A mean of n values. error: its standard error; NaN with fewer than two values."""

    mean: float
    error: float
    n: int


@dataclass(frozen=True)
class Difference:
    """The mean of n paired differences, with a confidence interval by Student's t."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def clear(self) -> bool:
        """Whether 0 lies outside the interval; never where the pairs show no spread to judge by."""
        has_spread = self.low < self.high
        return has_spread and (self.low > 0 or self.high < 0)

    @property
    def verdict(self) -> str:
        """ahead or behind where the interval leaves out 0, level where it doesn't, unknown without
        an interval.
        """
        if np.isnan(self.low) or self.n < 2:
            return "unknown"
        if not self.clear:
            return "level"
        return "ahead" if self.mean > 0 else "behind"


def mean_error(values: np.ndarray) -> Mean:
    """values (n,), NaN left out.

    >>> mean_error(np.array([1.0, 2.0, 3.0]))
    Mean(mean=2.0, error=0.5773502691896258, n=3)
    """
    values = values[~np.isnan(values)]
    count = len(values)
    if count == 0:
        return Mean(NAN, NAN, 0)
    error = float(values.std(ddof=1) / np.sqrt(count)) if count > 1 else NAN
    return Mean(float(values.mean()), error, count)


def paired(a: np.ndarray, b: np.ndarray, level: float = 0.95) -> Difference:
    """a (n,) minus b (n,), pair by pair. With one pair the interval is NaN; with no spread it is a
    point.

    Where there is a spread it is the interval of scipy.stats.ttest_rel, which has none to give
    where all differences are equal, as those of simulated scores are.
    """
    if a.shape != b.shape or a.ndim != 1 or len(a) == 0:
        raise InputError(
            f"pairs of shapes {a.shape} and {b.shape}: give two arrays of one length, at least 1"
        )
    if not 0 < level < 1:
        raise InputError(f"level is {level}: it must lie in (0, 1)")
    differences = mean_error(a - b)
    mean = differences.mean
    if differences.n < 2:
        return Difference(mean, NAN, NAN, differences.n)
    from scipy.stats import t

    half_width = float(t.ppf(0.5 + level / 2, differences.n - 1)) * differences.error
    return Difference(
        mean,
        mean - half_width,
        mean + half_width,
        differences.n,
    )


def area(labels: np.ndarray, scores: np.ndarray) -> float:
    """labels (n,), scores (n,) -> the area under the curve over its width: the mean height
    (trapezoids).
    """
    if len(scores) == 0:
        return NAN
    if len(labels) < 2:
        return float(scores[0])
    return float(np.trapezoid(scores, labels) / (labels[-1] - labels[0]))


def labels_to(labels: np.ndarray, scores: np.ndarray, target: float) -> float:
    """labels (n,), scores (n,) -> the fewest labels at which a measured score was at least the
    target; infinite where it never was.
    """
    reached = np.flatnonzero(scores >= target)
    return float(labels[reached[0]]) if len(reached) else float("inf")


def smooth(values: np.ndarray, window: int = 3) -> np.ndarray:
    """values (..., n) -> (..., n), the mean over a sliding window around each; at the ends over
    what there is of it.
    """
    if window < 1:
        raise InputError(f"window is {window}: at least 1 is needed")
    n = values.shape[-1]
    if n == 0:
        return values
    means = []
    for place in range(n):
        begin = place - window // 2
        inside = values[..., max(0, begin) : begin + window]
        means.append(inside.mean(-1))
    return np.stack(means, -1)


def mean_ranks(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """dataset -> contender -> score, larger is better; the mean rank of those that every dataset
    has, 1 the best.

    >>> mean_ranks({"a": {"x": 0.9, "y": 0.8}, "b": {"x": 0.5, "y": 0.5}})
    {'x': 1.25, 'y': 1.75}
    """
    from scipy.stats import rankdata

    if not scores:
        return {}
    first_dataset = next(iter(scores.values()))
    common = [
        contender
        for contender in first_dataset
        if all(contender in dataset for dataset in scores.values())
    ]
    if not common:
        return {}
    table = np.array([[dataset[contender] for contender in common] for dataset in scores.values()])
    ranks = rankdata(-table, axis=1).mean(0)
    best_first = sorted(zip(common, ranks.tolist()), key=lambda pair: pair[1])
    return dict(best_first)
