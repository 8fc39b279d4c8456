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
DPI = 110

#: label -> (x (n,), mean (n,), standard error (n,))
Curves = Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]
#: (label, mean, low, high)
Interval = tuple[str, float, float, float]


def style(place: int) -> dict[str, Any]:
    """The look of the curve at a place. Counts of colours, dashes and markers share no factor: none
    comes again.
    """
    found = {"color": COLOURS, "linestyle": DASHES, "marker": MARKERS}
    return {key: looks[place % len(looks)] for key, looks in found.items()} | {
        "linewidth": 1.4 if place else 2.6
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
    """A row's legend lists its curves from the highest end in the first panel to the lowest."""
    present = list(dict.fromkeys(label for _, lines in curves for label in lines))
    rows = [row for row in lineup if _own(row, lineup) & set(present)] or [
        [*lineup[0]] if lineup else present
    ]
    key = 0.9 + max(
        _wide(label, 8) for label in [*present, "the others"]
    )  # inches that the legend takes
    tall = max(3.2 if len(rows) == 1 else 2.8, 0.18 * (1 + max(map(len, rows))))
    figure, grid = _grid(len(rows), len(curves), (4.3, tall), title, (0.9, 1.05), key)
    for axes, row, lowest in zip(grid, rows, [*[False] * (len(rows) - 1), True]):
        looks = {label: style(place) for place, label in enumerate(row) if label in present}
        for axis, (ylabel, lines) in zip(axes, curves):
            _lines(axis, lines, looks)
            axis.set(ylabel=ylabel, xlabel=xlabel if lowest else "")
            axis.tick_params(labelbottom=lowest)
        _legend(axes, curves[0][1], looks, len(looks) < len(present))
    return figure


def _own(row: Sequence[str], lineup: Sequence[Sequence[str]]) -> set[str]:
    """The labels of a row that are not in every one."""
    every = set.intersection(*map(set, lineup)) if len(lineup) > 1 else set()
    return set(row) - every


def _lines(axis: Axes, lines: Curves, looks: Mapping[str, dict[str, Any]]) -> None:
    """The curves that have a look, the first one on top; the others grey, where they fall within
    the frame.
    """
    from matplotlib.collections import LineCollection

    others = [
        np.column_stack([x, mean]) for label, (x, mean, _) in lines.items() if label not in looks
    ]
    axis.add_collection(
        LineCollection(others, colors=OTHERS, linewidths=0.7, zorder=1), autolim=False
    )
    for label, look in reversed(list(looks.items())):
        if label in lines:
            x, mean, error = lines[label]
            axis.plot(x, mean, label=label, markersize=4, markevery=max(1, len(x) // 25), **look)
            axis.fill_between(
                x, mean - error, mean + error, color=look["color"], alpha=0.12, linewidth=0
            )
    axis.locator_params(axis="x", integer=True)
    axis.grid(alpha=0.3)


def _legend(
    axes: Sequence[Axes], first: Curves, looks: Mapping[str, dict[str, Any]], more: bool
) -> None:
    from matplotlib.lines import Line2D

    ends = {label: float(mean[-1]) if len(mean) else 0.0 for label, (_, mean, _) in first.items()}
    labels = sorted(looks, key=lambda label: -ends.get(label, -np.inf))
    handles = [Line2D([], [], markersize=4, **looks[label]) for label in labels]
    if more:
        labels = [*labels, "the others"]
        handles = [*handles, Line2D([], [], color=OTHERS, linewidth=0.7)]
    axes[-1].legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        borderaxespad=0,
        fontsize=8,
        frameon=False,
        handlelength=4,
    )


def intervals(found: Sequence[tuple[str, Sequence[Interval]]], title: str, *paths: Path) -> None:
    """One picture with a panel for each (x label, intervals): a dot and a bar a label; filled where
    0 lies outside.
    """
    with _plain_texts():
        _save(draw_intervals(found, title), paths)


def draw_intervals(found: Sequence[tuple[str, Sequence[Interval]]], title: str) -> Figure:
    names = 0.3 + max(_wide(row[0], 10) for _, rows in found for row in rows)
    tall = max(len(r) for _, r in found)
    figure, (axes,) = _grid(1, len(found), (3.0, 0.2 + 0.27 * tall), title, (names, 0.4), 0.3)
    for axis, (xlabel, rows) in zip(axes, found):
        for y, (_, mean, low, high) in enumerate(rows):
            clear = low > 0 or high < 0
            axis.plot([low, high], [y, y], color="black" if clear else "#999999", linewidth=1.6)
            axis.plot(
                mean,
                y,
                "o",
                color="black",
                markersize=6,
                markerfacecolor="black" if clear else "white",
            )
        axis.axvline(0, color="black", linewidth=0.8, linestyle=":")
        shown = [label for label, *_ in rows] if axis is axes[0] else []
        axis.set(xlabel=xlabel, yticks=range(len(rows)), ylim=(tall - 0.5, -0.5))
        axis.set_yticklabels(shown or [""] * len(rows))
        axis.grid(axis="x", alpha=0.3)
        axis.locator_params(axis="x", nbins=4)  # more labels than that run into each other
    return figure


def _plain_texts() -> AbstractContextManager[None]:
    """A dollar in a contender's label is a dollar, not mathematics."""
    from matplotlib import rc_context

    return rc_context({"text.parse_math": False})


def _grid(
    rows: int,
    columns: int,
    panel: tuple[float, float],
    title: str,
    left: tuple[float, float],
    right: float,
) -> tuple[Figure, list[list[Axes]]]:
    """Panels of one size, all in inches: what lies left of the first column, and of the others, and
    right of the last.

    Measuring every text to find these, as matplotlib's layouts do, takes as long as drawing.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    top, under, bottom = 0.7, 0.2, 0.55
    width = left[0] + columns * panel[0] + (columns - 1) * left[1] + right
    height = top + rows * panel[1] + (rows - 1) * under + bottom
    figure = Figure(figsize=(width, height), dpi=DPI)
    FigureCanvasAgg(figure)  # a canvas of its own: pyplot would keep the figure
    figure.text(0.5, 1 - 0.15 / height, title, fontsize=11, ha="center", va="top")
    grid: list[list[Axes]] = []
    for row in range(rows):
        y = height - top - row * (panel[1] + under) - panel[1]
        at = [left[0] + column * (panel[0] + left[1]) for column in range(columns)]
        grid.append(
            [
                figure.add_axes((x / width, y / height, panel[0] / width, panel[1] / height))
                for x in at
            ]
        )
    return figure, grid


@cache
def _wide(label: str, size: float) -> float:
    """Inches that a label takes."""
    from matplotlib.textpath import TextPath

    return (
        float(TextPath((0, 0), label, size=size).get_extents().width) / 72 if label.strip() else 0.0
    )


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
    image.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
        path, dpi=(DPI, DPI)
    )
