"""Figures that survive greyscale: every curve has its own colour, dash and marker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

#: Okabe and Ito's colours, dark and light in turn, each with a dash and a marker of its own.
STYLES: list[dict[str, Any]] = [
    {"color": "#000000", "linestyle": "-", "marker": "o", "linewidth": 2.4},
    {"color": "#999999", "linestyle": ":", "marker": "x"},
    {"color": "#0072B2", "linestyle": "--", "marker": "s"},
    {"color": "#E69F00", "linestyle": "-.", "marker": "^"},
    {"color": "#009E73", "linestyle": "--", "marker": "D"},
    {"color": "#D55E00", "linestyle": "-", "marker": "v"},
    {"color": "#CC79A7", "linestyle": "-.", "marker": "P"},
    {"color": "#56B4E9", "linestyle": "--", "marker": "*"},
    {"color": "#444444", "linestyle": ":", "marker": "<"},
    {"color": "#B8A000", "linestyle": "-", "marker": ">"},
    {"color": "#882255", "linestyle": "--", "marker": "h"},
    {"color": "#88CCEE", "linestyle": ":", "marker": "d"},
]

#: label -> (x (n,), mean (n,), standard error (n,))
Curves = Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]


def panels(curves: Sequence[tuple[str, Curves]], xlabel: str, title: str, *paths: Path) -> None:
    """One picture with a panel for each (y label, curves), bands of one standard error.

    Written to every path, in the format that its ending names. With more curves than styles, styles come again.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(5.2 * len(curves), 4.2), squeeze=False)
    for axis, (ylabel, lines) in zip(axes[0], curves):
        for (label, (x, mean, error)), style in zip(lines.items(), cycle(STYLES)):
            axis.plot(x, mean, label=label, markersize=4, **style)
            axis.fill_between(x, mean - error, mean + error, color=style["color"], alpha=0.12, linewidth=0)
        axis.set(xlabel=xlabel, ylabel=ylabel)
        axis.grid(alpha=0.3)
    axes[0][-1].legend(fontsize=8, frameon=False)
    figure.suptitle(title)
    figure.tight_layout()
    for path in paths:
        figure.savefig(path, dpi=130)
    plt.close(figure)
