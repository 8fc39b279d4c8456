"""Rows of values for some of many positions."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from tailor.selection.columns import extended

#: positions without a row share the first one, which is all zeros
NO_ROW = 0


class SparseRows:
    """A row of `width` values for some of N positions, at the price of one integer for the others.

    Rows are only ever appended: a position that is set again gets a new row, and the old one is
    left behind. So a copy shares all rows that are there and costs no more than its index.

    >>> import numpy as np
    >>> rows = SparseRows(2, np.uint8)
    >>> rows.grow(4)
    >>> rows.set(np.array([3, 1]), np.array([[1, 0], [0, 1]]))
    >>> rows.positions
    array([1, 3])
    >>> rows.get(np.array([1, 2]))
    array([[0, 1],
           [0, 0]], dtype=uint8)
    """

    def __init__(self, width: int, dtype: Any) -> None:
        self._index = np.empty(0, np.int64)  # (N,) the row of each position
        self._rows = np.zeros((1, width), dtype)
        self._used = 1
        # Of an object and its copies one alone may write behind the rows that they share.
        self._owns_unused = True

    def grow(self, count: int) -> None:
        """Add `count` positions without a row."""
        self._index = extended(self._index, count, NO_ROW)

    def copy(self) -> SparseRows:
        twin = copy(self)
        twin._index = self._index.copy()
        twin._owns_unused = False
        return twin

    @property
    def mask(self) -> np.ndarray:
        """(N,) bool: which positions have a row."""
        return self._index != NO_ROW

    @property
    def positions(self) -> np.ndarray:
        """(n,) the positions that have a row, ascending."""
        return np.flatnonzero(self._index)

    def has(self, positions: Any) -> np.ndarray:
        """bool for each of the positions, for a single one, or for each of a slice."""
        index = self._index[positions]
        has_row: np.ndarray = index != NO_ROW
        return has_row

    def get(self, positions: np.ndarray) -> np.ndarray:
        """(n, width) the rows of these positions; zeros where there is none."""
        index = self._index[positions]
        rows: np.ndarray = self._rows[index]
        return rows

    def set(self, positions: np.ndarray, rows: np.ndarray) -> None:
        """Give each of the positions (n,) its row of (n, width)."""
        first = self._used
        needed = first + len(positions)
        has_room = needed <= len(self._rows)
        if not has_room or not self._owns_unused:
            self._make_room(needed)
        self._rows[first:needed] = rows
        self._index[positions] = np.arange(first, needed)
        self._used = needed

    def clear(self, positions: np.ndarray) -> None:
        """These positions have no row any more."""
        self._index[positions] = NO_ROW

    def convert(self, function: Callable[[np.ndarray], np.ndarray]) -> None:
        """Put function(rows) in the place of the rows: (n, width) -> (n, another width), zeros to
        zeros.
        """
        used = self._rows[: self._used]
        # A new array, so that nothing is shared with a copy any more.
        self._rows = function(used)
        self._owns_unused = True

    def _make_room(self, needed: int) -> None:
        # Twice what is needed: rows that are added one by one are moved seldom.
        old_rows = self._rows
        used = self._used
        width = old_rows.shape[1]
        room = max(64, 2 * needed)
        roomier = np.empty((room, width), old_rows.dtype)
        roomier[:used] = old_rows[:used]
        self._rows = roomier
        self._owns_unused = True
