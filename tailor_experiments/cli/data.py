"""tailor data: the paper's datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailor.cli.group import CommandGroup

if TYPE_CHECKING:
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
        raise typer.Exit(1)


def show(name: str, dataset: Dataset, report: Report) -> None:
    """The report as a table, and what can't be read below it."""
    from rich.console import Console
    from rich.table import Table

    from tailor_experiments.datasets import PAPER

    console = Console()
    table = Table(
        "",
        "here",
        "paper",
        "",
        title=f"{name}, {dataset.task.kind}",
    )
    for figure in report.figures:
        paper = "" if figure.paper is None else number(figure, figure.paper)
        remark = {True: "ok", False: "differs", None: ""}[figure.ok]
        if figure.note:
            remark = f"{remark} ({figure.note})"
        table.add_row(
            figure.name,
            number(figure, figure.here),
            paper,
            remark,
        )
    console.print(table)
    if report.setting is None:
        near = [setting for setting in PAPER if setting.rpartition("-")[0] == dataset.name]
        text = f"the paper's setting is {near[0]}" if near else "the paper has no such setting"
        console.print(f"Nothing to compare with: {text}.", markup=False)
    test = "no test set"
    if dataset.test_pool is not None:
        test = f"test set of {len(dataset.test_pool):,}"
    console.print(
        f"{test}; read {report.sampled} examples, {len(report.unreadable)} of them unreadable",
        markup=False,
    )
    if report.missing:
        console.print(
            f"missing files, {len(report.missing):,} in all: {listed(report.missing)}",
            style="yellow",
            markup=False,
        )
    unreadable = [*report.unreadable.items(), *report.aside.items()]
    for example_id, reason in unreadable[:10]:
        console.print(f"unreadable: {example_id}: {reason}", style="yellow", markup=False)


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
