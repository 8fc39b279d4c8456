"""Stores with events that no program would write, but whose checksums are right."""

from __future__ import annotations

from tailor.storage import SqliteStore
from tailor.storage.sqlite import INSERT_EVENTS


def append_raw(path, kind: str, body: str, data: bytes | None = None) -> None:
    """Add an event with any text as its body."""
    with SqliteStore(path) as store, store._session.writing() as db:
        db.execute(INSERT_EVENTS, store._next_row(0.0, kind, body, data))


def rewrite(path, change) -> None:
    """Write a store anew with each event as `change` gives it."""
    with SqliteStore(path, readonly=True) as store:
        ids = store.examples()
        events = [change(event) for event in store.events()]
    for old in path.parent.glob(f"{path.name}*"):
        old.unlink()
    with SqliteStore(path) as store:
        store.restore(ids, events, lambda: None)
