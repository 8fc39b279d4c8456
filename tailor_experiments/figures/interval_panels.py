"""Means with intervals: a dot and a bar a label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tailor_experiments.figures.canvas import make_grid, plain_texts, save, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: points
TICK_SIZE = 10
#: inches
INTERVALS_WIDTH = 3.0

#: (label, mean, low, high)
Interval = tuple[str, float, float, float]


def intervals(groups: Sequence[tuple[str, Sequence[Interval]]], title: str, *paths: Path) -> None:
    """One picture with a panel for each (x label, intervals): a dot and a bar a label; filled where
    0 lies outside.
    """
    with plain_texts():
        save(draw_intervals(groups, title), paths)


def draw_intervals(groups: Sequence[tuple[str, Sequence[Interval]]], title: str) -> Figure:
    """The figure of intervals()."""
    most_rows = max((len(rows) for _, rows in groups), default=0)
    figure, (axes,) = make_grid(
        1,
        len(groups),
        panel=(INTERVALS_WIDTH, 0.2 + 0.27 * most_rows),
        title=title,
        left=(_names_width(groups), 0.4),
        right=0.3,
    )
    for axis, (xlabel, rows) in zip(axes, groups):
        _draw_interval_panel(axis, rows)
        axis.set_xlabel(xlabel)
        # The names stand beside the first panel alone.
        names = [name if axis is axes[0] else "" for name, *_ in rows]
        axis.set_yticks(range(len(rows)), names)
        # From above, and with as much room a row in every panel.
        axis.set_ylim(most_rows - 0.5, -0.5)
    return figure


def _names_width(groups: Sequence[tuple[str, Sequence[Interval]]]) -> float:
    """Inches that the names of the intervals need."""
    widest = 0.0
    for _, rows in groups:
        for name, *_ in rows:
            widest = max(widest, text_width(name, TICK_SIZE))
    return 0.3 + widest


def _draw_interval_panel(axis: Axes, rows: Sequence[Interval]) -> None:
    for y, (_, mean, low, high) in enumerate(rows):
        _draw_interval(
            axis,
            y,
            mean,
            low,
            high,
        )
    axis.axvline(
        0,
        color="black",
        linewidth=0.8,
        linestyle=":",
    )
    axis.grid(axis="x", alpha=0.3)
    axis.locator_params(axis="x", nbins=4)  # more labels than that run into each other


def _draw_interval(
    axis: Axes,
    y: int,
    mean: float,
    low: float,
    high: float,
) -> None:
    # An interval that holds 0 leaves open who is better: grey, and hollow.
    is_clear = low > 0 or high < 0
    axis.plot(
        [low, high],
        [y, y],
        color="black" if is_clear else "#999999",
        linewidth=1.6,
    )
    axis.plot(
        mean,
        y,
        "o",
        color="black",
        markersize=6,
        markerfacecolor="black" if is_clear else "white",
    )
