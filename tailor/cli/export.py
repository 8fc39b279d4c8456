"""tailor export: the labels, in the form others want."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.common import HERE, Run, bars, check_no_run, polite


def export(
    out: Annotated[Path, typer.Argument(help="A .csv, .jsonl or .parquet file, or a new folder.")],
    run: Run = HERE,
    format: Annotated[
        str,
        typer.Option(
            help="csv, jsonl, parquet, folders or huggingface; by the ending if left out."
        ),
    ] = "",
    predictions: Annotated[
        bool, typer.Option("--predictions", help="Rows for the unlabelled too: trains a model.")
    ] = False,
) -> None:
    """Write labels with their provenance: who, when, which arm, what the model said."""
    import numpy as np

    from tailor.errors import InputError
    from tailor.run.export import export as write
    from tailor.run.project import Project

    check_no_run(out, "OUT")
    form = format or {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}.get(out.suffix, "")
    if not form:
        raise InputError(
            f"{out} has no known ending: name a --format (csv, jsonl, parquet, folders, "
            "huggingface)"
        )
    project = Project(run)
    probs, pool = None, None
    with polite(f"tailor export {out} --run {run}"), bars() as progress:
        if predictions:
            session = project.session(progress)
            try:
                session.final_fit()
                probs, _ = session.predict(np.arange(len(session.run_state.ids)))
                run_state = session.run_state
                pool = session.pool
            finally:
                session.store.close()
        else:
            run_state = project.run_state()
            if form in ("folders", "huggingface"):
                pool = project.pool()
        count = write(run_state, out, form, pool=pool, probs=probs)
    typer.echo(f"{count} rows in {out}")
