"""The option --trust that commands which open a run have, and the question at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailor.cli.terminal import printable

if TYPE_CHECKING:
    from tailor.run.project import Project
    from tailor.run.reach import Reach

Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Trust a run from elsewhere with what it reaches (docs/concepts/trust.md)."
    ),
]


def open_project(run: Path, trust: bool) -> Project:
    """The run in a folder. Where it is not trusted with what it reaches: asks at a terminal, else
    raises NotTrusted.
    """
    from tailor.run.project import Project

    return Project(run, trust=settle_run(run, trust))


def settle_run(run: Path, trust: bool) -> bool:
    """Whether a run is trusted as of now, as its Project takes it; see `settle`."""
    from tailor.run import config
    from tailor.run.reaches import run_reaches

    return settle(run, run_reaches(config.read(run)), trust)


def settle(folder: Path, reaches: Sequence[Reach], trust: bool) -> bool:
    """Whether the user trusts a folder with what it reaches, by --trust or by an answer at a
    terminal; it is remembered. False where there is nothing to trust it with, or it is trusted
    already.

    Raises NotTrusted where the user does not, or can't be asked.
    """
    from tailor.errors import NotTrusted
    from tailor.run.trust import check_trusted, refusal, untrusted

    if not untrusted(folder, reaches):
        return trust
    if not trust and sys.stdin.isatty() and sys.stderr.isatty():
        typer.echo(printable(refusal(folder, reaches)), err=True)
        trust = typer.confirm("Trust it?", default=False, err=True)
        if not trust:
            raise NotTrusted(f"{folder} is not trusted, and was not opened")
    check_trusted(folder, reaches, trust=trust)
    return trust
