"""tailor train: the final model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.run_option import HERE, RunFolder, check_no_run
from tailor.cli.terminal import interruptible, progress_bars
from tailor.cli.trust_option import Trust, open_project


def train(
    out: Annotated[Path, typer.Argument(help="A new folder for the model.")] = Path("model"),
    run: RunFolder = HERE,
    force: Annotated[
        bool, typer.Option("--force", help="Write over the model that is in the folder.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Train on all answers but the hold-out's; save weights as safetensors, with a card of what
    they saw.
    """
    from tailor.run.model_card import check_place
    from tailor.run.open_run import Run

    check_no_run(out, "OUT")
    project = open_project(run, trust)
    check_place(out, force)  # before the pool is opened, which may take long
    command = f"tailor train {out} --run {run}"
    if force:
        command += " --force"
    with (
        interruptible(command),
        progress_bars() as progress,
        Run(project, progress) as opened,
    ):
        estimate = opened.train(out, overwrite=force)
    if estimate:
        accuracy = f"; accuracy on the hold-out {estimate}"
    else:
        accuracy = ""
    typer.echo(f"Model and card in {out}{accuracy}")
