"""What further labels are likely to bring, from the accuracy of the rounds so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: rounds with a measurement that a curve needs, at least
FEWEST_ROUNDS = 3
#: so many hold-outs of its size all rounds together are worth: they measure on the same examples
INDEPENDENT_ROUNDS = 2.0
#: errors at the first measurement, what share of that will never go away, and how fast the rest
#: falls: every combination is a curve
FIRST_ERRORS = np.linspace(0.01, 0.99, 50)
LASTING_SHARES = np.linspace(0.0, 1.0, 11) ** 2
EXPONENTS = np.array([0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0, 8.0])
#: labels that are added to all counts before the power is taken, in multiples of those there are:
#: with many the error falls evenly at first, as where classes are still being found
HEAD_STARTS = np.array([0.0, 1.0, 4.0])
#: standard deviation of one round's accuracy around its curve, as recorded runs show it
WIGGLE = 0.007
#: ends of the interval, in standard deviations
Z_95 = 1.959964


@dataclass(frozen=True)
class Measurement:
    """Accuracy on `examples` of the hold-out after so many labels."""

    labels: int
    examples: int
    accuracy: float


@dataclass(frozen=True)
class ExpectedGain:
    """How much accuracy `labels` further labels will bring, with its 95% interval, by a curve
    through so many rounds, the last of them measured on `examples`.
    """

    labels: int
    gain: float
    lower: float
    upper: float
    rounds: int
    examples: int


def expected_gain(measurements: Sequence[Measurement], labels: int) -> ExpectedGain | None:
    """The gain that `labels` labels beyond the last measurement are expected to bring; None where
    there are too few measurements, or no label came between them.

    Accuracy is taken to follow 1 - e (r + (1 - r) ((n + s) / (n_1 + s))^-b) after n labels: an
    error e at the first measurement, of which the share r stays and the rest falls as a power of n.
    Every combination of e, r, b and s on a grid gets the weight of its likelihood, and the answer
    is the weighted mean over all curves, with the quantiles of the gain as its interval. So where
    the measurements say little the interval is wide, and nothing is fitted that may not converge.
    """
    usable = []
    for each in measurements:
        if each.labels > 0 and each.examples > 0:
            usable.append(each)
    if len(usable) < FEWEST_ROUNDS:
        return None
    first = usable[0]
    last = usable[-1]
    if last.labels == first.labels:
        return None
    curves = _Curves(first.labels, last.labels)
    weights = curves.posterior(usable)
    now = curves.errors(last.labels)
    later = curves.errors(last.labels + labels)
    gains = now - later
    mean = float(weights @ gains)
    lower, upper = _interval(gains, weights)
    return ExpectedGain(
        labels=labels,
        gain=mean,
        lower=lower,
        upper=upper,
        rounds=len(usable),
        examples=last.examples,
    )


class _Curves:
    """Every curve of the grid: e, r, b and s of each, (G,)."""

    def __init__(self, first_labels: int, last_labels: int) -> None:
        self.first_labels = first_labels
        errors, shares, exponents, starts = np.meshgrid(
            FIRST_ERRORS,
            LASTING_SHARES,
            EXPONENTS,
            HEAD_STARTS * last_labels,
        )
        self.first_errors = errors.ravel()
        self.lasting = shares.ravel()
        self.exponents = exponents.ravel()
        self.head_starts = starts.ravel()

    def errors(self, labels: int) -> np.ndarray:
        """(G,) error of each curve after so many labels."""
        counted = labels + self.head_starts
        counted_at_first = self.first_labels + self.head_starts
        growth = counted / counted_at_first
        falling = growth**-self.exponents
        remaining = self.lasting + (1 - self.lasting) * falling
        return self.first_errors * remaining

    def posterior(self, measurements: Sequence[Measurement]) -> np.ndarray:
        """(G,) weights that sum to 1."""
        examples = [each.examples for each in measurements]
        # All rounds together count as so many examples that nobody has seen twice.
        share = min(1.0, INDEPENDENT_ROUNDS * examples[-1] / sum(examples))
        log_likelihood = np.zeros(len(self.lasting))
        for each in measurements:
            error = self.errors(each.labels)
            # An accuracy is no surer than the wiggle of a round, however many examples.
            variance = max(each.accuracy * (1 - each.accuracy), 1 / each.examples)
            ceiling = variance / WIGGLE**2
            count = share * each.examples
            count = 1 / (1 / count + 1 / ceiling)
            right = count * each.accuracy
            wrong = count - right
            log_likelihood += right * np.log1p(-error) + wrong * np.log(error)
        weights = np.exp(log_likelihood - log_likelihood.max())
        return weights / weights.sum()


def _interval(gains: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The 2.5% and 97.5% quantiles of gains (G,) with weights (G,), widened by the wiggle of the
    two rounds that a gain lies between.
    """
    order = np.argsort(gains)
    cumulated = np.cumsum(weights[order])
    ends = np.searchsorted(cumulated, [0.025, 0.975])
    ends = np.minimum(ends, len(gains) - 1)
    mean = float(weights @ gains)
    lower, upper = gains[order[ends]].tolist()
    wiggle = Z_95 * WIGGLE * np.sqrt(2)
    below = np.hypot(mean - lower, wiggle)
    above = np.hypot(upper - mean, wiggle)
    return float(mean - below), float(mean + above)
