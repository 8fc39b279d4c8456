"""What the theory says of the simulated regret, checked: growth exponents with errors, and
verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tailor_experiments.regret.simulation import RegretRow, RegretSetting, standard_error


@dataclass(frozen=True)
class Slope:
    """A growth exponent: the slope of log regret against log x."""

    value: float
    error: float

    def at_most(self, limit: float) -> bool:
        """Whether the slope is no larger than the limit, within two standard errors."""
        return self.value <= limit + 2 * self.error

    def __str__(self) -> str:
        return f"{self.value:+.2f} ± {self.error:.2f}"


@dataclass(frozen=True)
class Verdict:
    """One claim at one group of settings."""

    claim: str
    where: str
    measured: str
    holds: bool


def fit_slope(x: Sequence[float], y: Sequence[float], error: Sequence[float]) -> Slope:
    """Weighted least squares in logs; the error grows where points scatter more than their own
    errors say.
    """
    log_x = np.log(np.asarray(x, float))
    heights = np.asarray(y, float)
    weights = _log_weights(heights, np.asarray(error, float))
    centred_x = _centred(log_x, weights)
    centred_y = _centred(np.log(heights), weights)
    spread = (weights * centred_x**2).sum()
    covariation = (weights * centred_x * centred_y).sum()
    slope = float(covariation / spread)
    residuals = centred_y - slope * centred_x
    # Points that happen to lie too well on the line don't make it more certain.
    scatter = max(1.0, _scatter(residuals, weights))
    return Slope(slope, float(np.sqrt(scatter / spread)))


def _log_weights(heights: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """(n,) one over the variance of each height's logarithm."""
    # The error of a logarithm is the relative error.
    sigma = np.maximum(errors / heights, 1e-6)
    return 1 / sigma**2


def _centred(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Less their weighted mean."""
    return values - np.average(values, weights=weights)


def _scatter(residuals: np.ndarray, weights: np.ndarray) -> float:
    """Variance around the line, 1 where points scatter as their errors say."""
    freedom = len(residuals) - 2
    # Two points always lie on a line, and say nothing of how far others would lie from it.
    if freedom < 1:
        return 1.0
    return float((weights * residuals**2).sum() / freedom)


def pick(
    rows: Sequence[RegretRow],
    sweep: str,
    kind: str,
    weights: str,
    selector: str,
) -> list[RegretRow]:
    """A selector's rows along one sweep."""
    # In the order of the sweep's values: the last three are the largest.
    wanted = (sweep, kind, weights, selector)
    picked = []
    for row in rows:
        setting = row.setting
        key = (row.sweep, setting.kind, setting.weights, row.selector)
        if key == wanted:
            picked.append(row)
    return picked


def growth(rows: Sequence[RegretRow], axis: str, *, relative: bool = False) -> Slope:
    """How the regret of these rows grows along an axis; relative: of its share of random's."""
    x = [getattr(row.setting, axis) for row in rows]
    regrets = [row.relative if relative else row.mean for row in rows]
    errors = [row.relative_error if relative else row.error for row in rows]
    return fit_slope(x, regrets, errors)


def check_claims(rows: Sequence[RegretRow]) -> list[Verdict]:
    """Every claim of the paper's section 5 that a simulation can show, for each task and kind
    of v.
    """
    verdicts: list[Verdict] = []
    for kind in ("multi-class", "multi-label"):
        for weights in ("random", "diversity"):
            verdicts += _check_group(rows, kind, weights)
    return verdicts


def _check_group(rows: Sequence[RegretRow], kind: str, weights: str) -> list[Verdict]:
    """Every claim, for one task and kind of v."""
    group = f"{kind}, {weights} v"
    verdicts = []
    for claim, slope, limit in _slopes(rows, kind, weights):
        verdict = Verdict(
            claim,
            group,
            f"exponent {slope}",
            slope.at_most(limit),
        )
        verdicts.append(verdict)
    verdicts.append(
        _against_linear(
            rows,
            kind,
            weights,
            group,
        )
    )
    return verdicts


def _slopes(
    rows: Sequence[RegretRow], kind: str, weights: str
) -> Iterator[tuple[str, Slope, float]]:
    """(claim, how TAILOR's regret grows, the largest exponent that the claim allows)"""
    along = {
        axis: pick(
            rows,
            axis,
            kind,
            weights,
            "tailor",
        )
        for axis in _LIMITS
    }
    for axis, (claim, limit) in _LIMITS.items():
        yield claim, growth(along[axis], axis), limit
    # A bound on growth is about large T: the first rounds are all exploration.
    late = growth(along["rounds"][-3:], "rounds")
    yield "no faster than √T, largest three T", late, 0.5
    share = growth(along["classes"], "classes", relative=True)
    yield "relative to random, does not grow with K", share, 0.0


#: what the paper calls each axis
_LETTERS = {
    "rounds": "T",
    "arms": "M",
    "classes": "K",
    "slots": "B",
    "drift": "drift",
}
#: axis -> the claim about it, and the largest exponent that it allows
_LIMITS = {
    "classes": ("does not grow with K", 0.0),
    "rounds": ("no faster than √T, all T", 0.5),
    "arms": ("no faster than √M", 0.5),
    "slots": ("no faster than B", 1.0),
}


def _against_linear(
    rows: Sequence[RegretRow],
    kind: str,
    weights: str,
    group: str,
) -> Verdict:
    """TAILOR's regret minus linear Thompson's, paired by instance, at every stationary setting."""
    above: list[str] = []
    total = 0
    for axis in _LIMITS:
        tailors = pick(
            rows,
            axis,
            kind,
            weights,
            "tailor",
        )
        linears = pick(
            rows,
            axis,
            kind,
            weights,
            "linear-thompson",
        )
        total += len(tailors)
        for tailor, linear in zip(tailors, linears):
            if _is_above(tailor, linear):
                above.append(name_point(axis, tailor.setting))
    measured = f"above it at {len(above)} of {total} points"
    if above:
        measured += f": {', '.join(above)}"
    return Verdict(
        "stays under linear Thompson's",
        group,
        measured,
        not above,
    )


def _is_above(ours: RegretRow, other: RegretRow) -> bool:
    """Whether the regret is larger by more than two standard errors."""
    gap = ours.regret - other.regret
    return bool(gap.mean() > 2 * standard_error(gap))


def name_point(axis: str, setting: RegretSetting) -> str:
    """A point of a sweep in a text: "T=50"."""
    letter = _LETTERS[axis]
    value = getattr(setting, axis)
    return f"{letter}={value}"
