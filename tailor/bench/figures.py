"""Figures that survive greyscale: every curve has its own shade, dash and marker, and no legend lies on a curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Okabe and Ito's colours and some more, dark and light in turn.
COLOURS = (
    "#000000", "#999999", "#0072B2", "#E69F00", "#009E73", "#D55E00",
    "#CC79A7", "#56B4E9", "#444444", "#B8A000", "#882255", "#88CCEE",
)  # fmt: skip
DASHES: tuple[Any, ...] = ("-", ":", "--", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (2, 1)))
MARKERS = ("o", "x", "s", "^", "D", "v", "P", "*", "<", ">", "h", "d", "1")

#: label -> (x (n,), mean (n,), standard error (n,))
Curves = Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]
#: (label, mean, low, high)
Interval = tuple[str, float, float, float]


def style(place: int) -> dict[str, Any]:
    """The look of the curve at a place. Counts of colours, dashes and markers share no factor: none comes again."""
    found = {"color": COLOURS, "linestyle": DASHES, "marker": MARKERS}
    return {key: looks[place % len(looks)] for key, looks in found.items()} | {"linewidth": 1.4 if place else 2.6}


def panels(
    curves: Sequence[tuple[str, Curves]], xlabel: str, title: str, *paths: Path, order: Sequence[str] = ()
) -> None:
    """One picture with a panel for each (y label, curves), bands of one standard error, the legend to the right.

    order  of labels, by which curves get their looks, so that a contender looks the same in every figure
    paths  written to each, in the format that its ending names
    """
    _save(draw_panels(curves, xlabel, order), title, paths)


def draw_panels(curves: Sequence[tuple[str, Curves]], xlabel: str, order: Sequence[str] = ()) -> Figure:
    """The legend lists the curves from the highest end of the first panel to the lowest."""
    figure: Figure
    figure, axes = _pyplot().subplots(
        1, len(curves), figsize=(5.2 * len(curves) + 1.9, 4.4), squeeze=False, layout="constrained"
    )
    handles: dict[str, Any] = {}
    places = {label: place for place, label in enumerate(dict.fromkeys([*order, *(n for _, c in curves for n in c)]))}
    for axis, (ylabel, lines) in zip(axes[0], curves):
        for label, (x, mean, error) in reversed(list(lines.items())):  # the first one on top
            look = style(places[label])
            (handles[label],) = axis.plot(x, mean, label=label, markersize=4, **look)
            axis.fill_between(x, mean - error, mean + error, color=look["color"], alpha=0.12, linewidth=0)
        axis.set(xlabel=xlabel, ylabel=ylabel)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
    ends = {label: float(mean[-1]) if len(mean) else 0.0 for label, (_, mean, _) in curves[0][1].items()}
    labels = sorted(handles, key=lambda label: -ends.get(label, -np.inf))
    axes[0][-1].legend(
        [handles[one] for one in labels], labels, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0,
        fontsize=8, frameon=False, handlelength=4,
    )  # fmt: skip
    return figure


def intervals(found: Sequence[tuple[str, Sequence[Interval]]], title: str, *paths: Path) -> None:
    """One picture with a panel for each (x label, intervals): a dot and a bar a label; filled where 0 lies outside."""
    plt = _pyplot()
    height = 1.5 + 0.27 * max(len(rows) for _, rows in found)
    figure, axes = plt.subplots(
        1, len(found), figsize=(1.8 + 3.2 * len(found), height), squeeze=False, sharey=True, layout="constrained"
    )
    for axis, (xlabel, rows) in zip(axes[0], found):
        for y, (_, mean, low, high) in enumerate(rows):
            clear = low > 0 or high < 0
            axis.plot([low, high], [y, y], color="black" if clear else "#999999", linewidth=1.6)
            axis.plot(mean, y, "o", color="black", markersize=6, markerfacecolor="black" if clear else "white")
        axis.axvline(0, color="black", linewidth=0.8, linestyle=":")
        axis.set(xlabel=xlabel, yticks=range(len(rows)), yticklabels=[label for label, *_ in rows])
        axis.grid(axis="x", alpha=0.3)
    axes[0][0].invert_yaxis()
    _save(figure, title, paths)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _save(figure: Figure, title: str, paths: Sequence[Path]) -> None:
    figure.suptitle(title, fontsize=11)
    for path in paths:
        figure.savefig(path, dpi=130)
    _pyplot().close(figure)
