"""Statistics over trials: means with standard errors, paired differences, areas, first quarters,
labels to a target, ranks.
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
        if not self.low < self.high:  # NaN too
            return False
        return self.low > 0 or self.high < 0

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
    mean = float(values.mean())
    if count == 1:
        return Mean(mean, NAN, 1)
    error = values.std(ddof=1) / np.sqrt(count)
    return Mean(mean, float(error), count)


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

    # Half of what the level leaves out lies above the interval.
    upper_quantile = 0.5 + level / 2
    freedom = differences.n - 1
    half_width = float(t.ppf(upper_quantile, freedom)) * differences.error
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
    width = labels[-1] - labels[0]
    return float(np.trapezoid(scores, labels) / width)


def first_quarter(scores: np.ndarray) -> np.ndarray:
    """scores (..., rounds) -> (...), the mean over the first quarter of the rounds: a quarter of
    their number, rounded down, but at least one.

    >>> float(first_quarter(np.array([0.25, 0.5, 0.6, 0.7, 0.7, 0.8, 0.8, 0.9])))
    0.375
    """
    rounds = scores.shape[-1]
    if rounds == 0:
        raise InputError("scores of no rounds have no first quarter: give at least one round")
    return scores[..., : quarter_of(rounds)].mean(-1)


def quarter_of(rounds: int) -> int:
    """How many rounds the first quarter has."""
    return max(1, rounds // 4)


def labels_to(labels: np.ndarray, scores: np.ndarray, target: float) -> float:
    """labels (n,), scores (n,) -> the fewest labels at which a measured score was at least the
    target; infinite where it never was.
    """
    reached = np.flatnonzero(scores >= target)
    if len(reached) == 0:
        return float("inf")
    first = reached[0]
    return float(labels[first])


def labels_to_between(labels: np.ndarray, scores: np.ndarray, target: float) -> float:
    """labels (n,) ascending, scores (n,) -> the fewest labels at which the curve, drawn straight
    from one measured score to the next, is at least the target; infinite where it never is.

    >>> labels_to_between(np.array([10, 20]), np.array([0.5, 0.75]), 0.625)
    15.0
    """
    reached = np.flatnonzero(scores >= target)
    if len(reached) == 0:
        return float("inf")
    after = reached[0]
    if after == 0:
        return float(labels[0])
    before = after - 1
    rise = scores[after] - scores[before]  # above 0: the target lies between the two
    share = (target - scores[before]) / rise
    return float(labels[before] + share * (labels[after] - labels[before]))


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
        end = begin + window
        inside = values[..., max(0, begin) : end]
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
    first, *others = scores.values()
    in_all = set(first).intersection(*others)
    common = [contender for contender in first if contender in in_all]
    if not common:
        return {}
    table = []
    for dataset in scores.values():
        table.append([dataset[contender] for contender in common])
    # Negative, since rank 1 goes to the smallest number.
    ranks = rankdata(-np.array(table), axis=1)
    means = ranks.mean(0).tolist()
    best_first = sorted(zip(common, means), key=lambda pair: pair[1])
    return dict(best_first)
