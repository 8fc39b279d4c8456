"""What the theory says of the simulated regret, checked: growth exponents with errors, and
verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailor_experiments.regret.simulation import RegretRow, RegretSetting


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
    heights = np.asarray(y, float)
    log_x = np.log(np.asarray(x, float))
    log_y = np.log(heights)
    # The error of a logarithm is the relative error.
    relative_error = np.asarray(error, float) / heights
    sigma = np.maximum(relative_error, 1e-6)
    weights = 1 / sigma**2
    centred_x = log_x - np.average(log_x, weights=weights)
    centred_y = log_y - np.average(log_y, weights=weights)
    spread = (weights * centred_x**2).sum()
    covariation = (weights * centred_x * centred_y).sum()
    slope = float(covariation / spread)
    scatter = 1.0
    freedom = len(log_x) - 2
    if freedom > 0:
        residuals = centred_y - slope * centred_x
        scatter = float((weights * residuals**2).sum() / freedom)
    # Points that happen to lie too well on the line don't make it more certain.
    variance = max(1.0, scatter) / spread
    return Slope(slope, float(np.sqrt(variance)))


def pick(
    rows: Sequence[RegretRow],
    sweep: str,
    kind: str,
    weights: str,
    selector: str,
) -> list[RegretRow]:
    """A selector's rows along one sweep."""
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
    if relative:
        regrets = [row.relative for row in rows]
        errors = [row.relative_error for row in rows]
    else:
        regrets = [row.mean for row in rows]
        errors = [row.error for row in rows]
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
    along = {axis: pick(rows, axis, kind, weights, "tailor") for axis in _LIMITS}
    slopes = []
    for axis, (claim, limit) in _LIMITS.items():
        slope = growth(along[axis], axis)
        slopes.append((claim, slope, limit))
    # A bound on growth is about large T: the first rounds are all exploration.
    largest = along["rounds"][-3:]
    late = growth(largest, "rounds")
    slopes.append(("no faster than √T, largest three T", late, 0.5))
    share = growth(along["classes"], "classes", relative=True)
    slopes.append(("relative to random, does not grow with K", share, 0.0))
    group = f"{kind}, {weights} v"
    verdicts = []
    for claim, slope, limit in slopes:
        verdict = Verdict(
            claim,
            group,
            f"exponent {slope}",
            slope.at_most(limit),
        )
        verdicts.append(verdict)
    verdicts.append(_against_linear(rows, kind, weights, group))
    return verdicts


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


def _against_linear(rows: Sequence[RegretRow], kind: str, weights: str, group: str) -> Verdict:
    """TAILOR's regret minus linear Thompson's, paired by instance, at every stationary setting."""
    above: list[str] = []
    total = 0
    for axis in _LIMITS:
        tailors = pick(rows, axis, kind, weights, "tailor")
        linears = pick(rows, axis, kind, weights, "linear-thompson")
        for tailor, linear in zip(tailors, linears):
            gap = tailor.regret - linear.regret
            error = gap.std(ddof=1) / np.sqrt(len(gap))
            total += 1
            if gap.mean() > 2 * error:
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


def name_point(axis: str, setting: RegretSetting) -> str:
    """A point of a sweep in a text: "T=50"."""
    letter = _LETTERS[axis]
    value = getattr(setting, axis)
    return f"{letter}={value}"
