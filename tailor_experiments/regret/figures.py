"""The simulated regret as figures and as a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

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
_AXES = {
    "rounds": "T (rounds)",
    "arms": "M (arms)",
    "classes": "K (classes)",
    "slots": "B (slots a round)",
}


def write_rows(rows: Sequence[RegretRow], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        for r in rows:
            s = r.setting
            point = [
                r.sweep,
                s.kind,
                s.weights,
                s.rounds,
                s.arms,
                s.classes,
                s.slots,
                s.drift,
                r.selector,
            ]
            numbers = [r.mean, r.error, r.relative, r.relative_error]
            writer.writerow([*point, len(r.regret), *(f"{x:.6g}" for x in numbers)])


def draw(rows: Sequence[RegretRow], folder: Path) -> list[Path]:
    """A figure for each task and kind of v (regret, and below it relative to random), one of the
    drift.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    made = []
    for kind in ("multi-class", "multi-label"):
        for weights in ("random", "diversity"):
            figure, panels = plt.subplots(2, 4, figsize=(15, 7), constrained_layout=True)
            for column, (axis, label) in enumerate(_AXES.items()):
                for name in COMPETITORS:
                    line, marker, colour = _STYLES[name]
                    found = pick(rows, axis, kind, weights, name)
                    x = [getattr(r.setting, axis) for r in found]
                    look = {
                        "linestyle": line,
                        "marker": marker,
                        "color": colour,
                        "capsize": 2,
                        "label": name,
                    }
                    top = panels[0, column]
                    bottom = panels[1, column]
                    top.errorbar(x, [r.mean for r in found], [r.error for r in found], **look)
                    bottom.errorbar(
                        x, [r.relative for r in found], [r.relative_error for r in found], **look
                    )
                top.set(xscale="log", yscale="log", xlabel=label)
                bottom.set(xscale="log", xlabel=label, ylim=(0, None))
                for panel in (top, bottom):  # ticks where the points are, and no others
                    panel.set_xticks(x, [str(value) for value in x])
                    panel.set_xticks([], minor=True)
            panels[0, 0].set_ylabel("Bayesian regret")
            panels[1, 0].set_ylabel("regret / random's")
            panels[0, 0].legend(fontsize=8)
            figure.suptitle(f"{kind}, {weights} v: mean and standard error over instances")
            made.append(folder / f"regret-{kind}-{weights}.png")
            figure.savefig(made[-1], dpi=110)
            plt.close(figure)
    made.append(_draw_drift(rows, folder))
    return made


def _draw_drift(rows: Sequence[RegretRow], folder: Path) -> Path:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 4, figsize=(15, 4), constrained_layout=True, sharey=True)
    groups = [(kind, v) for kind in ("multi-class", "multi-label") for v in ("random", "diversity")]
    for panel, (kind, weights) in zip(panels, groups):
        for name in COMPETITORS:
            line, marker, colour = _STYLES[name]
            # the longest stationary run is the point of no drift
            found = [
                pick(rows, "rounds", kind, weights, name)[-1],
                *pick(rows, "drift", kind, weights, name),
            ]
            panel.errorbar(
                [r.setting.drift for r in found],
                [r.relative for r in found],
                [r.relative_error for r in found],
                linestyle=line,
                marker=marker,
                color=colour,
                capsize=2,
                label=name,
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
