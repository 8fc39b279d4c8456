"""tailor trust: a run from elsewhere may do what its settings say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.run_option import HERE, complete_run
from tailor.cli.terminal import printable


def trust(
    run: Annotated[
        Path, typer.Argument(help="The folder of the run.", autocompletion=complete_run)
    ] = HERE,
    show: Annotated[
        bool, typer.Option("--show", help="Say what it reaches, and trust it with nothing.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Trust it no more: the next command asks again.")
    ] = False,
) -> None:
    """Trust a run from elsewhere with what it would connect to, write to and run, which is listed;
    a run that was begun here needs it only after its settings have changed.
    """
    from tailor.run import config
    from tailor.run.reaches import run_reaches, studio_reaches, user_reaches
    from tailor.run.trust import forget as forget_run
    from tailor.run.trust import listed, remember, untrusted

    settings = config.read(run)
    if forget:
        was_trusted = forget_run(run)
        typer.echo(f"{run} {'is' if was_trusted else 'was'} not trusted with anything.")
        return
    reaches = [*run_reaches(settings), *user_reaches(run), *studio_reaches(run)]
    typer.echo(f"Opened, {run} would")
    for line in listed(reaches):
        typer.echo(printable(line))
    if not any(reach.needs_trust for reach in reaches):
        typer.echo("That needs no trust.")
        return
    if not show:
        remember(run, reaches)
    state = "not trusted with all of that" if untrusted(run, reaches) else "trusted with that"
    typer.echo(f"It is {state}.")
