"""tailor data: the paper's datasets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailor.cli.group import CommandGroup

if TYPE_CHECKING:
    from rich.table import Table

    from tailor_experiments.datasets.base import Dataset
    from tailor_experiments.datasets.check import Figure, Report

data = CommandGroup(name="data", help="The paper's datasets.")


@data.callback()
def root() -> None:
    """The paper's datasets."""


@data.command()
def check(
    name: Annotated[
        str,
        typer.Argument(
            help="celeba, coco, voc, cars, imagenet, kuzushiji49, caltech256, cifar10-2, "
            "cifar100-10, svhn-2, fashion-2, ..."
        ),
    ],
    path: Annotated[
        Path, typer.Argument(help="The folder of its official files, or of Parquet files.")
    ],
    sample: Annotated[
        int, typer.Option(min=0, help="Examples read, of the pool and of the test set each.")
    ] = 200,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Print K, N and both imbalance ratios beside the paper's; exit with 1 where something differs
    or can't be read.
    """
    from tailor_experiments.datasets import load
    from tailor_experiments.datasets.check import check as compare

    dataset = load(name, path)
    report = compare(dataset, sample)
    if json:
        import json as encoder
        from dataclasses import asdict

        values = asdict(report)
        values["name"] = dataset.name
        values["ok"] = report.ok
        values["classes"] = dataset.task.classes
        typer.echo(encoder.dumps(values))
    else:
        show(name, dataset, report)
    if not report.ok:
        # For scripts that check a download.
        raise typer.Exit(1)


def show(name: str, dataset: Dataset, report: Report) -> None:
    """The report as a table, and what can't be read below it."""
    from rich.console import Console

    console = Console()
    console.print(_figure_table(report.figures, f"{name}, {dataset.task.kind}"))
    # Paths and names may hold brackets, which would else be read as markup.
    if report.setting is None:
        console.print(_nothing_to_compare_with(dataset.name), markup=False)
    console.print(
        f"{_test_text(dataset)}; read {report.sampled} examples, {len(report.unreadable)} of them "
        "unreadable",
        markup=False,
    )
    for problem in _problems(report):
        console.print(problem, style="yellow", markup=False)


def _figure_table(figures: list[Figure], title: str) -> Table:
    from rich.table import Table

    table = Table(
        "",
        "here",
        "paper",
        "",
        title=title,
    )
    for figure in figures:
        paper = ""
        if figure.paper is not None:
            paper = number(figure, figure.paper)
        table.add_row(
            figure.name,
            number(figure, figure.here),
            paper,
            _remark(figure),
        )
    return table


def _remark(figure: Figure) -> str:
    remark = {
        True: "ok",
        False: "differs",
        None: "",
    }[figure.ok]
    if figure.note:
        return f"{remark} ({figure.note})"
    return remark


def _nothing_to_compare_with(name: str) -> str:
    """Of a dataset by name: the paper's has perhaps another number of classes."""
    from tailor_experiments.datasets import PAPER

    for setting in PAPER:
        if setting.rpartition("-")[0] == name:
            return f"Nothing to compare with: the paper's setting is {setting}."
    return "Nothing to compare with: the paper has no such setting."


def _test_text(dataset: Dataset) -> str:
    if dataset.test_pool is None:
        return "no test set"
    return f"test set of {len(dataset.test_pool):,}"


def _problems(report: Report) -> Iterator[str]:
    """What can't be read, a line each; ten at most of those that could be very many."""
    if report.missing:
        yield f"missing files, {len(report.missing):,} in all: {listed(report.missing)}"
    unreadable = [*report.unreadable.items(), *report.aside.items()]
    for example_id, reason in unreadable[:10]:
        yield f"unreadable: {example_id}: {reason}"


def number(figure: Figure, value: float) -> str:
    """Counts whole, ratios with the paper's four decimals."""
    if figure.name.startswith(("K,", "N,")):
        return f"{value:,.0f}"
    return f"{value:.4f}"


def listed(names: list[str]) -> str:
    """The first five, and how many more there are."""
    text = ", ".join(names[:5])
    if len(names) > 5:
        text += f" and {len(names) - 5:,} more"
    return text
