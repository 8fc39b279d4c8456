"""What must not be lost."""

from __future__ import annotations

from pathlib import Path

from tailor.errors import InputError
from tailor.storage.address import Address, is_url
from tailor.storage.base import Away, Busy, Event, Missing, Store, StoreError
from tailor.storage.postgres import PostgresStore
from tailor.storage.sqlite import SqliteStore

#: the event that ends a store whose run went on elsewhere
MOVED = "moved"


def place_of(given: str, folder: Path) -> str | Path:
    """What a user wrote: a postgresql:// URL, or a path from a folder."""
    kind, separator, _ = given.partition("://")
    if separator and not is_url(given):
        raise InputError(
            f"{kind}:// is no store: write the path of a file (SQLite), or "
            "postgresql://HOST/DATABASE"
        )
    return given if separator else folder / given


def open_store(place: str | Path, *, run: str | None = None, readonly: bool = False) -> Store:
    """The store at a path (SQLite) or a postgresql:// URL; `run` names the run where the URL does
    not.
    """
    store = open_as_it_is(place, run=run, readonly=readonly)
    try:
        last = store.last()
        if last is not None and last.kind == MOVED:
            to = last.body.get("to")
            raise StoreError(
                f"the run in {shown(place, run)} was moved to {to}: name that as `store` under "
                "[run] in "
                "tailor.toml, or in TAILOR_STORE. This copy is left as it was"
            )
    except BaseException:
        store.close()
        raise
    return store


def open_as_it_is(place: str | Path, *, run: str | None = None, readonly: bool = False) -> Store:
    """open_store, also for one that was moved away from."""
    if is_url(place):
        return PostgresStore(str(place), run, readonly=readonly)
    return SqliteStore(place, readonly=readonly)


def begun(place: str | Path, run: str | None = None) -> bool:
    """Whether there is anything at a place."""
    try:
        with open_store(place, run=run, readonly=True) as store:
            return store.last() is not None
    except Missing:
        return False


def shown(place: str | Path, run: str | None = None) -> str:
    """A place in full, but for its password."""
    return str(Address.parse(str(place), run) if is_url(place) else Path(place).absolute())


__all__ = [
    "Away",
    "Busy",
    "Event",
    "Missing",
    "PostgresStore",
    "SqliteStore",
    "Store",
    "StoreError",
    "begun",
    "is_url",
    "open_as_it_is",
    "open_store",
    "place_of",
    "shown",
]
