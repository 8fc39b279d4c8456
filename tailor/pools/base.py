"""Where examples come from. A pool knows ids and reads examples; it never holds them all in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tailor.errors import InputError


@dataclass(frozen=True)
class Unreadable:
    """Stands where an example could not be read: it is set aside, and never ends a run."""

    reason: str


class Pool(ABC):
    """Examples under ids that the user knows: a relative path, a key column, or the row number as text.

    Positions run from 0 to len - 1 in the order of `ids`. Entries that appear later are appended by `refresh`, so a
    position once given stays.
    """

    #: what `read` gives: "image" (an RGB uint8 array (H, W, 3)), "text" (str) or "vector" (float32 array (d,))
    kind: ClassVar[str]

    @property
    @abstractmethod
    def ids(self) -> Sequence[str]:
        """All ids, in order. Each once."""

    def __len__(self) -> int:
        return len(self.ids)

    @abstractmethod
    def read(self, positions: Sequence[int]) -> list[Any]:
        """The examples at these positions, an Unreadable for each that can't be read."""

    def content_keys(self, positions: Sequence[int]) -> list[str] | None:
        """A short key for the content of each, cheap to get (size and time of a file, a row of a file): equal keys, equal
        content. None where the pool has no such thing; then features are cached by the content itself."""
        return None

    def refresh(self) -> int:
        """Look for new entries and append them; how many there were."""
        return 0

    def labels(self) -> dict[str, Any] | None:
        """Known labels for a simulation, by id: a class name (multi-class) or a list of them. None where there are none."""
        return None

    def describe(self) -> dict[str, Any]:
        """How to open this pool again, as plain values: {"kind": name, ...options}."""
        raise InputError(f"{type(self).__name__} can't be opened by name: hand the object in again")


def check_unique(ids: Sequence[str], where: Sequence[str] | None = None) -> None:
    """Two entries with one id are an error that names both."""
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    for position, one in enumerate(ids):
        if one in first:
            a, b = first[one], position
            names = f"{where[a]} and {where[b]}" if where else f"entries {a} and {b}"
            raise InputError(f"id {one!r} is there twice: {names}; give each entry its own id")
        first[one] = position
