"""Positions in a pool of several files, whose rows are counted on from file to file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

#: Positions in the pool, by the row in one of its files.
PositionByRow = dict[int, int]


class FileRows:
    """Which row of which file stands at a position.

    counts  the rows of each file, in order

    >>> rows = FileRows([3, 2])
    >>> rows.locate(4)
    (1, 1)
    >>> rows.by_file([4, 0, 3])
    {1: {1: 4, 0: 3}, 0: {0: 0}}
    """

    def __init__(self, counts: Sequence[int] = ()) -> None:
        self.counts = list(counts)
        #: (files + 1,) the position of each file's first row, and the number of all rows
        counts_with_zero = [0, *self.counts]
        self.starts = np.cumsum(counts_with_zero)

    def locate(self, position: int) -> tuple[int, int]:
        """The number of the file and the row in it. Files without rows are passed over."""
        # From the right: of files that start at one position, only the last has rows.
        next_number = np.searchsorted(self.starts, position, side="right")
        number = int(next_number) - 1
        first_position = int(self.starts[number])
        return number, position - first_position

    def by_file(self, positions: Iterable[int]) -> dict[int, PositionByRow]:
        """Positions grouped by the number of their file: {file: {row: position}}."""
        grouped: dict[int, PositionByRow] = {}
        for position in positions:
            number, row = self.locate(position)
            position_by_row = grouped.setdefault(number, {})
            position_by_row[row] = position
        return grouped
