"""Curves with bands of one standard error, in rows of panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tailor_experiments.figures.canvas import make_grid, plain_texts, save, text_width
from tailor_experiments.figures.looks import (
    MARKER_SIZE,
    OTHERS,
    OTHERS_LABEL,
    OTHERS_WIDTH,
    Look,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: points
LEGEND_SIZE = 8
#: inches
PANEL_WIDTH = 4.3

#: label -> (x (n,), mean (n,), standard error (n,))
Curves = Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]


def panels(
    curves: Sequence[tuple[str, Curves]],
    xlabel: str,
    title: str,
    *paths: Path,
    lineup: Sequence[Sequence[str]] = (),
) -> None:
    """One picture with a panel for each (y label, curves), bands of one standard error, legends to
    the right.

    lineup  labels in rows: with more than one, each has its own row of panels, in which the other
            curves are thin and grey. A label's place in its row gives its look, so that it looks
            the same in every figure
    paths   written to each, in the format that its ending names
    """
    with plain_texts():
        save(
            draw_panels(
                curves,
                xlabel,
                title,
                lineup,
            ),
            paths,
        )


def draw_panels(
    curves: Sequence[tuple[str, Curves]],
    xlabel: str,
    title: str = "",
    lineup: Sequence[Sequence[str]] = (),
) -> Figure:
    """The figure of panels(). A row's legend lists its curves from the highest end in the first
    panel to the lowest.
    """
    present = _labels_of(curves)
    rows = _rows_with_curves(lineup, present)
    figure, grid = make_grid(
        len(rows),
        len(curves),
        panel=(PANEL_WIDTH, _panel_height(rows)),
        title=title,
        left=(0.9, 1.05),
        right=_legend_width(present),
    )
    for axes, row in zip(grid, rows):
        looks = {label: style(place) for place, label in enumerate(row) if label in present}
        _draw_row(axes, curves, looks)
        _draw_legend(
            axes[-1],
            curves[0][1],
            looks,
            has_others=len(looks) < len(present),
        )
    _label_lowest(grid, xlabel)
    return figure


def _labels_of(curves: Sequence[tuple[str, Curves]]) -> list[str]:
    """Of all panels, each once, in order of appearance."""
    labels: dict[str, None] = {}  # a set that keeps the order
    for _, lines in curves:
        labels |= dict.fromkeys(lines)
    return list(labels)


def _panel_height(rows: Sequence[Sequence[str]]) -> float:
    """Inches; the legend of the longest row must fit beside a panel."""
    least = 3.2 if len(rows) == 1 else 2.8
    longest_row = max(map(len, rows))
    return max(least, 0.18 * (1 + longest_row))


def _legend_width(labels: Sequence[str]) -> float:
    """Inches, with room for the lines beside the labels."""
    widths = [text_width(label, LEGEND_SIZE) for label in [*labels, OTHERS_LABEL]]
    return 0.9 + max(widths)


def _draw_row(
    axes: Sequence[Axes], curves: Sequence[tuple[str, Curves]], looks: Mapping[str, Look]
) -> None:
    """One row of panels."""
    for axis, (ylabel, lines) in zip(axes, curves):
        _draw_curves(axis, lines, looks)
        axis.set_ylabel(ylabel)


def _label_lowest(grid: Sequence[Sequence[Axes]], xlabel: str) -> None:
    """The x axis is named below the lowest row: the same numbers stand below each other."""
    for axes in grid:
        is_lowest = axes is grid[-1]
        for axis in axes:
            axis.set_xlabel(xlabel if is_lowest else "")
            axis.tick_params(labelbottom=is_lowest)


def _rows_with_curves(
    lineup: Sequence[Sequence[str]], present: Sequence[str]
) -> list[Sequence[str]]:
    """The rows of a lineup that have a curve of their own; one row where none has."""
    if not lineup:
        return [present]
    in_every_row = _in_every_row(lineup)
    rows = []
    for row in lineup:
        in_this_row_only = set(row) - in_every_row
        if not in_this_row_only.isdisjoint(present):
            rows.append(row)
    return rows or [lineup[0]]


def _in_every_row(lineup: Sequence[Sequence[str]]) -> set[str]:
    """Labels that no row has for itself."""
    # One row has nothing but labels of its own.
    if len(lineup) == 1:
        return set()
    return set.intersection(*map(set, lineup))


def _draw_curves(axis: Axes, lines: Curves, looks: Mapping[str, Look]) -> None:
    """The curves that have a look, the first one on top; the others grey, where they fall within
    the frame.
    """
    _draw_others(axis, lines, looks)
    # What is drawn later lies above.
    for label, look in reversed(list(looks.items())):
        if label not in lines:
            continue
        x, mean, error = lines[label]
        # On a long curve a marker at every point would hide its line.
        markers_apart = max(1, len(x) // 25)
        axis.plot(
            x,
            mean,
            label=label,
            markersize=MARKER_SIZE,
            markevery=markers_apart,
            **look,
        )
        axis.fill_between(
            x,
            mean - error,
            mean + error,
            color=look["color"],
            alpha=0.12,
            linewidth=0,
        )
    # Labels and rounds are whole numbers.
    axis.locator_params(axis="x", integer=True)
    axis.grid(alpha=0.3)


def _draw_others(axis: Axes, lines: Curves, looks: Mapping[str, Look]) -> None:
    """The curves without a look, thin and grey."""
    from matplotlib.collections import LineCollection

    others = []
    for label, (x, mean, _) in lines.items():
        if label not in looks:
            others.append(np.column_stack([x, mean]))
    grey = LineCollection(
        others,
        colors=OTHERS,
        linewidths=OTHERS_WIDTH,
        zorder=1,
    )
    # They don't stretch the frame: the curves of this row fill it.
    axis.add_collection(grey, autolim=False)


def _draw_legend(
    axis: Axes,
    lines: Curves,
    looks: Mapping[str, Look],
    has_others: bool,
) -> None:
    """To the right of a panel, by the ends of its curves. has_others: some are grey."""
    from matplotlib.lines import Line2D

    ends = _ends(lines)
    # Those without a curve in this panel come last.
    labels = sorted(looks, key=lambda label: -ends.get(label, -np.inf))
    handles = [
        Line2D(
            [],
            [],
            markersize=MARKER_SIZE,
            **looks[label],
        )
        for label in labels
    ]
    if has_others:
        labels.append(OTHERS_LABEL)
        handles.append(
            Line2D(
                [],
                [],
                color=OTHERS,
                linewidth=OTHERS_WIDTH,
            )
        )
    axis.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        borderaxespad=0,
        fontsize=LEGEND_SIZE,
        frameon=False,
        handlelength=4,
    )


def _ends(lines: Curves) -> dict[str, float]:
    """label -> the height at which its curve ends"""
    ends = {}
    for label, (_, mean, _) in lines.items():
        ends[label] = float(mean[-1]) if len(mean) else 0.0
    return ends
