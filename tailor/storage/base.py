"""The interface of a store: an append-only list of events, and the ids of the run's examples."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tailor.errors import InputError, TailorError


class StoreError(TailorError):
    """The store can't be read or written. What was acknowledged before is untouched."""


class StoreBusy(StoreError):
    """Another process is writing to this run."""


class StoreUnreachable(StoreError):
    """The store can't be reached for now. What was acknowledged is safe; a later call tries again
    by itself.
    """


class StoreMissing(StoreError):
    """There is nothing to read: no run was begun here."""


class StoreDamaged(StoreError):
    """Something that was written is lost or changed. The store was left as it is."""


class StoreOutdated(StoreError):
    """The store has an earlier format, which `tailor upgrade` brings up to date.

    place    of the store, for the message
    version  its format
    newest   today's
    folder   of the run, as far as it is known
    """

    def __init__(self, place: object, version: int, newest: int, folder: object = "RUN") -> None:
        super().__init__(
            f"{place} has format {version}, and this tailor works with {newest}: `tailor upgrade "
            f"{folder}` brings it up to date, and makes a backup first; nothing was changed"
        )
        self.place = place
        self.version = version
        self.newest = newest

    def of_run(self, folder: object) -> StoreOutdated:
        """The same error, with the folder of the run in its message."""
        return StoreOutdated(self.place, self.version, self.newest, folder)


@dataclass(frozen=True)
class Event:
    """Something that happened in a run.

    number  1, 2, ...: the order of all events
    time    seconds since 1970
    kind    what happened, such as "told"
    body    plain JSON
    data    arrays that would be wasteful as text
    """

    number: int
    time: float
    kind: str
    body: dict[str, Any]
    data: bytes | None = None


class Store(ABC):
    """The events of one run. One process writes at a time, any may read, and threads may share a
    store.

    append() returns when the event is safe: after a crash at any later moment it is there. Numbers
    have no holes: what was rolled back leaves none. An append that raises was not taken in, but for
    one whose connection broke meanwhile: events() tells.

    Events carry a chain of checksums (chain.py), which is checked as they are read. Where anything
    that was written is lost or changed, opening or reading raises StoreDamaged, and nothing is
    written before the whole chain was checked.

    All methods raise StoreError where the store can't be read or written.
    """

    @abstractmethod
    def append(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> int:
        """Add an event -> its number. `body` must be plain JSON without NaN (ValueError)."""

    @abstractmethod
    def add_examples(self, ids: Sequence[str]) -> None:
        """Add ids at the positions that follow the last, with an event "examples" that counts them
        and whose data is their ids_digest(); all or none.
        """

    @abstractmethod
    def events(self, after: int = 0) -> Iterator[Event]:
        """The events with a number above `after`, in order, that are there when the first is
        taken.
        """

    def find(self, kind: str) -> Iterator[Event]:
        """The events of one kind, in order."""
        return (event for event in self.events() if event.kind == kind)

    @abstractmethod
    def last(self) -> Event | None:
        """The newest event; None where there is none."""

    @abstractmethod
    def examples(self) -> list[str]:
        """All ids by position."""

    @abstractmethod
    def restore(
        self,
        ids: Sequence[str],
        events: Iterable[Event],
        verify: Callable[[], None],
    ) -> None:
        """Take everything of another store into this empty one, numbers and times as they were; all
        or none.

        verify  may read what is here before it counts: where it raises, nothing came in
        """

    def checkpoint(self) -> None:
        """Make what lies at the store's place complete, should it be spread over several files."""
        return

    def database_problems(self) -> list[str]:
        """What the database's own check finds wrong, in words."""
        return []

    def problems(self) -> list[str]:
        """What the chain, the ids and the database's own check find wrong, in words; empty where
        all is whole.
        """
        messages: list[str] = []
        for read in (self._read_events, self.examples):
            try:
                read()
            except StoreDamaged as error:
                messages.append(str(error))
        return messages + self.database_problems()

    def _read_events(self) -> None:
        for _ in self.events():
            pass

    @abstractmethod
    def close(self) -> None:
        """Let go of the store. May be called again."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def encode(body: dict[str, Any]) -> str:
    """The body of an event as it is stored: JSON in ASCII, so that any text fits into any store."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False)


def decode(row: tuple[int, float, str, str, bytes | None, bytes], place: object) -> Event:
    """The event in a row (number, time, kind, body, data, digest) whose checksum is right. Raises
    StoreDamaged where its body is no JSON object.

    place  of the store, for the message
    """
    number, time, kind, encoded_body, data, _ = row
    try:
        body = json.loads(encoded_body)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreDamaged(
            f"event {number} of {place} is damaged: {error}; restore a copy"
        ) from error
    if not isinstance(body, dict):
        raise StoreDamaged(
            f"event {number} of {place} is damaged: it is not what was written; restore a copy"
        )
    return Event(number, time, kind, body, data)


def check_storable(*texts: str) -> None:
    """Raises InputError for text that no store can hold: half of a surrogate pair, as in a file
    name that is not UTF-8.
    """
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{error.object!r} is not valid Unicode and can't be stored: rename it; nothing was "
            "changed"
        ) from None


def check_empty(store: Store, place: object) -> None:
    """Raises StoreError where the store holds anything."""
    last_event = store.last()
    if last_event is None and not store.examples():
        return
    if last_event:
        count = last_event.number
    else:
        count = 0
    raise StoreError(
        f"{place} holds {count} events already: name a place that is empty; nothing was changed"
    )
