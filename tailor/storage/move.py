"""Moving a run from one store to another: all of it or nothing, compared before it counts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailor.storage import MOVED, describe_place, open_even_if_moved
from tailor.storage.base import Event, Store, StoreDamaged, StoreError, StoreMissing, encode


@dataclass(frozen=True)
class Fingerprint:
    """What a store holds: equal if and only if every id and every event is, byte by byte.

    examples, events  how many there are
    sha256            of all of them
    """

    examples: int
    events: int
    sha256: str


def fingerprint(ids: Sequence[str], events: Iterable[Event]) -> Fingerprint:
    """The fingerprint of these ids and events."""
    digest = hashlib.sha256()
    event_count = 0

    def add(part: bytes) -> None:
        # With its length before it, so that no two lists of parts give the same bytes.
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)

    for example_id in ids:
        add(example_id.encode())
    for event in events:
        event_count += 1
        add(str(event.number).encode())
        add(event.time.hex().encode())
        add(event.kind.encode())
        add(encode(event.body).encode())
        if event.data is None:
            add(b"none")
        else:
            add(b"some")
        add(event.data or b"")
    return Fingerprint(len(ids), event_count, digest.hexdigest())


def transfer(
    ids: Sequence[str], read_events: Callable[[], Iterable[Event]], target: Store
) -> Fingerprint:
    """Write ids and events to an empty store, and compare all of it before it counts.

    read_events  gives the same events each time

    Raises StoreError where what arrived differs; nothing is in the target then.
    """
    sent = fingerprint(ids, read_events())

    def verify() -> None:
        try:
            arrived = fingerprint(target.examples(), target.events())
        except StoreDamaged as error:
            raise StoreError(f"what arrived differs from what was sent: {error}") from error
        if arrived != sent:
            raise StoreError(
                f"what arrived differs from what was sent ({arrived}, {sent}): nothing was taken "
                "over"
            )

    target.restore(ids, read_events(), verify)
    return sent


def move(source: str | Path, target: str | Path, *, run: str | None = None) -> Fingerprint:
    """Move everything at `source` to `target`, which must be empty. Nobody can write to either
    meanwhile.

    The source keeps all it had, and a last event that says where the run went on: it opens no more,
    but can be moved from again.

    Raises StoreError where there is no run at the source, where the target is not empty, and where
    what arrived differs; nothing was moved then.
    """
    source_name = describe_place(source, run)
    target_name = describe_place(target, run)
    if not _has_events(source, run):
        raise StoreError(f"there is no run in {source_name}: name the file or the URL of one")
    if source_name == target_name:
        raise StoreError(f"{target_name} would be moved to itself: name another place")
    with (
        open_even_if_moved(source, run=run) as old_store,
        open_even_if_moved(target, run=run) as new_store,
    ):
        ids = old_store.examples()
        sent = transfer(ids, lambda: _events_to_move(old_store), new_store)
        try:
            old_store.append(MOVED, {"to": target_name})
        except StoreError as error:
            raise StoreError(
                f"the run is in {target_name} now, but its old place could not be marked as left "
                f"({error}): put it aside, so that nobody goes on there"
            ) from error
    return sent


def _has_events(place: str | Path, run: str | None) -> bool:
    try:
        with open_even_if_moved(place, run=run, readonly=True) as store:
            return store.last() is not None
    except StoreMissing:
        return False


def _events_to_move(store: Store) -> Iterator[Event]:
    """All events but those that only say that the run was moved."""
    return (event for event in store.events() if event.kind != MOVED)
