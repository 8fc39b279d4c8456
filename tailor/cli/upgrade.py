"""tailor upgrade: a run of an earlier format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.run_option import HERE
from tailor.cli.trust_option import Trust, settle_run


def upgrade(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of the run.")] = HERE,
    trust: Trust = False,
) -> None:
    """Bring a run that an earlier version wrote to today's format, after a backup of it."""
    from tailor.run.upgrading import upgrade_run

    settle_run(run, trust)
    done = upgrade_run(run)
    if done.backup is None:
        typer.echo(f"Nothing to do: the run has format {done.after}, which is today's.")
        return
    typer.echo(
        f"Upgraded from format {done.before} to {done.after}, {done.events} events. As it was, "
        f"the run is in {done.backup.parent}."
    )
