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
    from tailor.storage import describe_place, is_url, parse_place
    from tailor.storage.move import move as move_store

    old = parse_place(source, Path())
    new = parse_place(target, Path())
    files = [Path(place) for place in (old, new) if not is_url(place)]
    run = (
        (files[0] if files else Path("here")).absolute().parent.name
    )  # as a project there would name it
    moved = move_store(old, new, run=run)
    to = describe_place(new, run)
    typer.echo(
        f"{moved.events} events and {moved.examples} examples are in {to} now (sha256 "
        f"{moved.sha256[:16]})."
    )
    typer.echo(
        "Next: name it as `store` under [run] in tailor.toml, or in TAILOR_STORE. The old place "
        "opens no more."
    )
