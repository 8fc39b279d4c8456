"""The simulated regret as figures and as a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailor_experiments.regret.claims import pick
from tailor_experiments.regret.simulation import COMPETITORS, RegretRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: line, marker and shade: told apart without colour too
_STYLES = {
    "tailor": ("-", "o", "black"),
    "tailor-shrink": ("--", "s", "tab:blue"),
    "tailor-prior": ("-.", "D", "tab:cyan"),
    "linear-thompson": (":", "^", "tab:red"),
    "albl": ((0, (5, 1, 1, 1, 1, 1)), "v", "tab:orange"),
    "random": ((0, (1, 3)), "x", "gray"),
}
#: of the CSV file
_COLUMNS = (
    *("sweep", "kind", "weights", "rounds", "arms", "classes", "slots", "drift", "selector"),
    *("instances", "regret", "error", "relative", "relative_error"),
)
#: (task, kind of v), a figure each
_GROUPS = (
    ("multi-class", "random"),
    ("multi-class", "diversity"),
    ("multi-label", "random"),
    ("multi-label", "diversity"),
)
#: what varies -> what figures call it
_AXES = {
    "rounds": "T (rounds)",
    "arms": "M (arms)",
    "classes": "K (classes)",
    "slots": "B (slots a round)",
}


def write_rows(rows: Sequence[RegretRow], path: Path) -> None:
    """One line a selector and setting, as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        for row in rows:
            writer.writerow(_cells(row))


def _cells(row: RegretRow) -> list[Any]:
    """In the order of _COLUMNS."""
    setting = row.setting
    return [
        row.sweep,
        setting.kind,
        setting.weights,
        setting.rounds,
        setting.arms,
        setting.classes,
        setting.slots,
        setting.drift,
        row.selector,
        len(row.regret),
        f"{row.mean:.6g}",
        f"{row.error:.6g}",
        f"{row.relative:.6g}",
        f"{row.relative_error:.6g}",
    ]


def draw(rows: Sequence[RegretRow], folder: Path) -> list[Path]:
    """A figure for each task and kind of v (regret, and below it relative to random), one of the
    drift.
    """
    import matplotlib

    # No window is opened, and none could be on a machine without a display.
    matplotlib.use("Agg")
    paths = [
        _draw_group(
            rows,
            kind,
            weights,
            folder,
        )
        for kind, weights in _GROUPS
    ]
    paths.append(_draw_drift(rows, folder))
    return paths


def _draw_group(
    rows: Sequence[RegretRow],
    kind: str,
    weights: str,
    folder: Path,
) -> Path:
    """The figure of one task and kind of v: a column of panels for each axis."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        2,
        len(_AXES),
        figsize=(15, 7),
        constrained_layout=True,
    )
    for (axis, label), (top, bottom) in zip(_AXES.items(), panels.T):
        curves = {
            name: pick(
                rows,
                axis,
                kind,
                weights,
                name,
            )
            for name in COMPETITORS
        }
        _draw_regret(top, curves, axis)
        _draw_shares(bottom, curves, axis)
        top.set_xlabel(label)
        bottom.set_xlabel(label)
    panels[0, 0].set_ylabel("Bayesian regret")
    panels[1, 0].set_ylabel("regret / random's")
    panels[0, 0].legend(fontsize=8)
    figure.suptitle(f"{kind}, {weights} v: mean and standard error over instances")
    path = folder / f"regret-{kind}-{weights}.png"
    _save(figure, path)
    return path


#: selector -> its points along an axis
Curves = dict[str, list[RegretRow]]


def _draw_regret(panel: Axes, curves: Curves, axis: str) -> None:
    """The regret itself, log-log: a power of x is a line."""
    for name, points in curves.items():
        panel.errorbar(
            _values(points, axis),
            [point.mean for point in points],
            [point.error for point in points],
            **_look(name),
        )
    panel.set(xscale="log", yscale="log")
    _set_ticks(panel, curves, axis)


def _draw_shares(panel: Axes, curves: Curves, axis: str) -> None:
    """Relative to random's regret."""
    for name, points in curves.items():
        panel.errorbar(
            _values(points, axis),
            [point.relative for point in points],
            [point.relative_error for point in points],
            **_look(name),
        )
    panel.set(xscale="log", ylim=(0, None))
    _set_ticks(panel, curves, axis)


def _values(points: list[RegretRow], axis: str) -> list[int]:
    return [getattr(point.setting, axis) for point in points]


def _set_ticks(panel: Axes, curves: Curves, axis: str) -> None:
    """Where the points are, and nowhere else."""
    # Every selector was played at the same points.
    points = curves["random"]
    x = _values(points, axis)
    panel.set_xticks(x, [str(value) for value in x])
    panel.set_xticks([], minor=True)


def _save(figure: Figure, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=110)
    # pyplot keeps every figure until it is told.
    plt.close(figure)


def _look(name: str) -> dict[str, Any]:
    line, marker, colour = _STYLES[name]
    return {
        "linestyle": line,
        "marker": marker,
        "color": colour,
        "capsize": 2,
        "label": name,
    }


def _draw_drift(rows: Sequence[RegretRow], folder: Path) -> Path:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1,
        len(_GROUPS),
        figsize=(15, 4),
        constrained_layout=True,
        sharey=True,
    )
    for panel, (kind, weights) in zip(panels, _GROUPS):
        for name in COMPETITORS:
            _draw_drifting(
                panel,
                rows,
                kind,
                weights,
                name,
            )
        panel.set(
            title=f"{kind}, {weights} v",
            xlabel="chance that an arm changes, a round",
            ylim=(0, None),
        )
    panels[0].set_ylabel("regret / random's")
    panels[0].legend(fontsize=8)
    path = folder / "regret-drift.png"
    _save(figure, path)
    return path


def _draw_drifting(
    panel: Axes,
    rows: Sequence[RegretRow],
    kind: str,
    weights: str,
    selector: str,
) -> None:
    """One selector's regret against the drift."""
    # The longest stationary run is the point of no drift.
    stationary = pick(
        rows,
        "rounds",
        kind,
        weights,
        selector,
    )[-1]
    drifting = pick(
        rows,
        "drift",
        kind,
        weights,
        selector,
    )
    points = [stationary, *drifting]
    panel.errorbar(
        [point.setting.drift for point in points],
        [point.relative for point in points],
        [point.relative_error for point in points],
        **_look(selector),
    )
