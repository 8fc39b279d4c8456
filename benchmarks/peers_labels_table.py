"""The tables of benchmarks/peers_labels.py, from its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tailor_experiments.comparison.stats import area, labels_to, paired

Row = dict[str, Any]
#: what the rows of one table have in common
SETTING = ("data", "classes", "pool", "batch", "rounds")
#: who is judged: the package's classifier, or TAILOR's probe on the package's labels
JUDGES = ("own", "probe")


def tables(rows: list[Row], level: float | None = None) -> Iterator[str]:
    """A title and a Markdown table for each setting.

    level  the balanced accuracy to reach; by default what random labels reach in the end, with the
           package's classifier and with the probe
    """
    settings: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        setting = tuple(row[key] for key in SETTING)
        settings.setdefault(setting, []).append(row)
    for (data, classes, pool, batch, rounds), of_setting in settings.items():
        title = f"{data}, {classes} classes, a pool of {pool:,}, {rounds} rounds of {batch} labels:"
        yield "\n".join([title, "", *setting_table(of_setting, level)])


def setting_table(rows: list[Row], level: float | None) -> list[str]:
    """The lines of a table: cells are means over the trials with 95% intervals."""
    groups: dict[tuple[str, str, bool], list[Row]] = {}
    for row in rows:
        key = (row["package"], row["version"], row["random"])
        groups.setdefault(key, []).append(row)
    lines = [
        "| package | labels | its classifier: area | last | labels to random's last "
        "| TAILOR's probe: area | last | labels to random's last |",
        "|---|---|---|---|---|---|---|---|",
    ]
    is_binary = rows[0]["classes"] == 2
    if is_binary:
        lines[0] += " labels of class 0 |"
        lines[1] += "---|"
    if level is not None:
        lines[0] = lines[0].replace("random's last", f"{level:g}")
    for (package, version, is_random), trials in groups.items():
        cells = [f"{package} {version}", "random" if is_random else "its choice"]
        for judge in JUDGES:
            target = level
            if target is None:
                # The probe on random labels is the same whoever's row it stands beside.
                compared_with = package if judge == "own" else "TAILOR"
                target = random_last(rows, compared_with, judge)
            cells += judged(trials, judge, target)
        if is_binary:
            cells.append(interval([row["counts"][0] for row in trials], ".1f"))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def random_last(rows: list[Row], package: str, judge: str) -> float | None:
    """What a package's random labels reach in the end, the mean over trials; None without rows."""
    last = [row[judge][-1] for row in rows if row["package"] == package and row["random"]]
    return float(np.mean(last)) if last else None


def judged(trials: list[Row], judge: str, target: float | None) -> list[str]:
    """Cells of area, last score and labels to the target; empty where the judge saw no trial."""
    seen = [row for row in trials if row[judge] is not None]
    if not seen:
        return ["", "", ""]
    areas = []
    last = []
    needed = []
    for row in seen:
        labels = np.array(row["labels"])
        scores = np.array(row[judge])
        areas.append(area(labels, scores))
        last.append(scores[-1])
        if target is not None:
            needed.append(labels_to(labels, scores, target))
    return [
        interval(areas, ".3f"),
        interval(last, ".3f"),
        labels_needed(needed, seen[0]["labels"][-1], target),
    ]


def interval(values: list[float], form: str) -> str:
    """The mean with half the width of its 95% interval; without it where there is one trial."""
    scores = np.array(values)
    mean = paired(scores, np.zeros(len(scores)))
    text = f"{mean.mean:{form}}"
    if len(scores) > 1:
        text += f" ± {mean.high - mean.mean:{form}}"
    return text


def labels_needed(needed: list[float], most: int, target: float | None) -> str:
    """The labels with which the trials first reached the target, or how many trials did."""
    if target is None:
        return ""
    reached = [labels for labels in needed if np.isfinite(labels)]
    if len(reached) == len(needed):
        return f"{interval(needed, ',.0f')} ({target:.3f})"
    return f"> {most:,} in {len(needed) - len(reached)} of {len(needed)} ({target:.3f})"
