"""Stores: the append-only events of a run, in an SQLite file or in PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from tailor.common.operating_system import check_operating_system
from tailor.errors import InputError
from tailor.storage.address import Address, is_url
from tailor.storage.base import (
    Event,
    Store,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreMissing,
    StoreOutdated,
    StoreUnreachable,
)
from tailor.storage.postgres import PostgresStore
from tailor.storage.sqlite import SqliteStore

#: The kind of the event that ends a store whose run went on elsewhere.
MOVED = "moved"


def parse_place(text: str, folder: Path) -> str | Path:
    """Where a store is, from what a user wrote: a postgresql:// URL as it is, or a path relative to
    a folder. Raises InputError for a URL of any other kind.
    """
    scheme, separator, _ = text.partition("://")
    if not separator:
        return folder / text
    if not is_url(text):
        raise InputError(
            f"{scheme}:// is no store: write the path of a file (SQLite), or "
            "postgresql://HOST/DATABASE"
        )
    return text


def open_store(place: str | Path, *, run: str | None = None, readonly: bool = False) -> Store:
    """Open the store at a path (SQLite) or a postgresql:// URL, and create it where it isn't there.

    run       the name of the run, where the URL names none
    readonly  open it for reading; StoreMissing where there is nothing

    Raises StoreBusy where another process writes to it, StoreUnreachable where the server does not
    answer, StoreDamaged where it lost anything, StoreOutdated where it has an earlier format, and
    StoreError where it was moved elsewhere or can't be opened.
    """
    check_operating_system()
    store = open_even_if_moved(place, run=run, readonly=readonly)
    try:
        last_event = store.last()
        if last_event is not None and last_event.kind == MOVED:
            raise StoreError(
                f"the run in {describe_place(place, run)} was moved to "
                f"{last_event.body.get('to')}: name that as `store` under [run] in tailor.toml, "
                "or in TAILOR_STORE. This copy is left as it was"
            )
    except BaseException:
        store.close()
        raise
    return store


def open_even_if_moved(
    place: str | Path, *, run: str | None = None, readonly: bool = False
) -> Store:
    """As open_store, also for a store that was moved elsewhere."""
    if is_url(place):
        return PostgresStore(str(place), run, readonly=readonly)
    return SqliteStore(place, readonly=readonly)


def is_begun(place: str | Path, run: str | None = None) -> bool:
    """Whether there is a run at a place."""
    try:
        with open_store(place, run=run, readonly=True) as store:
            return store.last() is not None
    except StoreMissing:
        return False


def describe_place(place: str | Path, run: str | None = None) -> str:
    """A place in full for a message, without its password."""
    if is_url(place):
        return str(Address.parse(str(place), run))
    return str(Path(place).absolute())


__all__ = [
    "MOVED",
    "Event",
    "PostgresStore",
    "SqliteStore",
    "Store",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreMissing",
    "StoreOutdated",
    "StoreUnreachable",
    "describe_place",
    "is_begun",
    "is_url",
    "open_even_if_moved",
    "open_store",
    "parse_place",
]
