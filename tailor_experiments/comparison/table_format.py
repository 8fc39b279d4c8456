"""A table of texts, and how numbers are written in it: for the terminal and for pages alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailor_experiments.comparison import stats
from tailor_experiments.comparison.stats import Difference

#: metrics that count labels: one decimal of their means is enough
COUNTS = ("rarest", "positives")
NO_NUMBER = "–"
INTERVALS = (
    "mean [95% interval by Student's t], * where 0 lies outside, not corrected for the "
    "number of comparisons"
)


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def number(value: float, metric: str, sign: bool = False) -> str:
    """A value of a metric as text.

    >>> number(0.25, "score", sign=True)
    '+0.2500'
    """
    if np.isnan(value):
        return NO_NUMBER
    plus = "+" if sign else ""
    decimals = 1 if metric in COUNTS else 4
    return f"{value:{plus}.{decimals}f}"


def with_error(values: np.ndarray, metric: str) -> str:
    """values (n,) -> their mean ± standard error."""
    summary = stats.mean_error(values)
    mean = number(summary.mean, metric)
    error = number(summary.error, metric)
    return f"{mean} ± {error}"


def interval(difference: Difference, metric: str) -> str:
    """A difference with its interval, and a star where 0 lies outside."""
    mean = number(difference.mean, metric, sign=True)
    low = number(difference.low, metric, sign=True)
    high = number(difference.high, metric, sign=True)
    text = f"{mean} [{low}, {high}]"
    if difference.clear:
        text += " *"
    return text


def label_count(labels: float, total: int) -> str:
    """A number of labels as text; infinitely many are more than the total that there was.

    >>> label_count(float("inf"), 420)
    '> 420'
    """
    if np.isfinite(labels):
        return f"{labels:.0f}"
    return f"> {total}"


def markdown(table: Table) -> str:
    """The table with its title and note, for pages of a repository."""
    rule = ("---",) * len(table.columns)
    lines = [
        f"### {table.title}",
        "",
        _markdown_line(table.columns),
        _markdown_line(rule),
    ]
    for row in table.rows:
        lines.append(_markdown_line(row))
    if table.note:
        lines += ["", table.note]
    return "\n".join(lines) + "\n"


def _markdown_line(cells: tuple[str, ...]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"
