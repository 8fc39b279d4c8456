"""The rows of `tailor bench scale` as a log-log figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tailor.capacity.whole_round import START, WHOLE
from tailor_experiments.figures import Look, style
from tailor_experiments.speed.scale import Row
from tailor_experiments.speed.scale_report import different_values, rows_where


def draw(rows: list[Row], *paths: Path) -> None:
    """Seconds of every stage against each axis, log-log."""
    import matplotlib

    # No window is opened, and none could be on a machine without a display.
    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [row for row in rows if row["stage"] != START]
    axes = different_values(rows, "axis")
    figure, (panels,) = pyplot.subplots(
        1,
        len(axes),
        figsize=(4.6 * len(axes), 4.2),
        squeeze=False,
        sharey=True,
    )
    stages = different_values(rows, "stage")
    looks = _looks(stages)
    lines: dict[str, Any] = {}
    for panel, axis in zip(panels, axes):
        along = rows_where(rows, "axis", axis)
        lines |= _draw_axis(
            panel,
            along,
            stages,
            looks,
        )
        panel.set_xlabel(axis)
    panels[0].set_ylabel("seconds")
    panels[-1].legend(
        lines.values(),
        lines.keys(),
        fontsize=7,
        loc="center left",
        bbox_to_anchor=(1, 0.5),
    )
    figure.tight_layout()
    for path in paths:
        figure.savefig(path, dpi=150)
    # pyplot keeps every figure until it is told.
    pyplot.close(figure)


def _looks(stages: list[str]) -> dict[str, Look]:
    """stage -> how its curve is drawn, the same in every panel"""
    # The whole round has the boldest line, which is the first.
    whole_first = dict.fromkeys([WHOLE, *stages])
    return {stage: style(place) for place, stage in enumerate(whole_first)}


def _draw_axis(
    panel: Any,
    rows: list[Row],
    stages: list[str],
    looks: dict[str, Look],
) -> dict[str, Any]:
    """The curve of every stage along one axis -> stage -> its line."""
    lines = {}
    for stage in stages:
        curve = rows_where(rows, "stage", stage)
        # An axis has not every stage: with few arms there are fewer.
        if not curve:
            continue
        values = [row["value"] for row in curve]
        seconds = [row["seconds"] for row in curve]
        (lines[stage],) = panel.loglog(
            values,
            seconds,
            label=stage,
            **looks[stage],
        )
    panel.grid(alpha=0.3, which="both")
    return lines
