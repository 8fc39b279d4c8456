"""What must not be lost: an append-only list of events, and the ids behind the positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tailor.errors import TailorError


class StoreError(TailorError):
    """The store can't be read or written. What was acknowledged before is untouched."""


class Busy(StoreError):
    """Another process is writing to this run."""


@dataclass(frozen=True)
class Event:
    """Something that happened. `body` is plain JSON; `data` holds arrays that would be wasteful as text."""

    number: int  # 1, 2, ...: the order of all events
    time: float  # seconds since 1970
    kind: str
    body: dict[str, Any]
    data: bytes | None = None


class Store(ABC):
    """Events of one run. One process writes at a time; any may read.

    append() returns when the event is safe: after a crash at any later moment it is there.
    """

    @abstractmethod
    def append(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> int:
        """Add an event; its number."""

    @abstractmethod
    def add_examples(self, ids: Sequence[str]) -> None:
        """New ids, at the positions that follow the last, with an event "examples" that counts them; all or none."""

    @abstractmethod
    def events(self, after: int = 0) -> Iterator[Event]:
        """Events in order, those with a number above `after`."""

    @abstractmethod
    def examples(self) -> list[str]:
        """All ids by position."""

    @abstractmethod
    def close(self) -> None:
        """Let go. Idempotent."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
