"""tailor train: the final model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.common import HERE, Run, bars, check_no_run, polite


def train(
    out: Annotated[Path, typer.Argument(help="A new folder for the model.")] = Path("model"),
    run: Run = HERE,
    force: Annotated[
        bool, typer.Option("--force", help="Write over the model that is in the folder.")
    ] = False,
) -> None:
    """Train on all answers but the hold-out's; save weights as safetensors, with a card of what
    they saw.
    """
    from tailor.run.model_card import check_place
    from tailor.run.open_run import Run as OpenRun
    from tailor.run.project import Project

    check_no_run(out, "OUT")
    project = Project(run)
    check_place(out, force)  # before the pool is opened, which may take long
    with (
        polite(f"tailor train {out} --run {run}{' --force' if force else ''}"),
        bars() as progress,
        OpenRun(project, progress) as opened,
    ):
        estimate = opened.train(out, overwrite=force)
    typer.echo(
        f"Model and card in {out}" + (f"; accuracy on the hold-out {estimate}" if estimate else "")
    )
