"""`tailor plan`: what a round will cost, before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plan(
    run: Annotated[Path | None, typer.Argument(help="A run's folder: its pool, classes, families and batch.")] = None,
    examples: Annotated[int | None, typer.Option(min=1, help="N, instead of a run's pool.")] = None,
    classes: Annotated[int | None, typer.Option(min=1, help="K.")] = None,
    features: Annotated[int, typer.Option(min=0, help="d, the width of the features.")] = 512,
    batch: Annotated[int | None, typer.Option(min=1, help="Examples a round, and as many labelled.")] = None,
    multilabel: Annotated[bool, typer.Option("--multilabel", help="Any number of classes an example.")] = False,
    family: Annotated[list[str] | None, typer.Option(help="An arm family; may be given more than once.")] = None,
    disk: Annotated[Path | None, typer.Option(help="The folder whose disk is used; by default temporary.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a stage and nothing else.")] = False,
) -> None:
    """Seconds, memory and disk of one round, estimated by running the same code on two small made-up pools."""
    import json as encoder
    import shutil
    import tempfile
    from dataclasses import asdict

    from tailor.bench.forecast import forecast
    from tailor.bench.planning import planned_size

    size = planned_size(run, examples, classes, features, batch, multilabel, family)
    found = forecast(size, disk)
    if json:
        for one in found:
            typer.echo(encoder.dumps(asdict(one)))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("stage", title=f"A round of {size.batch:,} of {size.pool:,} examples, {size.classes:,} classes")
    for column in ("seconds", "CPU seconds", "memory at its height", "written to disk"):
        table.add_column(column, justify="right")
    for one in found:
        written = f"{one.disk / 2**30:.2f} GiB" if one.disk else ""
        times = f"{one.seconds:.1f}", f"{one.cpu_seconds:.1f}"
        table.add_row(one.stage, *times, f"{one.memory / 2**30:.2f} GiB", written)
    written_in_all = sum(one.disk for one in found)
    table.add_section()
    height = max(one.memory for one in found) / 2**30
    seconds, busy = (sum(getattr(one, name) for one in found) for name in ("seconds", "cpu_seconds"))
    table.add_row("all", f"{seconds:.1f}", f"{busy:.1f}", f"{height:.2f} GiB", f"{written_in_all / 2**30:.2f} GiB")
    console = Console(width=100)
    console.print(table)
    free = shutil.disk_usage(disk or tempfile.gettempdir()).free
    if written_in_all > free:
        console.print(f"Too little disk: {written_in_all / 2**30:.1f} GiB are needed, {free / 2**30:.1f} GiB are free")
    console.print("Reading the pool into features, once a run, is not in this.")
