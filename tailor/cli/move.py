"""tailor move: a run's store to another place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def move(
    source: Annotated[
        str,
        typer.Argument(metavar="FROM", help="Where the run is: a run.db, or a postgresql:// URL."),
    ],
    target: Annotated[
        str,
        typer.Argument(metavar="TO", help="Where it shall be: a new file, or a postgresql:// URL."),
    ],
) -> None:
    """Move a run's store from SQLite to PostgreSQL or back: all of it or nothing, compared event by
    event.
    """
    from tailor.storage import describe_place, parse_place
    from tailor.storage.move import move as move_store

    old = parse_place(source, Path())
    new = parse_place(target, Path())
    run_name = _name_of_run(old, new)
    moved = move_store(old, new, run=run_name)
    place = describe_place(new, run_name)
    typer.echo(
        f"{moved.events} events and {moved.examples} examples are in {place} now (sha256 "
        f"{moved.sha256[:16]})."
    )
    typer.echo(
        "Next: name it as `store` under [run] in tailor.toml, or in TAILOR_STORE. The old place "
        "opens no more."
    )


def _name_of_run(*places: str | Path) -> str:
    """As a project in the folder of the store's file would name it; between two databases, by the
    folder that we are in.
    """
    from tailor.storage import is_url

    files = []
    for place in places:
        if not is_url(place):
            files.append(Path(place))
    if files:
        file = files[0]
    else:
        file = Path("here")
    return file.absolute().parent.name
