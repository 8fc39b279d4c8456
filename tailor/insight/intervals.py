"""Shares with their intervals, and how many examples they come from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailor.run.holdout import wilson

#: a figure from fewer examples says little, and is shown in grey
ENOUGH = 20
#: what an interval leaves out on each side
TAIL = 0.025


@dataclass(frozen=True)
class Share:
    """`count` of `n`, with Wilson's 95% interval of the share that they are drawn from.

    >>> share = Share(23, 25)
    >>> share.share, round(share.lower, 2), round(share.upper, 2), share.is_enough
    (0.92, 0.75, 0.98, True)
    """

    count: int
    n: int

    @property
    def share(self) -> float:
        """0 of nothing."""
        if self.n == 0:
            return 0.0
        return self.count / self.n

    @property
    def lower(self) -> float:
        return self._interval()[0]

    @property
    def upper(self) -> float:
        return self._interval()[1]

    @property
    def is_enough(self) -> bool:
        """Whether it comes from ENOUGH examples."""
        return self.n >= ENOUGH

    def _interval(self) -> tuple[float, float]:
        # Of nothing anything may be true.
        if self.n == 0:
            return 0.0, 1.0
        return wilson(self.share, self.n)

    def as_json(self) -> dict[str, float | int]:
        """count, n, share, lower and upper."""
        lower, upper = self._interval()
        return {
            "count": self.count,
            "n": self.n,
            "share": self.share,
            "lower": lower,
            "upper": upper,
        }


@dataclass(frozen=True)
class MeanShare:
    """The mean of the shares of several classes, with a 95% interval; n examples in all."""

    share: float
    lower: float
    upper: float
    n: int
    classes: int

    @property
    def is_enough(self) -> bool:
        return self.n >= ENOUGH


def mean_share(counts: np.ndarray, totals: np.ndarray) -> MeanShare | None:
    """The mean over classes of counts (K,) / totals (K,), classes with a total of 0 left out; None
    where that leaves none.

    Each class's share has the posterior Beta(count + 1, total - count + 1) of a uniform prior. The
    interval is that of the beta distribution with the mean and the variance of their mean: exact
    for one class.
    """
    from scipy.stats import beta

    occurs = totals > 0
    classes = int(occurs.sum())
    if classes == 0:
        return None
    right = counts[occurs].astype(np.float64)
    total = totals[occurs].astype(np.float64)
    alpha = right + 1
    weight = total + 2
    means = alpha / weight
    variances = means * (1 - means) / (weight + 1)
    mean = means.mean()
    variance = variances.sum() / classes**2
    # A beta distribution with this mean and variance.
    concentration = mean * (1 - mean) / variance - 1
    ends = beta.ppf(
        [TAIL, 1 - TAIL],
        mean * concentration,
        (1 - mean) * concentration,
    )
    share = float((right / total).mean())
    return MeanShare(
        share=share,
        lower=min(share, float(ends[0])),
        upper=max(share, float(ends[1])),
        n=int(total.sum()),
        classes=classes,
    )
