"""A copy of a run that somebody may be writing to, as it was at one moment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from tailor.storage.base import Event, Store, StoreError
from tailor.storage.move import Fingerprint, transfer


def copy_store(source: Store, target: Store) -> Fingerprint:
    """Copy all that is in `source` now to the empty `target`, compared event by event before it
    counts.

    source  may be open for reading only, and others may write to it meanwhile

    Raises StoreError where there is nothing to copy, where the target is not empty, and where what
    arrived differs.
    """
    newest = source.last()
    if newest is None:
        raise StoreError("no run was begun there yet: there is nothing to copy")
    last_number = newest.number

    def events() -> Iterator[Event]:
        return takewhile(lambda event: event.number <= last_number, source.events())

    # Ids that came later belong to events that came later.
    counted = 0
    for event in source.find("examples"):
        if event.number <= last_number:
            counted += event.body["count"]
    ids = source.examples()[:counted]
    return transfer(ids, events, target)
