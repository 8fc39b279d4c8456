"""The interface of a pool: ids, and examples that are read by position."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tailor.errors import InputError


@dataclass(frozen=True)
class Unreadable:
    """Stands in the place of an example that could not be read. It is set aside; the run goes on.

    reason  one phrase for the user, such as "missing" or "not an image"
    """

    reason: str


class Pool(ABC):
    """A source of examples, each under an id that the user knows: a relative path, the value of a
    key column, or the row number as text.

    Positions run from 0 to len(pool) - 1 in the order of `ids`. `refresh` appends entries that
    appeared later, so a position once given never changes. Examples are read when asked for; a pool
    never holds them all in memory.

    A subclass sets `kind` and implements `ids` and `read`; everything else is optional.

    >>> import numpy as np
    >>> class Squares(Pool):
    ...     kind = "vector"
    ...     ids = ["one", "two", "three"]
    ...
    ...     def read(self, positions):
    ...         checked = check_positions(positions, len(self))
    ...         return [np.array([(p + 1) ** 2], dtype=np.float32) for p in checked]
    >>> Squares().read([2])
    [array([9.], dtype=float32)]
    """

    #: What `read` gives: "image" (RGB uint8 array (H, W, 3)), "text" (str) or "vector" (float32
    #: array (d,)).
    kind: str
    #: The longer side of images, in pixels, beyond which `read` shrinks them; None: never.
    max_side: int | None = None

    @property
    @abstractmethod
    def ids(self) -> Sequence[str]:
        """All ids by position; each occurs once."""

    def __len__(self) -> int:
        return len(self.ids)

    @abstractmethod
    def read(self, positions: Sequence[int]) -> list[Any]:
        """The examples at these positions, in the same order; an Unreadable for each that can't be
        read.

        Positions may come in any order and more than once. Raises InputError for one outside
        0 .. len - 1.
        """

    def file(self, position: int) -> str | None:
        """The path of the picture at this position where it is a file of its own, else None.

        Several threads may ask for files and decode them at once, each at the size it needs.
        Raises FileNotFoundError where the picture is gone.
        """
        return None

    def content_keys(self, positions: Sequence[int]) -> list[str] | None:
        """A short key for each example's content that is cheap to get, such as a file's size and
        modification time. Equal keys mean equal content.

        None where the pool has none: features are then cached by the content itself.
        """
        return None

    def refresh(self) -> int:
        """Append entries that appeared since the last look -> how many there were."""
        return 0

    def labels(self) -> dict[str, Any] | None:
        """Known labels for a simulation, by id: a class name (multi-class) or a list of names
        (multi-label). None where the pool has none.
        """
        return None

    def set_aside(self) -> dict[str, str]:
        """Parts of the source that could not be opened as a whole (a broken file, a closed folder),
        by name, with the reason. Their entries have no id yet.

        A single entry that can't be read is an Unreadable instead.
        """
        return {}

    def describe(self) -> dict[str, Any]:
        """Plain values from which `open_pool` opens this pool again: {"kind": ..., "path": ...,
        further options}.

        Raises InputError where that is impossible, as for arrays in memory.
        """
        type_name = type(self).__name__
        raise InputError(f"{type_name} can't be opened by name: hand the object in again")


def check_positions(positions: Sequence[int], size: int) -> list[int]:
    """Positions as plain ints. Raises InputError unless each is a whole number from 0 to size - 1.

    >>> check_positions([2, 0], size=3)
    [2, 0]
    """
    checked = []
    for value in positions:
        # Not int(): it would take 2.7 and "2" as well.
        try:
            position = operator.index(value)
        except TypeError:
            raise InputError(f"position {value!r} is not a whole number") from None
        if not 0 <= position < size:
            raise InputError(
                f"position {position} is outside 0 .. {size - 1}: the pool has {size} entries"
            )
        checked.append(position)
    return checked


def check_unique(
    ids: Sequence[str], place: Sequence[str] | Callable[[int], str] | None = None
) -> None:
    """Raises InputError where an id occurs twice; the message names both entries.

    place  where each entry comes from, by position: a sequence, or a function called for the two
           entries of the message alone
    """
    distinct_ids = set(ids)
    if len(distinct_ids) == len(ids):
        return
    first, second = _first_duplicate(ids)
    if place is None:
        entries = f"entries {first} and {second}"
    elif callable(place):
        # Called here alone: naming each of a million entries would take a while.
        entries = f"{place(first)} and {place(second)}"
    else:
        entries = f"{place[first]} and {place[second]}"
    raise InputError(f"id {ids[second]!r} is there twice: {entries}; give each entry its own id")


def _first_duplicate(ids: Sequence[str]) -> tuple[int, int]:
    """The positions of the first id that occurs a second time; there must be one."""
    first_position: dict[str, int] = {}
    for position, example_id in enumerate(ids):
        first = first_position.setdefault(example_id, position)
        if first != position:
            return first, position
    raise AssertionError("every id is there once")


def row_numbers(first: int, count: int) -> list[str]:
    """Ids of rows that have no others: their numbers as text.

    >>> row_numbers(7, 2)
    ['7', '8']
    """
    rows = range(first, first + count)
    return [str(row) for row in rows]


def ids_or_row_numbers(given_ids: Iterable[Any] | None, size: int) -> list[str]:
    """The ids of `size` rows, as text: those given, else the rows' numbers.

    Raises InputError where there are more or fewer ids than rows, or where one occurs twice.

    >>> ids_or_row_numbers(None, 2)
    ['0', '1']
    """
    if given_ids is None:
        return row_numbers(0, size)
    ids = [str(example_id) for example_id in given_ids]
    count = len(ids)
    if count != size:
        raise InputError(f"{count} ids for {size} rows: give one id a row")
    check_unique(ids)
    return ids


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that have a value.

    >>> without_none({"key": "id", "label": None})
    {'key': 'id'}
    """
    present = {}
    for name, value in options.items():
        if value is not None:
            present[name] = value
    return present


def shortened(names: Sequence[str], most: int = 8) -> str:
    """A list of names for a message, at most so many of them.

    >>> shortened(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    if not names:
        return "(none)"
    listed = ", ".join(names[:most])
    unlisted = len(names) - most
    if unlisted > 0:
        return f"{listed} and {unlisted} more"
    return listed
