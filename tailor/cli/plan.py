"""`tailor plan`: what a round will cost, before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailor.cli.trust_option import Trust, settle_run

if TYPE_CHECKING:
    from tailor.capacity.forecast import CostEstimate
    from tailor.capacity.synthetic_pool import PoolSize


def complete_family(incomplete: str) -> list[str]:
    """The families of arms whose names begin so, for the shell's completion."""
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
        typer.Option(
            help="An arm family; may be given more than once.", autocompletion=complete_family
        ),
    ] = None,
    cover: Annotated[
        bool,
        typer.Option(
            "--cover", help="Arms propose, and what covers the pool best is taken; as a run has it."
        ),
    ] = False,
    device: Annotated[
        str, typer.Option(help="cpu, or cuda: then the predictions are held on the GPU.")
    ] = "cpu",
    disk: Annotated[
        Path | None, typer.Option(help="The folder whose disk is used; by default temporary.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a stage and nothing else.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Seconds, memory and disk of one round, estimated by running the same code on two small
    made-up pools.
    """
    import json as json_format
    import shutil
    import tempfile
    from dataclasses import asdict

    from tailor.capacity.device import check_device_present
    from tailor.capacity.forecast import forecast
    from tailor.capacity.planning import in_memory, planned_size, shortages
    from tailor.common.memory import available_memory

    if run is not None:
        trust = settle_run(run, trust)
    size, assumptions = planned_size(
        run,
        examples,
        classes,
        features,
        batch,
        multilabel,
        family,
        cover,
        trust=trust,
    )
    check_device_present(device)
    for assumption in assumptions:
        typer.echo(assumption, err=True)
    estimates = forecast(size, disk, device)
    if json:
        for estimate in estimates:
            typer.echo(json_format.dumps(asdict(estimate)))
        return
    print_plan(size, estimates)
    free_disk = shutil.disk_usage(disk or tempfile.gettempdir()).free
    for shortage in shortages(estimates, free_disk, available_memory()):
        typer.echo(shortage)
    if device == "cpu":
        typer.echo(in_memory(size))
    typer.echo("Reading the pool into features, once a run, is not in this.")


def print_plan(size: PoolSize, estimates: list[CostEstimate]) -> None:
    """A table of the stages of a round, with their total."""
    from rich.console import Console
    from rich.table import Table

    from tailor.capacity.forecast import altogether

    title = (
        f"A round of {size.batch:,} of {size.pool:,} examples, {size.classes:,} classes, "
        f"{size.features:,} features"
    )
    uses_gpu = any(estimate.device_memory for estimate in estimates)
    columns = ["seconds", "CPU seconds", "memory at its height"]
    if uses_gpu:
        columns.append("on the GPU")
    columns.append("written to disk")
    table = Table("stage", title=title)
    for column in columns:
        table.add_column(column, justify="right")
    for estimate in [*estimates, altogether(estimates)]:
        cells = [
            estimate.stage,
            f"{estimate.seconds:.1f}",
            f"{estimate.cpu_seconds:.1f}",
            _gibibytes(estimate.memory),
        ]
        if uses_gpu:
            cells.append(_gibibytes(estimate.device_memory))
        cells.append(_gibibytes(estimate.disk))
        table.add_row(*cells, end_section=estimate is estimates[-1])
    Console(width=100).print(table)


def _gibibytes(size: float) -> str:
    if size:
        return f"{size / 2**30:.2f} GiB"
    return ""
