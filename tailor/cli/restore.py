"""tailor restore: a backup, brought back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.run_option import HERE, RunFolder


def restore(
    backup: Annotated[Path, typer.Argument(help="The folder that `tailor backup` made.")],
    run: RunFolder = HERE,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put the run that is there aside first.")
    ] = False,
) -> None:
    """Bring a backup back to where the run's settings say, compared event by event before it
    counts.
    """
    from tailor.run.copies import restore as restore_run

    restored = restore_run(backup, run, replace=replace)
    if restored.replaced is not None:
        typer.echo(f"What was there is in {restored.replaced}.")
    content = restored.content
    typer.echo(
        f"{content.events} events and {content.examples} examples are in {restored.place} (sha256 "
        f"{content.sha256[:16]})."
    )
