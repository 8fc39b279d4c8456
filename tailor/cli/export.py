"""tailor export: the labels, in the form others want."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.run_option import HERE, RunFolder, check_no_run
from tailor.cli.terminal import interruptible, progress_bars
from tailor.cli.trust_option import Trust, open_project


def export(
    out: Annotated[Path, typer.Argument(help="A .csv, .jsonl or .parquet file, or a new folder.")],
    run: RunFolder = HERE,
    format: Annotated[
        str,
        typer.Option(
            help="csv, jsonl, parquet, folders or huggingface; by the ending if left out."
        ),
    ] = "",
    predictions: Annotated[
        bool, typer.Option("--predictions", help="Rows for the unlabelled too: trains a model.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Write labels with their provenance: who, when, which arm, what the model said."""
    from tailor.run.export import export as write
    from tailor.run.export import export_format
    from tailor.run.open_run import Run

    check_no_run(out, "OUT")
    form = export_format(out, format)
    project = open_project(run, trust)
    with interruptible(f"tailor export {out} --run {run}"), progress_bars() as progress:
        if predictions:
            with Run(project, progress) as opened:
                count = opened.export(out, form, predictions=True)
        else:
            # Read only: it works while another process writes.
            if form in ("folders", "huggingface"):
                pool = project.pool()
            else:
                pool = None
            count = write(project.run_state(), out, form, pool=pool)
    typer.echo(f"{count} rows in {out}")
