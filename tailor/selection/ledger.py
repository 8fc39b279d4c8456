"""What has happened in a round so far, shared by all of its arms."""

from __future__ import annotations

import numpy as np

from tailor.errors import InputError


class Ledger:
    """Who is free, what was taken in which order, and which labels came during the round.

    Arms read it when they are asked, and are not told of every take: so a take costs the same
    however many arms are open.

    free  (N,) bool: what may be taken as the round begins; copied

    >>> import numpy as np
    >>> ledger = Ledger(np.array([True, False, True]))
    >>> ledger.take(2)
    >>> ledger.taken.tolist(), ledger.left
    ([2], 1)
    """

    def __init__(self, free: np.ndarray) -> None:
        #: (N,) bool: what may be taken now
        self.free = free.copy()
        #: how many are free
        self.left = int(free.sum())
        #: how many were taken
        self.count = 0
        #: (position, label (K,)) as they came; None in place of a label that was withdrawn
        self.revealed: list[tuple[int, np.ndarray | None]] = []
        self._taken = np.empty(64, np.int64)

    @property
    def taken(self) -> np.ndarray:
        """(count,) int64, positions in the order in which they were taken."""
        return self._taken[: self.count]

    def take(self, index: int) -> None:
        """Enter a pick. Raises InputError where the example is not free."""
        if not self.free[index]:
            raise InputError(f"example {index} is not free: it is labelled, taken or set aside")
        if self.count == len(self._taken):
            self._make_room()
        self._taken[self.count] = index
        self.count += 1
        self.left -= 1
        self.free[index] = False

    def _make_room(self) -> None:
        # Twice the room each time, so that a take costs O(1) on average.
        room = len(self._taken)
        roomier = np.empty(2 * room, np.int64)
        roomier[:room] = self._taken
        self._taken = roomier

    def reveal(self, index: int, label: np.ndarray) -> None:
        """The label (K,) of an example has come."""
        self.revealed.append((index, label))

    def withdraw(self, index: int) -> None:
        """An example has no label any more, whether it came in this round or before."""
        self.revealed.append((index, None))
