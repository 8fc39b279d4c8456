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
    log_x = np.log(np.asarray(x, float))
    log_y = np.log(np.asarray(y, float))
    sigma = np.maximum(np.asarray(error, float) / np.asarray(y, float), 1e-6)
    w = 1 / sigma**2
    centred = log_x - (w * log_x).sum() / w.sum()
    spread = (w * centred**2).sum()
    slope = float((w * centred * log_y).sum() / spread)
    left = log_y - (w * log_y).sum() / w.sum() - slope * centred
    freedom = len(log_x) - 2
    scatter = float((w * left**2).sum() / freedom) if freedom > 0 else 1.0
    return Slope(slope, float(np.sqrt(max(1.0, scatter) / spread)))


def pick(
    rows: Sequence[RegretRow], sweep: str, kind: str, weights: str, selector: str
) -> list[RegretRow]:
    """A selector's rows along one sweep."""
    wanted = (sweep, kind, weights, selector)
    return [r for r in rows if (r.sweep, r.setting.kind, r.setting.weights, r.selector) == wanted]


def growth(rows: Sequence[RegretRow], axis: str, *, relative: bool = False) -> Slope:
    x = [getattr(r.setting, axis) for r in rows]
    if relative:
        return fit_slope(x, [r.relative for r in rows], [r.relative_error for r in rows])
    return fit_slope(x, [r.mean for r in rows], [r.error for r in rows])


def check_claims(rows: Sequence[RegretRow]) -> list[Verdict]:
    """Every claim of the paper's section 5 that a simulation can show, for each task and kind
    of v.
    """
    found: list[Verdict] = []
    for kind in ("multi-class", "multi-label"):
        for weights in ("random", "diversity"):
            where = f"{kind}, {weights} v"
            along = {axis: pick(rows, axis, kind, weights, "tailor") for axis in _LIMITS}
            for axis, (claim, limit) in _LIMITS.items():
                slope = growth(along[axis], axis)
                found.append(Verdict(claim, where, f"exponent {slope}", slope.at_most(limit)))
            late = growth(along["rounds"][-3:], "rounds")
            claim = "no faster than √T, largest three T"
            found.append(Verdict(claim, where, f"exponent {late}", late.at_most(0.5)))
            share = growth(along["classes"], "classes", relative=True)
            claim = "relative to random, does not grow with K"
            found.append(Verdict(claim, where, f"exponent {share}", share.at_most(0)))
            found.append(_against_linear(rows, kind, weights, where))
    return found


_LIMITS = {
    "classes": ("does not grow with K", 0.0),
    "rounds": ("no faster than √T, all T", 0.5),
    "arms": ("no faster than √M", 0.5),
    "slots": ("no faster than B", 1.0),
}


def _against_linear(rows: Sequence[RegretRow], kind: str, weights: str, where: str) -> Verdict:
    """TAILOR's regret minus linear Thompson's, paired by instance, at every stationary setting."""
    over: list[str] = []
    total = 0
    for axis in _LIMITS:
        ours, theirs = (
            pick(rows, axis, kind, weights, name) for name in ("tailor", "linear-thompson")
        )
        for mine, other in zip(ours, theirs):
            gap = mine.regret - other.regret
            total += 1
            if gap.mean() > 2 * gap.std(ddof=1) / np.sqrt(len(gap)):
                over.append(name_point(axis, mine.setting))
    measured = f"above it at {len(over)} of {total} points" + (
        f": {', '.join(over)}" if over else ""
    )
    return Verdict("stays under linear Thompson's", where, measured, not over)


def name_point(axis: str, setting: RegretSetting) -> str:
    letter = {"rounds": "T", "arms": "M", "classes": "K", "slots": "B", "drift": "drift"}[axis]
    return f"{letter}={getattr(setting, axis)}"
