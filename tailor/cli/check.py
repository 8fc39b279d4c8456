"""tailor check: whether a run is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.run_option import HERE
from tailor.cli.terminal import printable
from tailor.cli.trust_option import Trust, settle_run

#: losses that are listed before the rest is only counted
MOST_LOSSES = 50


def check(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of the run.")] = HERE,
    salvage: Annotated[
        Path | None,
        typer.Option("--salvage", metavar="NEW", help="Write what is whole to this new folder."),
    ] = None,
    trust: Trust = False,
) -> None:
    """Check every event, the database, the cached features and the saved models of a run; nothing
    is changed.
    """
    settle_run(run, trust)
    if salvage is not None:
        _salvage(run, salvage)
        return
    from tailor.run.check import check_run
    from tailor.storage import StoreDamaged

    problems = 0
    for part in check_run(run):
        problems += len(part.problems)
        if part.problems:
            state = "damaged"
        else:
            state = "whole"
        typer.echo(printable(f"{part.name}: {state} ({part.content})"))
        for problem in part.problems:
            typer.echo(printable(f"  {problem}"))
    if problems:
        raise StoreDamaged(
            f"{run} is damaged: {problems} problems are listed above; nothing was changed"
        )


def _salvage(run: Path, new: Path) -> None:
    from tailor.run.salvage import LEFT_OUT_FILE
    from tailor.run.salvage import salvage as salvage_run

    salvaged = salvage_run(run, new)
    typer.echo(f"{salvaged.events} events are in {new}; {len(salvaged.losses)} are not whole.")
    for loss in salvaged.losses[:MOST_LOSSES]:
        if loss.kind:
            kind = f" ({loss.kind})"
        else:
            kind = ""
        typer.echo(printable(f"event {loss.number}{kind}: {loss.reason}"))
    unlisted = len(salvaged.losses) - MOST_LOSSES
    if unlisted > 0:
        typer.echo(f"and {unlisted} more")
    if salvaged.left_out:
        typer.echo(
            f"{len(salvaged.left_out)} events are whole, but what they build on is lost: they are "
            f"in {new / LEFT_OUT_FILE}."
        )
