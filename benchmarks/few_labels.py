"""The tables of experiments with few labels, from the rows in results/few-*/:

    python benchmarks/few_labels.py

benchmarks/README.md shows them. Scores are those of test sets: balanced accuracy, in a multi-label
task mAP. Differences are paired by seed, with intervals of 95%; a star: 0 lies outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from tailor_experiments.comparison.gather import load
from tailor_experiments.comparison.label_efficiency import (
    READINGS,
    Curves,
    labels_to_reach,
    ranks_by_area,
    whole_curves,
)
from tailor_experiments.comparison.stats import paired

RESULTS = Path(__file__).parent / "results"
AUTO = "auto"
PAPER = "TAILOR, the paper's"
RANDOM = "random"
#: how contenders end that have auto's start and correction
SAME_MODEL = ", start and correction"
RANDOM_META = f"random meta{SAME_MODEL}"
RANDOM_SAME_MODEL = f"random{SAME_MODEL}"
PARTS = ("the start", "the correction", "the cover", "the lead", "two levels")
BAD_FAMILIES = ("most-likely-positive", "random", "most-certain")
#: With fewer trials in common two contenders are not compared.
FEWEST_TRIALS = 3


@cache
def settings() -> tuple[Curves, ...]:
    """The curves of every setting that has rows."""
    curves = []
    for folder in sorted(RESULTS.glob("few-*")):
        if (folder / "rows.jsonl.gz").exists():
            (results,) = load(folder)
            curves.append(whole_curves(results))
    return tuple(curves)


def line(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def mean(curves: Curves, contender: str, reading: str = "area") -> str:
    """What a contender has, in the mean over its trials; nothing where it was not run."""
    if contender not in curves.results.rows:
        return ""
    values = READINGS[reading](curves.scores(contender))
    return f"{values.mean():.3f}"


def difference(curves: Curves, ours: str, other: str, reading: str = "area") -> str:
    """Ours minus the other's; nothing where one of them was not run."""
    rows = curves.results.rows
    if ours not in rows or other not in rows:
        return ""
    seeds = curves.results.common_seeds(ours, other)
    if len(seeds) < FEWEST_TRIALS:
        return ""
    read = READINGS[reading]
    pair = paired(
        read(curves.scores(ours, seeds)),
        read(curves.scores(other, seeds)),
    )
    half_width = pair.high - pair.mean
    star = " *" if pair.clear else ""
    return f"{pair.mean:+.3f} ± {half_width:.3f}{star}"


def families_alone(curves: Curves) -> list[str]:
    """Contenders with one family and auto's start and correction, the largest area first: on the
    seeds that all of them have.
    """
    alone = []
    for contender in curves.results.contenders:
        has_one = len(curves.results.sample(contender)["families"]) == 1
        if not has_one or not contender.endswith(SAME_MODEL) or contender == RANDOM_SAME_MODEL:
            continue
        if len(curves.results.common_seeds(AUTO, contender)) >= FEWEST_TRIALS:
            alone.append(contender)
    seeds = curves.results.common_seeds(AUTO, *alone)
    return sorted(alone, key=lambda contender: -area(curves, contender, seeds))


def area(curves: Curves, contender: str, seeds: list[int]) -> float:
    """The mean area over some seeds."""
    areas = READINGS["area"](curves.scores(contender, seeds))
    return float(areas.mean())


def needed(curves: Curves, contender: str) -> str:
    """The median of the labels that reach what random has at the end."""
    if contender not in curves.results.rows:
        return ""
    labels = labels_to_reach(curves, contender, RANDOM)
    median = float(np.median(labels))
    return "more" if np.isinf(median) else f"{median:,.0f}"


def main_table() -> Iterator[str]:
    """auto beside the paper's form, random, the best single family and random choice of arms."""
    for curves in settings():
        best = families_alone(curves)[0]
        best_name = best.removesuffix(SAME_MODEL)
        trials = len(curves.results.common_seeds(AUTO, PAPER))
        yield line(
            curves.results.name,
            str(trials),
            mean(curves, AUTO),
            difference(curves, AUTO, PAPER),
            difference(curves, AUTO, RANDOM),
            f"{difference(curves, AUTO, best)} ({best_name})",
            difference(curves, AUTO, RANDOM_META),
        )


def labels_table() -> Iterator[str]:
    """Labels that reach what random has at the end, of all that random had."""
    for curves in settings():
        yield line(
            curves.results.name,
            f"{curves.results.total_labels:,}",
            needed(curves, AUTO),
            needed(curves, PAPER),
            needed(curves, RANDOM_SAME_MODEL),
            needed(curves, f"herding{SAME_MODEL}"),
        )


def quarter_table() -> Iterator[str]:
    """The first quarter of the rounds and the last one."""
    for curves in settings():
        cells = [curves.results.name]
        for reading in ("first quarter", "last"):
            cells += [
                mean(curves, AUTO, reading),
                difference(curves, AUTO, PAPER, reading),
                difference(curves, AUTO, RANDOM_META, reading),
            ]
        yield line(*cells)


def parts_table() -> Iterator[str]:
    """What auto loses without each of its parts."""
    for curves in settings():
        cells = [difference(curves, f"{AUTO} without {part}", AUTO) for part in PARTS]
        if any(cells):
            yield line(curves.results.name, *cells)


def bad_families_table() -> Iterator[str]:
    """What a bad family costs that is added to auto's."""
    for curves in settings():
        cells = [difference(curves, f"{AUTO} and {family}", AUTO) for family in BAD_FAMILIES]
        if any(cells):
            yield line(curves.results.name, *cells)


def families_table() -> Iterator[str]:
    """auto, random and every family alone on the seeds that all of them have, the best first."""
    for curves in settings():
        alone = families_alone(curves)
        seeds = curves.results.common_seeds(AUTO, RANDOM_SAME_MODEL, *alone)
        areas = []
        for contender in alone:
            name = contender.removesuffix(SAME_MODEL)
            areas.append(f"{name} {area(curves, contender, seeds):.3f}")
        yield line(
            curves.results.name,
            str(len(seeds)),
            f"{area(curves, AUTO, seeds):.3f}",
            f"{area(curves, RANDOM_SAME_MODEL, seeds):.3f}",
            ", ".join(areas),
        )


def ranks_table() -> Iterator[str]:
    """Mean ranks over all settings."""
    table = ranks_by_area([curves.results for curves in settings()])
    if table is not None:
        for contender, rank, *_ in table.rows:
            yield line(contender, rank)


def published() -> Iterator[tuple[str, Iterator[str]]]:
    """Name and lines of each table on the page."""
    yield "few labels", main_table()
    yield "few labels: labels to reach random", labels_table()
    yield "few labels: first quarter and last", quarter_table()
    yield "few labels: parts", parts_table()
    yield "few labels: bad families", bad_families_table()
    yield "few labels: families alone", families_table()
    yield "few labels: ranks", ranks_table()


if __name__ == "__main__":
    for title, lines in published():
        print(f"\n{title}")
        print("\n".join(lines))
