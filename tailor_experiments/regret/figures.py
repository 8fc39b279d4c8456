"""The simulated regret as figures and as a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tailor_experiments.regret.claims import pick
from tailor_experiments.regret.simulation import COMPETITORS, RegretRow

#: line, marker and shade: told apart without colour too
_STYLES = {
    "tailor": ("-", "o", "black"),
    "tailor-shrink": ("--", "s", "tab:blue"),
    "tailor-prior": ("-.", "D", "tab:cyan"),
    "linear-thompson": (":", "^", "tab:red"),
    "albl": ((0, (5, 1, 1, 1, 1, 1)), "v", "tab:orange"),
    "random": ((0, (1, 3)), "x", "gray"),
}
_COLUMNS = (
    *("sweep", "kind", "weights", "rounds", "arms", "classes", "slots", "drift", "selector"),
    *("instances", "regret", "error", "relative", "relative_error"),
)
_GROUPS = (
    ("multi-class", "random"),
    ("multi-class", "diversity"),
    ("multi-label", "random"),
    ("multi-label", "diversity"),
)
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
            setting = row.setting
            writer.writerow(
                [
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
            )


def draw(rows: Sequence[RegretRow], folder: Path) -> list[Path]:
    """A figure for each task and kind of v (regret, and below it relative to random), one of the
    drift.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    paths = []
    for kind, weights in _GROUPS:
        figure, panels = plt.subplots(
            2,
            4,
            figsize=(15, 7),
            constrained_layout=True,
        )
        for column, (axis, label) in enumerate(_AXES.items()):
            top = panels[0, column]
            bottom = panels[1, column]
            for name in COMPETITORS:
                points = pick(rows, axis, kind, weights, name)
                x = [getattr(point.setting, axis) for point in points]
                means = [point.mean for point in points]
                top.errorbar(
                    x,
                    means,
                    [point.error for point in points],
                    **_look(name),
                )
                shares = [point.relative for point in points]
                errors = [point.relative_error for point in points]
                bottom.errorbar(x, shares, errors, **_look(name))
            top.set(xscale="log", yscale="log", xlabel=label)
            bottom.set(xscale="log", xlabel=label, ylim=(0, None))
            for panel in (top, bottom):  # ticks where the points are, and no others
                panel.set_xticks(x, [str(value) for value in x])
                panel.set_xticks([], minor=True)
        panels[0, 0].set_ylabel("Bayesian regret")
        panels[1, 0].set_ylabel("regret / random's")
        panels[0, 0].legend(fontsize=8)
        figure.suptitle(f"{kind}, {weights} v: mean and standard error over instances")
        path = folder / f"regret-{kind}-{weights}.png"
        figure.savefig(path, dpi=110)
        plt.close(figure)
        paths.append(path)
    paths.append(_draw_drift(rows, folder))
    return paths


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
        4,
        figsize=(15, 4),
        constrained_layout=True,
        sharey=True,
    )
    for panel, (kind, weights) in zip(panels, _GROUPS):
        for name in COMPETITORS:
            # The longest stationary run is the point of no drift.
            stationary = pick(rows, "rounds", kind, weights, name)[-1]
            points = [stationary, *pick(rows, "drift", kind, weights, name)]
            panel.errorbar(
                [point.setting.drift for point in points],
                [point.relative for point in points],
                [point.relative_error for point in points],
                **_look(name),
            )
        panel.set(
            title=f"{kind}, {weights} v",
            xlabel="chance that an arm changes, a round",
            ylim=(0, None),
        )
    panels[0].set_ylabel("regret / random's")
    panels[0].legend(fontsize=8)
    path = folder / "regret-drift.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
