"""Figures that survive greyscale: every curve has its own shade, dash and marker, and no legend
lies on a curve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colours and some more, dark and light in turn.
COLOURS = (
    "#000000",
    "#999999",
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#444444",
    "#B8A000",
    "#882255",
    "#88CCEE",
)
DASHES: tuple[Any, ...] = ("-", ":", "--", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (2, 1)))
MARKERS = ("o", "x", "s", "^", "D", "v", "P", "*", "<", ">", "h", "d", "1")
OTHERS = "#CCCCCC"
OTHERS_LABEL = "the others"
OTHERS_WIDTH = 0.7
FIRST_WIDTH = 2.6
CURVE_WIDTH = 1.4
MARKER_SIZE = 4
LEGEND_SIZE = 8
TICK_SIZE = 10
DPI = 110
#: inches
PANEL_WIDTH = 4.3
INTERVALS_WIDTH = 3.0
TITLE_HEIGHT = 0.7
BETWEEN_ROWS = 0.2
BELOW = 0.55

#: label -> (x (n,), mean (n,), standard error (n,))
Curves = Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]
#: (label, mean, low, high)
Interval = tuple[str, float, float, float]
#: how a curve is drawn: matplotlib's options
Look = dict[str, Any]


def style(place: int) -> Look:
    """The look of the curve at a place. Counts of colours, dashes and markers share no factor: none
    comes again.
    """
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": DASHES[place % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)],
        "linewidth": FIRST_WIDTH if place == 0 else CURVE_WIDTH,
    }


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
    with _plain_texts():
        _save(draw_panels(curves, xlabel, title, lineup), paths)


def draw_panels(
    curves: Sequence[tuple[str, Curves]],
    xlabel: str,
    title: str = "",
    lineup: Sequence[Sequence[str]] = (),
) -> Figure:
    """The figure of panels(). A row's legend lists its curves from the highest end in the first
    panel to the lowest.
    """
    labels: dict[str, None] = {}  # a set that keeps the order
    for _, lines in curves:
        labels |= dict.fromkeys(lines)
    present = list(labels)
    rows = _rows_with_curves(lineup, present)
    label_widths = [_text_width(label, LEGEND_SIZE) for label in [*present, OTHERS_LABEL]]
    legend_width = 0.9 + max(label_widths)
    longest_row = max(map(len, rows))
    least_height = 3.2 if len(rows) == 1 else 2.8
    panel_height = max(least_height, 0.18 * (1 + longest_row))
    figure, grid = _grid(
        len(rows),
        len(curves),
        panel=(PANEL_WIDTH, panel_height),
        title=title,
        left=(0.9, 1.05),
        right=legend_width,
    )
    for number, (axes, row) in enumerate(zip(grid, rows)):
        is_lowest = number == len(rows) - 1
        looks = {label: style(place) for place, label in enumerate(row) if label in present}
        for axis, (ylabel, lines) in zip(axes, curves):
            _draw_curves(axis, lines, looks)
            axis.set(ylabel=ylabel, xlabel=xlabel if is_lowest else "")
            axis.tick_params(labelbottom=is_lowest)
        _, first_lines = curves[0]
        _draw_legend(
            axes[-1],
            first_lines,
            looks,
            has_others=len(looks) < len(present),
        )
    return figure


def _rows_with_curves(
    lineup: Sequence[Sequence[str]],
    present: Sequence[str],
) -> list[Sequence[str]]:
    """The rows of a lineup that have a curve of their own; one row where none has."""
    if not lineup:
        return [present]
    # One row has nothing but labels of its own.
    in_every_row: set[str] = set()
    if len(lineup) > 1:
        in_every_row = set.intersection(*map(set, lineup))
    rows = []
    for row in lineup:
        in_this_row_only = set(row) - in_every_row
        if not in_this_row_only.isdisjoint(present):
            rows.append(row)
    return rows or [lineup[0]]


def _draw_curves(axis: Axes, lines: Curves, looks: Mapping[str, Look]) -> None:
    """The curves that have a look, the first one on top; the others grey, where they fall within
    the frame.
    """
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
    axis.add_collection(grey, autolim=False)
    for label, look in reversed(list(looks.items())):
        if label not in lines:
            continue
        x, mean, error = lines[label]
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
    axis.locator_params(axis="x", integer=True)
    axis.grid(alpha=0.3)


def _draw_legend(axis: Axes, lines: Curves, looks: Mapping[str, Look], has_others: bool) -> None:
    """To the right of a panel, by the ends of its curves. has_others: some are grey."""
    from matplotlib.lines import Line2D

    ends = {}
    for label, (_, mean, _) in lines.items():
        ends[label] = float(mean[-1]) if len(mean) else 0.0
    # Those without a curve in this panel come last.
    labels = sorted(looks, key=lambda label: -ends.get(label, -np.inf))
    handles = []
    for label in labels:
        handle = Line2D([], [], markersize=MARKER_SIZE, **looks[label])
        handles.append(handle)
    if has_others:
        labels.append(OTHERS_LABEL)
        handles.append(Line2D([], [], color=OTHERS, linewidth=OTHERS_WIDTH))
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


def intervals(groups: Sequence[tuple[str, Sequence[Interval]]], title: str, *paths: Path) -> None:
    """One picture with a panel for each (x label, intervals): a dot and a bar a label; filled where
    0 lies outside.
    """
    with _plain_texts():
        _save(draw_intervals(groups, title), paths)


def draw_intervals(groups: Sequence[tuple[str, Sequence[Interval]]], title: str) -> Figure:
    """The figure of intervals()."""
    most_rows = 0
    widest_name = 0.0
    for _, rows in groups:
        most_rows = max(most_rows, len(rows))
        for name, *_ in rows:
            widest_name = max(widest_name, _text_width(name, TICK_SIZE))
    names_width = 0.3 + widest_name
    figure, (axes,) = _grid(
        1,
        len(groups),
        panel=(INTERVALS_WIDTH, 0.2 + 0.27 * most_rows),
        title=title,
        left=(names_width, 0.4),
        right=0.3,
    )
    for axis, (xlabel, rows) in zip(axes, groups):
        for y, (_, mean, low, high) in enumerate(rows):
            _draw_interval(axis, y, mean, low, high)
        axis.axvline(
            0,
            color="black",
            linewidth=0.8,
            linestyle=":",
        )
        axis.set(
            xlabel=xlabel,
            yticks=range(len(rows)),
            ylim=(most_rows - 0.5, -0.5),
        )
        labels = [""] * len(rows)
        if axis is axes[0]:
            labels = [label for label, *_ in rows]
        axis.set_yticklabels(labels)
        axis.grid(axis="x", alpha=0.3)
        axis.locator_params(axis="x", nbins=4)  # more labels than that run into each other
    return figure


def _draw_interval(axis: Axes, y: int, mean: float, low: float, high: float) -> None:
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


def _plain_texts() -> AbstractContextManager[None]:
    """A dollar in a contender's label is a dollar, not mathematics."""
    from matplotlib import rc_context

    return rc_context({"text.parse_math": False})


def _grid(
    rows: int,
    columns: int,
    *,
    panel: tuple[float, float],
    title: str,
    left: tuple[float, float],
    right: float,
) -> tuple[Figure, list[list[Axes]]]:
    """Panels of one size; all sizes in inches.

    Measuring every text to find these, as matplotlib's layouts do, takes as long as drawing.

    panel  width and height of each
    left   room left of the first column, and of each other
    right  room right of the last column
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panel_width, panel_height = panel
    first_left, other_left = left
    row_pitch = panel_height + BETWEEN_ROWS
    column_pitch = panel_width + other_left
    width = first_left + columns * panel_width + (columns - 1) * other_left + right
    height = TITLE_HEIGHT + rows * panel_height + (rows - 1) * BETWEEN_ROWS + BELOW
    figure = Figure(figsize=(width, height), dpi=DPI)
    FigureCanvasAgg(figure)  # a canvas of its own: pyplot would keep the figure
    figure.text(
        0.5,
        1 - 0.15 / height,
        title,
        fontsize=11,
        ha="center",
        va="top",
    )
    grid: list[list[Axes]] = []
    for row in range(rows):
        y = height - TITLE_HEIGHT - row * row_pitch - panel_height
        axes = []
        for column in range(columns):
            x = first_left + column * column_pitch
            # matplotlib wants parts of the whole.
            frame = (
                x / width,
                y / height,
                panel_width / width,
                panel_height / height,
            )
            axes.append(figure.add_axes(frame))
        grid.append(axes)
    return figure, grid


@cache
def _text_width(label: str, size: float) -> float:
    """Inches that a label takes."""
    from matplotlib.textpath import TextPath

    if not label.strip():
        return 0.0
    outline = TextPath((0, 0), label, size=size)
    points = outline.get_extents().width
    return float(points) / 72


def _save(figure: Figure, paths: Sequence[Path]) -> None:
    for path in paths:
        if path.suffix == ".png":
            _save_png(figure, path)
        else:
            figure.savefig(path)


def _save_png(figure: Figure, path: Path) -> None:
    """In 256 colours: a third of the size, for a page that holds many."""
    from PIL import Image

    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]
    image = Image.fromarray(np.ascontiguousarray(pixels))
    reduced = image.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    reduced.save(path, dpi=(DPI, DPI))
