"""The rows of `tailor bench scale` as Markdown tables."""

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
#: what texts call a column of a row
LETTERS = {
    "N": "pool",
    "K": "classes",
    "M": "arms",
    "d": "features",
    "B": "batch",
}
#: of the table of a plan and what happened
PLAN_HEADINGS = (
    "stage",
    "planned: s (CPU s)",
    "took: s (CPU s)",
    "off",
    "off, CPU",
    "planned peak",
    "peak",
    "off",
)


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """Of several files; a stage that is measured again replaces the earlier row."""
    latest: dict[tuple[int, Any, str], Row] = {}
    for path in paths:
        try:
            latest |= _rows_by_place(path)
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise InputError(
                f"{path} holds no rows of `tailor bench scale` ({problem}): name a scale.jsonl"
            ) from None
    # By axis and value; stages stay in the order of the round.
    order = sorted(latest, key=lambda place: place[:2])
    return [latest[place] for place in order]


def _rows_by_place(path: Path) -> dict[tuple[int, Any, str], Row]:
    """(number of the axis, value, stage) -> the row of it"""
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        axis_number = AXES.index(row["axis"])
        rows[axis_number, row["value"], row["stage"]] = row
    return rows


def exponents(rows: list[Row]) -> dict[tuple[str, str], float]:
    """(axis, stage) -> the slope in log-log, where the stage takes long enough to tell.

    Of the CPU's seconds where this process does all the work on one: other work on the machine
    changes them least.
    """
    slopes: dict[tuple[str, str], float] = {}
    for (axis, stage), curve in _grouped(rows, "axis", "stage").items():
        slope = _exponent(curve)
        # Workers are started before the round, which this is about.
        if slope is not None and stage != START:
            slopes[axis, stage] = slope
    return slopes


def _grouped(rows: list[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """values of the columns -> the rows that have them, in order of appearance"""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        values = tuple(row[column] for column in columns)
        groups.setdefault(values, []).append(row)
    return groups


def _exponent(curve: list[Row]) -> float | None:
    """The slope of one stage along one axis; None where it can't be told."""
    clock = _clock(curve[0])
    values = [row["value"] for row in curve]
    seconds = [row[clock] for row in curve]
    if len(set(values)) < 2:
        return None
    if max(seconds) < SHORT:
        return None
    x = [log(value) for value in values]
    # A clock that did not move has no logarithm.
    y = [log(max(second, 1e-4)) for second in seconds]
    return linear_regression(x, y).slope


def _clock(row: Row) -> str:
    """The column of the seconds that tell most about how a stage grows."""
    # Workers and a GPU have clocks of their own, which this process's CPU seconds leave out.
    if row["axis"] == "workers" or not row["device"].startswith("cpu"):
        return "seconds"
    return "cpu_seconds"


def report(rows: list[Row]) -> str:
    """All of it in Markdown: what was measured on, a table an axis, and plans beside what
    happened.
    """
    parts = [_heading(rows[0])]
    for axis in different_values(rows, "axis"):
        parts.append(_setting(rows, axis))
        parts.append(growth(rows, axis))
    for round_rows in _grouped(rows, "axis", "value").values():
        if "planned_seconds" in round_rows[0]:
            parts.append(against_plan(round_rows))
    return "\n\n".join(parts)


def different_values(rows: Iterable[Row], column: str) -> list[Any]:
    """The values of a column, each once, in order of appearance."""
    values = dict.fromkeys(row[column] for row in rows)
    return list(values)


def rows_where(rows: list[Row], column: str, value: Any) -> list[Row]:
    """The rows with a value in a column."""
    return [row for row in rows if row[column] == value]


def _heading(row: Row) -> str:
    text = (
        f"{row['device']}. Seconds, in brackets CPU seconds of the process, and its peak memory. "
        "Exponents are those of CPU seconds; for workers and on a GPU, of seconds. The last "
        "column is the limit's share of the seconds at the largest value, where a stage has to "
        "read or multiply"
    )
    # Rows of before the machine was measured have none.
    rates = row.get("machine")
    if not rates:
        return f"{text}."
    return f"{text}: {_limits(rates)}."


def _limits(rates: dict[str, float]) -> str:
    """What a machine can do at best."""
    gigabytes = rates["read"] / 1e9
    gigaflops = rates["multiply"] / 1e9
    return (
        f"the bytes that must be read at {gigabytes:.1f} GB/s, matrix products at "
        f"{gigaflops:,.0f} GFLOP/s, each the best of many tries on this machine"
    )


def _setting(rows: list[Row], axis: str) -> str:
    """What is the same all along an axis."""
    along = rows_where(rows, "axis", axis)
    same = []
    for letter, column in LETTERS.items():
        values = different_values(along, column)
        if len(values) == 1:
            same.append(f"{letter} = {values[0]:,}")
    text = f"Against {axis}, with {', '.join(same)}."
    if axis == "workers":
        text += (
            " On Ray; CPU seconds and memory are the driver's. Starting the workers is no "
            "part of the round."
        )
    return text


def growth(rows: list[Row], axis: str) -> str:
    """One axis: a row a stage, a column a value."""
    along = rows_where(rows, "axis", axis)
    values = different_values(along, "value")
    slopes = exponents(along)
    headings = [f"{value:,}" for value in values]
    headings += ["exponent", "limit's share"]
    lines = [
        _line(axis, *headings),
        _rule(1 + len(headings)),
    ]
    for stage in _stages(along):
        of_stage = rows_where(along, "stage", stage)
        cells = [
            *_cells_by_value(of_stage, values),
            _slope_cell(slopes.get((axis, stage))),
            _limit_cell(of_stage),
        ]
        lines.append(_line(stage, *cells))
    return "\n".join(lines)


def _stages(rows: list[Row]) -> list[str]:
    """In the order of the round, the whole of it last."""
    # From the largest value on: with many arms there are most stages.
    largest_first = sorted(rows, key=lambda row: -row["value"])
    stages = [stage for stage in different_values(largest_first, "stage") if stage != WHOLE]
    return [*stages, WHOLE]


def _slope_cell(slope: float | None) -> str:
    if slope is None:
        return ""
    return f"{slope:.2f}"


def _limit_cell(rows: list[Row]) -> str:
    """The limit's share of a stage's seconds at the largest value, where it has a limit."""
    last = max(rows, key=lambda row: row["value"])
    if not last["limit_seconds"]:
        return ""
    return f"{last['of_limit']:.0%}"


def _cells_by_value(rows: list[Row], values: list[int]) -> list[str]:
    """A cell for each value, empty where there is no row of it."""
    cells = dict.fromkeys(values, "")
    for row in rows:
        cells[row["value"]] = _cell(row)
    return list(cells.values())


def _cell(row: Row) -> str:
    seconds = _seconds(row["seconds"], row["cpu_seconds"], 2)
    return f"{seconds} s, {_memory(row)}"


def _memory(row: Row) -> str:
    """The process's, and a GPU's where one was used."""
    memory = f"{row['peak_mib']:,} MiB"
    if row.get("device_mib"):
        memory += f", GPU {row['device_mib']:,} MiB"
    return memory


def _seconds(seconds: float, cpu_seconds: float, decimals: int = 1) -> str:
    """With the CPU's in brackets."""
    return f"{seconds:.{decimals}f} ({cpu_seconds:.1f})"


def against_plan(rows: list[Row]) -> str:
    """One round: what was planned before it, what it took, and by how much that is off."""
    planned = [row for row in rows if "planned_seconds" in row]
    lines = [
        _line(*PLAN_HEADINGS),
        _rule(len(PLAN_HEADINGS)),
    ]
    for row in planned:
        lines.append(_plan_line(row))
    table = "\n".join(lines)
    return f"{_plan_title(rows[0])}\n\n{table}\n\n{_disk(planned)} {verdict(planned)}"


def _plan_title(size: Row) -> str:
    return (
        f"Planned before it was run, and taken: {size['pool']:,} examples, {size['classes']:,} "
        f"classes, {size['features']} features, {size['batch']:,} labelled and as many picks, "
        f"{size['arms']:,} arms."
    )


def _plan_line(row: Row) -> str:
    off = dict(offs(row))
    return _line(
        row["stage"],
        _seconds(row["planned_seconds"], row["planned_cpu_seconds"]),
        _seconds(row["seconds"], row["cpu_seconds"]),
        f"{off['seconds']:+.0%}",
        f"{off['CPU seconds']:+.0%}",
        f"{row['planned_peak_mib']:,} MiB",
        f"{row['peak_mib']:,} MiB",
        f"{off['peak memory']:+.0%}",
    )


def _disk(rows: list[Row]) -> str:
    """Of the whole round."""
    (whole,) = rows_where(rows, "stage", WHOLE)
    planned = _gib(whole["planned_disk"])
    written = _gib(whole["disk"])
    return f"Disk: {planned} planned, {written} written."


def _gib(size: float) -> str:
    return f"{size / 2**30:.2f} GiB"


def offs(row: Row) -> list[tuple[str, float]]:
    """(what, by how much it is off the plan) of one stage."""
    columns = {
        "seconds": "seconds",
        "CPU seconds": "cpu_seconds",
        "peak memory": "peak_mib",
    }
    # Of what a stage does not use there is nothing to be off.
    if row["device_mib"]:
        columns["GPU memory"] = "device_mib"
    if row["disk"]:
        columns["disk"] = "disk"
    return [(what, _off(row, column)) for what, column in columns.items()]


def _off(row: Row, column: str) -> float:
    """By how much a column is off its plan: 0.1 where it is a tenth more."""
    # A plan of nothing can't be divided by.
    planned = max(row[f"planned_{column}"], 1e-9)
    return row[column] / planned - 1


def verdict(rows: list[Row]) -> str:
    """Whether the plan kept its word for every stage worth naming."""
    deviations = _deviations(rows)
    if not deviations:
        return f"No stage is longer than {NAMED:g} s."
    broken = [text for off, text in deviations if off > PROMISED]
    if broken:
        listed = "; ".join(broken)
        return f"Off by more than {PROMISED:.0%} among stages of {NAMED:g} s or more: {listed}."
    _, worst = deviations[0]
    return f"Every stage of {NAMED:g} s or more is within {PROMISED:.0%}; the worst is {worst}."


def _deviations(rows: list[Row]) -> list[tuple[float, str]]:
    """(by how much, a text that says it) of every stage worth naming, the largest first."""
    deviations = []
    for row in rows:
        if max(row["seconds"], row["planned_seconds"]) < NAMED:
            continue
        for what, off in offs(row):
            text = f"{row['stage']}, {what}: {off:+.0%}"
            deviations.append((abs(off), text))
    return sorted(deviations, reverse=True)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(columns: int) -> str:
    """The line below a table's headings."""
    return "|---" * columns + "|"
