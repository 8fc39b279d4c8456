"""A run from one store to another: all of it or nothing, compared before it counts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailor.storage import MOVED, open_as_it_is, shown
from tailor.storage.base import Event, Missing, Store, StoreError, encode


@dataclass(frozen=True)
class Fingerprint:
    """What a store holds: equal if and only if every id and every event is, byte by byte."""

    examples: int
    events: int
    sha256: str


def fingerprint(ids: Sequence[str], events: Iterable[Event]) -> Fingerprint:
    digest = hashlib.sha256()
    count = 0

    def add(*parts: bytes) -> None:
        for part in parts:
            digest.update(len(part).to_bytes(8, "big") + part)

    for one in ids:
        add(one.encode())
    for event in events:
        count += 1
        add(
            str(event.number).encode(),
            event.time.hex().encode(),
            event.kind.encode(),
            encode(event.body).encode(),
        )
        add(b"none" if event.data is None else b"some", event.data or b"")
    return Fingerprint(len(ids), count, digest.hexdigest())


def move(source: str | Path, target: str | Path, *, run: str | None = None) -> Fingerprint:
    """Everything at `source` to `target`, which must be empty. Nobody can write to either
    meanwhile.

    The source keeps all it had, and a last event that says where the run went on: it opens no more,
    but can be moved from again.
    """
    if not _is_there(source, run):
        raise StoreError(
            f"there is no run in {shown(source, run)}: name the file or the URL of one"
        )
    to = shown(target, run)
    if shown(source, run) == to:
        raise StoreError(f"{to} would be moved to itself: name another place")
    with open_as_it_is(source, run=run) as old, open_as_it_is(target, run=run) as new:
        ids = old.examples()
        expected = fingerprint(ids, _still_there(old))

        def verify() -> None:
            found = fingerprint(new.examples(), new.events())
            if found != expected:
                raise StoreError(
                    f"what arrived differs from what was sent ({found}, {expected}): nothing was "
                    "moved"
                )

        new.restore(ids, _still_there(old), verify)
        try:
            old.append(MOVED, {"to": to})
        except StoreError as error:
            raise StoreError(
                f"the run is in {to} now, but its old place could not be marked as left ({error}): "
                "put it aside, so that nobody goes on there"
            ) from error
    return expected


def _is_there(place: str | Path, run: str | None) -> bool:
    try:
        with open_as_it_is(place, run=run, readonly=True) as store:
            return store.last() is not None
    except Missing:
        return False


def _still_there(store: Store) -> Iterator[Event]:
    """All events but those that only say that the run was moved."""
    return (event for event in store.events() if event.kind != MOVED)
