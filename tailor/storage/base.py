"""What must not be lost: an append-only list of events, and the ids behind the positions."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tailor.errors import InputError, TailorError


class StoreError(TailorError):
    """The store can't be read or written. What was acknowledged before is untouched."""


class Busy(StoreError):
    """Another process is writing to this run."""


class Away(StoreError):
    """The store can't be reached for now. What was acknowledged is safe; a later call tries again
    by itself.
    """


class Missing(StoreError):
    """There is nothing to read: no run was begun here."""


@dataclass(frozen=True)
class Event:
    """Something that happened. `body` is plain JSON; `data` holds arrays that would be wasteful as
    text.
    """

    number: int  # 1, 2, ...: the order of all events
    time: float  # seconds since 1970
    kind: str
    body: dict[str, Any]
    data: bytes | None = None


class Store(ABC):
    """Events of one run. One process writes at a time; any may read. Threads may share a store.

    append() returns when the event is safe: after a crash at any later moment it is there. Numbers
    have no holes: what was rolled back leaves none. An append that raises was not taken in, but for
    one whose connection broke meanwhile: events() tells.
    """

    @abstractmethod
    def append(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> int:
        """Add an event; its number."""

    @abstractmethod
    def add_examples(self, ids: Sequence[str]) -> None:
        """New ids, at the positions that follow the last, with an event "examples" that counts
        them; all or none.
        """

    @abstractmethod
    def events(self, after: int = 0) -> Iterator[Event]:
        """Events in order, those with a number above `after` that are there when the first is
        taken.
        """

    def find(self, kind: str) -> Iterator[Event]:
        """Events of one kind, in order."""
        return (event for event in self.events() if event.kind == kind)

    @abstractmethod
    def last(self) -> Event | None:
        """The newest event."""

    @abstractmethod
    def examples(self) -> list[str]:
        """All ids by position."""

    @abstractmethod
    def restore(
        self, ids: Sequence[str], events: Iterable[Event], verify: Callable[[], None]
    ) -> None:
        """Everything of another store into this empty one, numbers and times as they were; all or
        none.

        `verify` may read what is here before it counts: where it raises, nothing came in.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go. Idempotent."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def encode(body: dict[str, Any]) -> str:
    """The body of an event as it is kept: JSON in ASCII, so that any text fits into any store."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False)


def decode(row: tuple[int, float, str, str, bytes | None], where: object) -> Event:
    number, at, kind, body, data = row
    try:
        found = json.loads(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(
            f"event {number} of {where} is damaged: {error}; restore a copy"
        ) from error
    plain = isinstance(found, dict) and isinstance(kind, str) and isinstance(at, int | float)
    if not plain or not isinstance(data, bytes | None):
        raise StoreError(
            f"event {number} of {where} is damaged: it is not what was written; restore a copy"
        )
    return Event(number, at, kind, found, data)


def check_text(*texts: str) -> None:
    """Text that no store can hold: half of a surrogate pair, as a file name that is not UTF-8 has
    it.
    """
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError as error:
        text = error.object
        raise InputError(
            f"{text!r} is not valid Unicode and can't be stored: rename it; nothing was changed"
        ) from None


def check_empty(store: Store, where: object) -> None:
    if (last := store.last()) is not None or store.examples():
        count = last.number if last else 0
        raise StoreError(
            f"{where} holds {count} events already: name a place that is empty; nothing was changed"
        )
