"""tailor trust: a run from elsewhere may do what its settings say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailor.cli.run_option import HERE, complete_run
from tailor.cli.terminal import printable

if TYPE_CHECKING:
    from tailor.run.reach import Reach


def trust(
    run: Annotated[
        Path,
        typer.Argument(
            help="The folder of the run, or of a trained model.", autocompletion=complete_run
        ),
    ] = HERE,
    show: Annotated[
        bool, typer.Option("--show", help="Say what it reaches, and trust it with nothing.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Trust it no more: the next command asks again.")
    ] = False,
) -> None:
    """Trust a run or a model from elsewhere with what it would connect to, write to and run, which
    is listed; a run that was begun here needs it only after its settings have changed.
    """
    from tailor.run.trust import forget as forget_run
    from tailor.run.trust import listed, remember, untrusted

    reaches = _reaches_of(run)
    if forget:
        if forget_run(run):
            typer.echo(f"{run} is trusted no more.")
        else:
            typer.echo(f"{run} was not trusted with anything.")
        return
    if reaches:
        typer.echo(f"Opened, {run} would")
    for line in listed(reaches):
        typer.echo(printable(line))
    if not any(reach.needs_trust for reach in reaches):
        typer.echo(f"{run} needs no trust.")
        return
    if not show:
        remember(run, reaches)
    if untrusted(run, reaches):
        state = "not trusted with all of that"
    else:
        state = "trusted with that"
    typer.echo(f"It is {state}.")


def _reaches_of(folder: Path) -> list[Reach]:
    """All that a run's folder, or a trained model's, would touch."""
    from tailor.models.files import SETTINGS
    from tailor.run import config
    from tailor.run.model_reaches import saved_model_reaches
    from tailor.run.reaches import run_reaches, studio_reaches, user_reaches

    holds_a_run = (folder / config.FILE).is_file()
    if not holds_a_run and (folder / SETTINGS).is_file():
        return saved_model_reaches(folder)
    settings = config.read(folder)
    return [*run_reaches(settings), *user_reaches(folder), *studio_reaches(folder)]
