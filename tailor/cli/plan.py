"""`tailor plan`: what a round will cost, before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tailor.capacity.forecast import CostEstimate
    from tailor.capacity.synthetic_pool import PoolSize


def families(incomplete: str) -> list[str]:
    """The families of arms whose names begin so."""
    from tailor.strategies import registry

    return [name for name in registry if name.startswith(incomplete)]


def plan(
    run: Annotated[
        Path | None, typer.Argument(help="A run's folder: its pool, classes, families and batch.")
    ] = None,
    examples: Annotated[int | None, typer.Option(min=1, help="N, instead of a run's pool.")] = None,
    classes: Annotated[int | None, typer.Option(min=1, help="K.")] = None,
    features: Annotated[
        int | None, typer.Option(min=0, help="d, features of each; else the run's, or 512.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Examples a round, and as many labelled.")
    ] = None,
    multilabel: Annotated[
        bool, typer.Option("--multilabel", help="Any number of classes an example.")
    ] = False,
    family: Annotated[
        list[str] | None,
        typer.Option(help="An arm family; may be given more than once.", autocompletion=families),
    ] = None,
    device: Annotated[
        str, typer.Option(help="cpu, or cuda: then the predictions are held on the GPU.")
    ] = "cpu",
    disk: Annotated[
        Path | None, typer.Option(help="The folder whose disk is used; by default temporary.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a stage and nothing else.")
    ] = False,
) -> None:
    """Seconds, memory and disk of one round, estimated by running the same code on two small
    made-up pools.
    """
    import json as encoder
    import shutil
    import tempfile
    from dataclasses import asdict

    from tailor.capacity.device import check_device
    from tailor.capacity.forecast import forecast
    from tailor.capacity.planning import in_memory, planned_size, shortages
    from tailor.common.memory import available_memory

    size, assumed = planned_size(run, examples, classes, features, batch, multilabel, family)
    check_device(device)
    for line in assumed:
        typer.echo(line, err=True)
    found = forecast(size, disk, device)
    if json:
        for one in found:
            typer.echo(encoder.dumps(asdict(one)))
        return
    print_plan(size, found)
    for line in shortages(
        found, shutil.disk_usage(disk or tempfile.gettempdir()).free, available_memory()
    ):
        typer.echo(line)
    if device == "cpu":
        typer.echo(in_memory(size))
    typer.echo("Reading the pool into features, once a run, is not in this.")


def _title(size: PoolSize) -> str:
    return (
        f"A round of {size.batch:,} of {size.pool:,} examples, {size.classes:,} classes, "
        f"{size.features:,} features"
    )


def print_plan(size: PoolSize, found: list[CostEstimate]) -> None:
    from rich.console import Console
    from rich.table import Table

    from tailor.capacity.forecast import altogether

    on_gpu = any(one.device_memory for one in found)
    table = Table("stage", title=_title(size))
    for column in (
        "seconds",
        "CPU seconds",
        "memory at its height",
        *["on the GPU"] * on_gpu,
        "written to disk",
    ):
        table.add_column(column, justify="right")
    for one in [*found, altogether(found)]:
        sizes = [one.memory, *[one.device_memory] * on_gpu, one.disk]
        table.add_row(
            one.stage,
            f"{one.seconds:.1f}",
            f"{one.cpu_seconds:.1f}",
            *(f"{bytes / 2**30:.2f} GiB" if bytes else "" for bytes in sizes),
            end_section=one is found[-1],
        )
    Console(width=100).print(table)
