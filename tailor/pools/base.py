"""Where examples come from. A pool knows ids and reads examples; it never holds them all in
memory.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tailor.errors import InputError


@dataclass(frozen=True)
class Unreadable:
    """Stands where an example could not be read: it is set aside, and never ends a run."""

    reason: str


class Pool(ABC):
    """Examples under ids that the user knows: a relative path, a key column, or the row number as
    text.

    Positions run from 0 to len - 1 in the order of `ids`. Entries that appear later are appended by
    `refresh`, so a position once given stays.
    """

    #: what `read` gives: "image" (an RGB uint8 array (H, W, 3)), "text" (str) or "vector" (float32
    #: array (d,))
    kind: str

    @property
    @abstractmethod
    def ids(self) -> Sequence[str]:
        """All ids, in order. Each once."""

    def __len__(self) -> int:
        return len(self.ids)

    @abstractmethod
    def read(self, positions: Sequence[int]) -> list[Any]:
        """The examples at these positions, an Unreadable for each that can't be read.

        Positions may come in any order and more than once; one outside 0 .. len - 1 is an
        InputError.
        """

    def file(self, position: int) -> str | None:
        """Where the picture at this position lies on disk as a file of its own; None where there is
        none. Files may be asked for and read by several threads at once, and no larger than each
        needs them.
        """
        return None

    def content_keys(self, positions: Sequence[int]) -> list[str] | None:
        """A short key for the content of each, cheap to get (size and time of a file, a row of a
        file).

        Equal keys, equal content. None where the pool has no such thing: features are cached by the
        content itself.
        """
        return None

    def refresh(self) -> int:
        """Look for new entries and append them; how many there were."""
        return 0

    def labels(self) -> dict[str, Any] | None:
        """Known labels for a simulation, by id: a class name (multi-class) or a list of them. None:
        there are none.
        """
        return None

    def set_aside(self) -> dict[str, str]:
        """Whole parts of the source that could not be opened (a broken file, a closed folder), with
        the reason.

        Their entries have no id yet. A single entry that can't be read is an Unreadable instead.
        """
        return {}

    def describe(self) -> dict[str, Any]:
        """How to open this pool again with `open_pool`, as plain values: {"kind": name, "path":
        ..., ...options}.
        """
        raise InputError(f"{type(self).__name__} can't be opened by name: hand the object in again")


def check_positions(positions: Sequence[int], size: int) -> list[int]:
    """Positions as plain ints, each from 0 to size - 1."""
    checked: list[int] = []
    for given in positions:
        try:
            position = operator.index(given)
        except TypeError:
            raise InputError(f"position {given!r} is not a whole number") from None
        if not 0 <= position < size:
            raise InputError(
                f"position {position} is outside 0 .. {size - 1}: the pool has {size} entries"
            )
        checked.append(position)
    return checked


def check_unique(
    ids: Sequence[str], where: Sequence[str] | Callable[[int], str] | None = None
) -> None:
    """Two entries with one id are an error that names both. where: each entry's place, or how to
    tell it.
    """
    if len(set(ids)) == len(ids):
        return
    first: dict[str, int] = {}
    for position, one in enumerate(ids):
        if one in first:
            a = first[one]
            b = position
            if where is None:
                names = f"entries {a} and {b}"
            else:
                names = " and ".join(where(p) if callable(where) else where[p] for p in (a, b))
            raise InputError(f"id {one!r} is there twice: {names}; give each entry its own id")
        first[one] = position


def some(names: Sequence[str], most: int = 8) -> str:
    """A short list of names for a message."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "(none)"
