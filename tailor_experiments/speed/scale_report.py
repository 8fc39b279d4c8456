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
    found: dict[tuple[Any, ...], Row] = {}
    for path in paths:
        try:
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            keys = [(AXES.index(row["axis"]), row["value"], row["stage"]) for row in rows]
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise InputError(
                f"{path} holds no rows of `tailor bench scale` ({problem}): name a scale.jsonl"
            ) from None
        found |= dict(zip(keys, rows))
    order = sorted(found, key=lambda key: key[:2])  # stages stay in the order of the round
    return [found[key] for key in order]


def exponents(rows: list[Row]) -> dict[tuple[str, str], float]:
    """(axis, stage) -> the slope in log-log, where the stage takes long enough to tell.

    Of the CPU's seconds where this process does all the work on one: other work on the machine
    changes them least.
    """
    found: dict[tuple[str, str], float] = {}
    for axis, stage in dict.fromkeys((r["axis"], r["stage"]) for r in rows):
        mine = [r for r in rows if (r["axis"], r["stage"]) == (axis, stage)]
        clock = (
            "cpu_seconds"
            if axis != "workers" and mine[0]["device"].startswith("cpu")
            else "seconds"
        )
        if (
            stage != START
            and len({r["value"] for r in mine}) > 1
            and max(r[clock] for r in mine) >= SHORT
        ):
            x = [log(r["value"]) for r in mine]
            y = [log(max(r[clock], 1e-4)) for r in mine]
            found[axis, stage] = linear_regression(x, y).slope
    return found


def report(rows: list[Row]) -> str:
    """All of it in Markdown: what was measured on, a table an axis, and plans beside what
    happened.
    """
    parts = [_heading(rows[0])]
    for axis in dict.fromkeys(r["axis"] for r in rows):
        parts += [_setting(rows, axis), growth(rows, axis)]
    parts += [against_plan(mine) for mine in _points(rows) if "planned_seconds" in mine[0]]
    return "\n\n".join(parts)


def _points(rows: list[Row]) -> list[list[Row]]:
    """The rows of each round."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row["axis"], row["value"]), []).append(row)
    return list(found.values())


def _heading(row: Row) -> str:
    text = (
        f"{row['device']}. Seconds, in brackets CPU seconds of the process, and its peak memory. "
        "Exponents are those "
        "of CPU seconds; for workers and on a GPU, of seconds. The last column is the limit's "
        "share of the seconds at "
        "the largest value, where a stage has to read or multiply"
    )
    if rates := row.get("machine"):
        text += (
            f": the bytes that must be read at {rates['read'] / 1e9:.1f} GB/s, matrix products at "
            f"{rates['multiply'] / 1e9:,.0f} GFLOP/s, each the best of many tries on this machine"
        )
    return text + "."


def _setting(rows: list[Row], axis: str) -> str:
    """What is the same all along an axis."""
    mine = [r for r in rows if r["axis"] == axis]
    names = {"N": "pool", "K": "classes", "M": "arms", "d": "features", "B": "batch"}
    same = [
        f"{name} = {mine[0][key]:,}"
        for name, key in names.items()
        if len({r[key] for r in mine}) == 1
    ]
    text = f"Against {axis}, with {', '.join(same)}."
    if axis == "workers":
        text += (
            " On Ray; CPU seconds and memory are the driver's. Starting the workers is no "
            "part of the round."
        )
    return text


def growth(rows: list[Row], axis: str) -> str:
    """One axis: a row a stage, a column a value."""
    mine = [r for r in rows if r["axis"] == axis]
    values = list(dict.fromkeys(r["value"] for r in mine))
    fullest = sorted(mine, key=lambda r: -r["value"])  # with many arms there are most stages
    stages = [*dict.fromkeys(r["stage"] for r in fullest if r["stage"] != WHOLE), WHOLE]
    slopes = exponents(mine)
    lines = [
        _line(axis, *(f"{v:,}" for v in values), "exponent", "limit's share"),
        "|---" * (len(values) + 3) + "|",
    ]
    for stage in stages:
        found = {r["value"]: r for r in mine if r["stage"] == stage}
        slope = slopes.get((axis, stage))
        last = found[max(found)]
        share = f"{last['of_limit']:.0%}" if last["limit_seconds"] else ""
        cells = [_cell(found[v]) if v in found else "" for v in values]
        lines.append(_line(stage, *cells, "" if slope is None else f"{slope:.2f}", share))
    return "\n".join(lines)


def _cell(row: Row) -> str:
    on_device = f", GPU {row['device_mib']:,} MiB" if row.get("device_mib") else ""
    return f"{row['seconds']:.2f} ({row['cpu_seconds']:.1f}) s, {row['peak_mib']:,} MiB{on_device}"


def against_plan(rows: list[Row]) -> str:
    """One round: what was planned before it, what it took, and by how much that is off."""
    one = rows[0]
    title = (
        f"Planned before it was run, and taken: {one['pool']:,} examples, {one['classes']:,} "
        "classes, "
        f"{one['features']} features, {one['batch']:,} labelled and as many picks, "
        f"{one['arms']:,} arms."
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
        "|---" * 8 + "|",
    ]
    planned = [row for row in rows if "planned_seconds" in row]
    for row in planned:
        times = offs(row)[:2]
        memory = offs(row)[2]
        lines.append(
            _line(
                row["stage"],
                f"{row['planned_seconds']:.1f} ({row['planned_cpu_seconds']:.1f})",
                f"{row['seconds']:.1f} ({row['cpu_seconds']:.1f})",
                *(f"{off:+.0%}" for _, off in times),
                f"{row['planned_peak_mib']:,} MiB",
                f"{row['peak_mib']:,} MiB",
                f"{memory[1]:+.0%}",
            )
        )
    disk = next(row for row in planned if row["stage"] == WHOLE)
    written = (
        f"Disk: {disk['planned_disk'] / 2**30:.2f} GiB planned, {disk['disk'] / 2**30:.2f} "
        "GiB written."
    )
    return f"{title}\n\n" + "\n".join(lines) + f"\n\n{written} {verdict(planned)}"


def offs(row: Row) -> list[tuple[str, float]]:
    """(what, by how much it is off the plan) of one stage."""
    names = [("seconds", "seconds"), ("CPU seconds", "cpu_seconds"), ("peak memory", "peak_mib")]
    names += [
        (what, key) for what, key in (("GPU memory", "device_mib"), ("disk", "disk")) if row[key]
    ]
    return [(what, row[key] / max(row[f"planned_{key}"], 1e-9) - 1) for what, key in names]


def verdict(rows: list[Row]) -> str:
    """Whether the plan kept its word for every stage worth naming."""
    long = [r for r in rows if max(r["seconds"], r["planned_seconds"]) >= NAMED]
    if not long:
        return f"No stage is longer than {NAMED:g} s."
    found = [
        (abs(off), f"{row['stage']}, {what}: {off:+.0%}") for row in long for what, off in offs(row)
    ]
    wrong = [text for off, text in sorted(found, reverse=True) if off > PROMISED]
    if wrong:
        return (
            f"Off by more than {PROMISED:.0%} among stages of {NAMED:g} s or more: "
            f"{'; '.join(wrong)}."
        )
    return (
        f"Every stage of {NAMED:g} s or more is within {PROMISED:.0%}; the worst is "
        f"{max(found)[1]}."
    )


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def draw(rows: list[Row], *paths: Path) -> None:
    """Seconds of every stage against each axis, log-log."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from tailor_experiments.figures import style

    rows = [r for r in rows if r["stage"] != START]
    axes = list(dict.fromkeys(r["axis"] for r in rows))
    stages = list(dict.fromkeys(r["stage"] for r in rows))
    styles = {stage: style(place) for place, stage in enumerate(dict.fromkeys([WHOLE, *stages]))}
    figure, panels = pyplot.subplots(
        1, len(axes), figsize=(4.6 * len(axes), 4.2), squeeze=False, sharey=True
    )
    for panel, axis in zip(panels[0], axes):
        for stage in stages:
            mine = [r for r in rows if r["axis"] == axis and r["stage"] == stage]
            if mine:
                panel.loglog(
                    [r["value"] for r in mine],
                    [r["seconds"] for r in mine],
                    label=stage,
                    **styles[stage],
                )
        panel.set_xlabel(axis)
        panel.grid(alpha=0.3, which="both")
    looks = {
        label: handle
        for panel in panels[0]
        for handle, label in zip(*panel.get_legend_handles_labels())
    }
    panels[0][0].set_ylabel("seconds")
    panels[0][-1].legend(
        looks.values(), looks.keys(), fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5)
    )
    figure.tight_layout()
    for path in paths:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
