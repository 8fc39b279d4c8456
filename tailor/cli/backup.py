"""tailor backup: a copy of a run, also of one that is in use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.cli.run_option import HERE, RunFolder, run_words
from tailor.cli.trust_option import Trust, settle_run


def backup(
    out: Annotated[Path, typer.Argument(help="A new folder for the copy.")],
    run: RunFolder = HERE,
    trust: Trust = False,
) -> None:
    """Copy a run's answers and settings as they are at this moment, compared event by event; others
    may go on labelling.
    """
    from tailor.run.copies import back_up

    settle_run(run, trust)
    content = back_up(run, out)
    typer.echo(
        f"{content.events} events and {content.examples} examples are in {out} (sha256 "
        f"{content.sha256[:16]}). Back again: tailor restore {out}{run_words(run)}"
    )
