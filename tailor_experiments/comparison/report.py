"""The report of results folders: tables, figures as PNG and PDF, one page that holds them all, and
a short one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from tailor.models.base import ProgressCallback, quiet
from tailor_experiments.comparison import label_efficiency, report_tables
from tailor_experiments.comparison.page import page
from tailor_experiments.comparison.pictures import (
    draw_all,
    overall_pictures,
    pictures,
    with_paths_apart,
)
from tailor_experiments.comparison.results import Results
from tailor_experiments.comparison.table_format import Table, markdown

PAGE = "report.html"
SHORT = "report.md"  # two tables an experiment, for pages of a repository


def tables_of_all(experiments: Sequence[Results], focus: str | None = None) -> list[Table]:
    """Tables of all experiments together."""
    candidates = [
        report_tables.yardsticks(experiments, focus),
        report_tables.yardsticks(experiments, focus, "imbalance"),
        report_tables.ranks(experiments),
        label_efficiency.ranks_by_area(experiments),
    ]
    return [table for table in candidates if table is not None]


def tables_of_one(
    results: Results,
    target: float | None = None,
    focus: str | None = None,
    reach: str | None = None,
) -> list[Table]:
    """Tables of one experiment. target: see report_tables.to_target; reach: see
    label_efficiency.efficiency.
    """
    candidates = [
        report_tables.final(results),
        report_tables.differences(results, focus),
        label_efficiency.efficiency(results, focus, reach),
        report_tables.to_target(results, target),
        report_tables.seconds(results),
    ]
    return [table for table in candidates if table is not None]


def all_tables(
    experiments: Sequence[Results],
    target: float | None = None,
    focus: str | None = None,
    reach: str | None = None,
) -> list[Table]:
    """Those of all experiments together, then those of each."""
    tables = tables_of_all(experiments, focus)
    for results in experiments:
        tables += tables_of_one(results, target, focus, reach)
    return tables


def write_report(
    experiments: Sequence[Results],
    out: Path,
    target: float | None = None,
    window: int = 3,
    focus: str | None = None,
    *,
    reach: str | None = None,
    workers: int = 1,
    progress: ProgressCallback = quiet,
) -> Path:
    """Figures, the page and the short one in `out` -> the path of the page.

    target   labels needed to reach this score are counted; by default what random reaches
    window   rounds over which curves are smoothed
    focus    the contender that the others are compared with; by default TAILOR
    reach    the contender whose last score the others are to reach; by default random
    workers  processes that draw
    """
    out.mkdir(parents=True, exist_ok=True)
    groups = [overall_pictures(experiments, out, focus)]
    for results in experiments:
        groups.append(pictures(results, out, window, focus))
    groups = with_paths_apart(groups)
    all_pictures = list(chain.from_iterable(groups))
    draw_all(all_pictures, workers, progress)
    pictures_of_all, *pictures_of_each = groups
    sections = []
    for results, pictures_of_one in zip(experiments, pictures_of_each):
        tables = tables_of_one(results, target, focus, reach)
        sections.append((results, tables, pictures_of_one))
    text = page(tables_of_all(experiments, focus), pictures_of_all, sections)
    (out / PAGE).write_text(text, encoding="utf-8")
    (out / SHORT).write_text(short(experiments, focus, reach), encoding="utf-8")
    return out / PAGE


def short(
    experiments: Sequence[Results], focus: str | None = None, reach: str | None = None
) -> str:
    """Markdown: how the contender in focus fares on all experiments, and for each one what it
    came to and how many labels that took.
    """
    tables = tables_of_all(experiments, focus)
    for results in experiments:
        tables.append(report_tables.summary(results, focus))
        efficiency = label_efficiency.efficiency(results, focus, reach)
        if efficiency is not None:
            tables.append(efficiency)
    return "\n".join(map(markdown, tables))
