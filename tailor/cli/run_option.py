"""The option --run that most commands have: the folder of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailor.errors import InputError

#: where a command looks for a run if nobody says otherwise
HERE = Path(".")


def complete_run(incomplete: str = "") -> list[str]:
    """The folders below this one that hold a run, of those that begin so, for the shell."""
    from tailor.run.config import runs_in

    return [name for name in runs_in(HERE) if name.startswith(incomplete)]


RunFolder = Annotated[
    Path, typer.Option("--run", "-r", help="The folder of the run.", autocompletion=complete_run)
]


def run_words(run: Path) -> str:
    """How the next command names the run: nothing where it is here."""
    if run == HERE:
        return ""
    return f" --run {run}"


def check_no_run(path: Path, argument: str) -> None:
    """Raises InputError where a run's folder is given as another argument than --run."""
    from tailor.run.config import FILE

    if (path / FILE).is_file():
        raise InputError(
            f"{path} is the folder of a run, given as {argument}: name it with --run {path}"
        )
