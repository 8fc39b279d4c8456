"""The rows of `tailor bench scale` as Markdown tables and a log-log figure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import log
from pathlib import Path
from statistics import linear_regression
from typing import Any

from tailor.capacity.whole_round import START, WHOLE
from tailor.errors import InputError
from tailor_experiments.speed.scale import AXES, Row

#: stages shorter than this are noise, and have no exponent
SHORT = 0.02
#: stages shorter than this are not worth a plan's precision
NAMED = 1.0
#: a plan keeps its word where what happens is off by no more
PROMISED = 0.3


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """Of several files; a stage that is measured again replaces the earlier row."""
    latest: dict[tuple[Any, ...], Row] = {}
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            for line in lines:
                row = json.loads(line)
                axis_number = AXES.index(row["axis"])
                key = (axis_number, row["value"], row["stage"])
                latest[key] = row
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise InputError(
                f"{path} holds no rows of `tailor bench scale` ({problem}): name a scale.jsonl"
            ) from None
    # By axis and value; stages stay in the order of the round.
    order = sorted(latest, key=lambda key: key[:2])
    return [latest[key] for key in order]


def exponents(rows: list[Row]) -> dict[tuple[str, str], float]:
    """(axis, stage) -> the slope in log-log, where the stage takes long enough to tell.

    Of the CPU's seconds where this process does all the work on one: other work on the machine
    changes them least.
    """
    curves: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        key = (row["axis"], row["stage"])
        curves.setdefault(key, []).append(row)
    slopes: dict[tuple[str, str], float] = {}
    for (axis, stage), curve in curves.items():
        slope = _exponent(curve)
        if slope is not None and stage != START:
            slopes[axis, stage] = slope
    return slopes


def _exponent(curve: list[Row]) -> float | None:
    """The slope of one stage along one axis; None where it can't be told."""
    first = curve[0]
    on_cpu = first["device"].startswith("cpu")
    clock = "seconds"
    if on_cpu and first["axis"] != "workers":
        clock = "cpu_seconds"
    values = [row["value"] for row in curve]
    seconds = [row[clock] for row in curve]
    if len(set(values)) < 2:
        return None
    if max(seconds) < SHORT:
        return None
    x = [log(value) for value in values]
    # A clock that did not move has no logarithm.
    y = [log(max(second, 1e-4)) for second in seconds]
    line = linear_regression(x, y)
    return line.slope


def report(rows: list[Row]) -> str:
    """All of it in Markdown: what was measured on, a table an axis, and plans beside what
    happened.
    """
    parts = [_heading(rows[0])]
    for axis in dict.fromkeys(row["axis"] for row in rows):
        parts += [_setting(rows, axis), growth(rows, axis)]
    for round_rows in _rounds(rows):
        if "planned_seconds" in round_rows[0]:
            parts.append(against_plan(round_rows))
    return "\n\n".join(parts)


def _rounds(rows: list[Row]) -> list[list[Row]]:
    """The rows of each round."""
    rounds: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        key = (row["axis"], row["value"])
        rounds.setdefault(key, []).append(row)
    return list(rounds.values())


def _heading(row: Row) -> str:
    text = (
        f"{row['device']}. Seconds, in brackets CPU seconds of the process, and its peak memory. "
        "Exponents are those of CPU seconds; for workers and on a GPU, of seconds. The last "
        "column is the limit's share of the seconds at the largest value, where a stage has to "
        "read or multiply"
    )
    rates = row.get("machine")
    if rates:
        gigabytes = rates["read"] / 1e9
        gigaflops = rates["multiply"] / 1e9
        text += (
            f": the bytes that must be read at {gigabytes:.1f} GB/s, matrix products at "
            f"{gigaflops:,.0f} GFLOP/s, each the best of many tries on this machine"
        )
    return text + "."


def _setting(rows: list[Row], axis: str) -> str:
    """What is the same all along an axis."""
    along = [row for row in rows if row["axis"] == axis]
    names = {
        "N": "pool",
        "K": "classes",
        "M": "arms",
        "d": "features",
        "B": "batch",
    }
    same = []
    for name, column in names.items():
        values = {row[column] for row in along}
        if len(values) == 1:
            same.append(f"{name} = {along[0][column]:,}")
    text = f"Against {axis}, with {', '.join(same)}."
    if axis == "workers":
        text += (
            " On Ray; CPU seconds and memory are the driver's. Starting the workers is no "
            "part of the round."
        )
    return text


def growth(rows: list[Row], axis: str) -> str:
    """One axis: a row a stage, a column a value."""
    along = [row for row in rows if row["axis"] == axis]
    values = list(dict.fromkeys(row["value"] for row in along))
    # From the largest value on: with many arms there are most stages.
    largest_first = sorted(along, key=lambda row: -row["value"])
    stages = dict.fromkeys(row["stage"] for row in largest_first if row["stage"] != WHOLE)
    slopes = exponents(along)
    headings = [f"{value:,}" for value in values]
    headings += ["exponent", "limit's share"]
    lines = [
        _line(axis, *headings),
        _rule(1 + len(headings)),
    ]
    for stage in [*stages, WHOLE]:
        of_stage = [row for row in along if row["stage"] == stage]
        cells = _cells_by_value(of_stage, values)
        slope = slopes.get((axis, stage))
        cells.append("" if slope is None else f"{slope:.2f}")
        last = max(of_stage, key=lambda row: row["value"])
        cells.append(f"{last['of_limit']:.0%}" if last["limit_seconds"] else "")
        lines.append(_line(stage, *cells))
    return "\n".join(lines)


def _cells_by_value(rows: list[Row], values: list[int]) -> list[str]:
    """A cell for each value, empty where there is no row of it."""
    by_value = {row["value"]: row for row in rows}
    cells = []
    for value in values:
        if value in by_value:
            cells.append(_cell(by_value[value]))
        else:
            cells.append("")
    return cells


def _cell(row: Row) -> str:
    seconds = f"{row['seconds']:.2f} ({row['cpu_seconds']:.1f}) s"
    memory = f"{row['peak_mib']:,} MiB"
    if row.get("device_mib"):
        memory += f", GPU {row['device_mib']:,} MiB"
    return f"{seconds}, {memory}"


def against_plan(rows: list[Row]) -> str:
    """One round: what was planned before it, what it took, and by how much that is off."""
    size = rows[0]
    title = (
        f"Planned before it was run, and taken: {size['pool']:,} examples, {size['classes']:,} "
        f"classes, {size['features']} features, {size['batch']:,} labelled and as many picks, "
        f"{size['arms']:,} arms."
    )
    lines = [
        _line(
            "stage",
            "planned: s (CPU s)",
            "took: s (CPU s)",
            "off",
            "off, CPU",
            "planned peak",
            "peak",
            "off",
        ),
        _rule(8),
    ]
    planned = [row for row in rows if "planned_seconds" in row]
    for row in planned:
        off = dict(offs(row))
        line = _line(
            row["stage"],
            f"{row['planned_seconds']:.1f} ({row['planned_cpu_seconds']:.1f})",
            f"{row['seconds']:.1f} ({row['cpu_seconds']:.1f})",
            f"{off['seconds']:+.0%}",
            f"{off['CPU seconds']:+.0%}",
            f"{row['planned_peak_mib']:,} MiB",
            f"{row['peak_mib']:,} MiB",
            f"{off['peak memory']:+.0%}",
        )
        lines.append(line)
    table = "\n".join(lines)
    whole = next(row for row in planned if row["stage"] == WHOLE)
    planned_disk = whole["planned_disk"] / 2**30
    disk = whole["disk"] / 2**30
    written = f"Disk: {planned_disk:.2f} GiB planned, {disk:.2f} GiB written."
    return f"{title}\n\n{table}\n\n{written} {verdict(planned)}"


def offs(row: Row) -> list[tuple[str, float]]:
    """(what, by how much it is off the plan) of one stage."""
    columns = {
        "seconds": "seconds",
        "CPU seconds": "cpu_seconds",
        "peak memory": "peak_mib",
    }
    if row["device_mib"]:
        columns["GPU memory"] = "device_mib"
    if row["disk"]:
        columns["disk"] = "disk"
    deviations = []
    for what, column in columns.items():
        planned = max(row[f"planned_{column}"], 1e-9)
        deviations.append((what, row[column] / planned - 1))
    return deviations


def verdict(rows: list[Row]) -> str:
    """Whether the plan kept its word for every stage worth naming."""
    deviations = []
    for row in rows:
        if max(row["seconds"], row["planned_seconds"]) < NAMED:
            continue
        for what, off in offs(row):
            text = f"{row['stage']}, {what}: {off:+.0%}"
            deviations.append((abs(off), text))
    if not deviations:
        return f"No stage is longer than {NAMED:g} s."
    deviations.sort(reverse=True)
    broken = [text for off, text in deviations if off > PROMISED]
    if broken:
        listed = "; ".join(broken)
        return f"Off by more than {PROMISED:.0%} among stages of {NAMED:g} s or more: {listed}."
    _, worst = deviations[0]
    return f"Every stage of {NAMED:g} s or more is within {PROMISED:.0%}; the worst is {worst}."


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(columns: int) -> str:
    """The line below a table's headings."""
    return "|---" * columns + "|"


def draw(rows: list[Row], *paths: Path) -> None:
    """Seconds of every stage against each axis, log-log."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from tailor_experiments.figures import style

    rows = [row for row in rows if row["stage"] != START]
    axes = list(dict.fromkeys(row["axis"] for row in rows))
    stages = list(dict.fromkeys(row["stage"] for row in rows))
    whole_first = dict.fromkeys([WHOLE, *stages])
    styles = {stage: style(place) for place, stage in enumerate(whole_first)}
    figure, panels = pyplot.subplots(
        1,
        len(axes),
        figsize=(4.6 * len(axes), 4.2),
        squeeze=False,
        sharey=True,
    )
    handles = {}
    for panel, axis in zip(panels[0], axes):
        along = [row for row in rows if row["axis"] == axis]
        for stage in stages:
            points = [row for row in along if row["stage"] == stage]
            if not points:
                continue
            values = [row["value"] for row in points]
            seconds = [row["seconds"] for row in points]
            (line,) = panel.loglog(values, seconds, label=stage, **styles[stage])
            handles[stage] = line
        panel.set_xlabel(axis)
        panel.grid(alpha=0.3, which="both")
    panels[0][0].set_ylabel("seconds")
    panels[0][-1].legend(
        handles.values(),
        handles.keys(),
        fontsize=7,
        loc="center left",
        bbox_to_anchor=(1, 0.5),
    )
    figure.tight_layout()
    for path in paths:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
