"""The line graph of galaxy: a sorted pool with walls (labelled or pending examples) and free ones
between them.
"""

from __future__ import annotations

import numpy as np

from tailor.strategies.galaxy import closed_cuts, cut_search
from tailor.strategies.galaxy.bit_set import level_starts
from tailor.strategies.galaxy.cut_search import LineState
from tailor.strategies.galaxy.marks import NO_LABEL

#: (examples in a cut or distance by rank, an example), where there is no such cut
NO_CUT = (-1, -1)


class LineGraph:
    """The line over `ids`, lowest first. Each question costs O(log s).

    ids    (s,) int64: the examples in order
    kind   (s,) int8: FREE, PENDING (taken, label not known) or LABELLED
    label  (s,) int8: 0 or 1 where LABELLED

    >>> import numpy as np
    >>> from tailor.strategies.galaxy.marks import FREE, LABELLED
    >>> kind = np.array([LABELLED, FREE, FREE, FREE, LABELLED], np.int8)
    >>> line = LineGraph(np.array([7, 3, 9, 4, 1]), kind, np.array([0, 0, 0, 0, 1], np.int8))
    >>> line.shortest_cut()
    (3, 9)
    """

    def __init__(
        self,
        ids: np.ndarray,
        kind: np.ndarray,
        label: np.ndarray,
    ) -> None:
        self.ids = ids
        order = np.argsort(ids)
        self._sorted_ids = ids[order]
        self._positions = order
        levels = level_starts(len(ids))
        self._state = LineState(
            kind=kind.copy(),
            below=np.full(len(ids), NO_LABEL, np.int8),
            above=np.full(len(ids), NO_LABEL, np.int8),
            walls=np.zeros(levels[-1], np.uint64),
            frees=np.zeros(levels[-1], np.uint64),
            levels=levels,
        )
        heap = np.empty(64, np.int64)
        self._cuts, self._size = cut_search.build(self._state, label, heap)
        # Free examples near closed cuts; found when they are first asked for.
        self._near: np.ndarray | None = None
        self._near_size = 0

    def mark(self, indices: np.ndarray, labels: np.ndarray) -> None:
        """Examples were taken, or labels came or went.

        indices  (n,) int64; ids that are not on the line are ignored
        labels   (n,) int8 of 0, 1, NO_LABEL or WITHDRAWN
        """
        self._cuts, self._size, relabelled = cut_search.mark(
            self._state,
            self._sorted_ids,
            self._positions,
            self._cuts,
            self._size,
            indices,
            labels,
        )
        if relabelled:
            self._near = None

    def places(self, ids: np.ndarray) -> np.ndarray:
        """(n,) where these stand on the line, -1 where they don't."""
        if len(self.ids) == 0:
            return np.full(len(ids), -1)
        last = len(self.ids) - 1
        insertion_points = np.searchsorted(self._sorted_ids, ids)
        nearest = np.minimum(insertion_points, last)
        on_line = self._sorted_ids[nearest] == ids
        return np.where(on_line, self._positions[nearest], -1)

    def shortest_cut(self) -> tuple[int, int]:
        """(free examples in it, the example in its middle) of the shortest open cut, or NO_CUT."""
        self._size, position, length = cut_search.shortest_cut(self._state, self._cuts, self._size)
        if position < 0:
            return NO_CUT
        example_id = int(self.ids[position])
        return length, example_id

    def nearest_to_closed(self) -> tuple[int, int]:
        """(distance by rank, the free example nearest to a closed cut), or NO_CUT with no closed
        cut.
        """
        if self._near is None:
            self._near, self._near_size = closed_cuts.closed_cuts(self._state)
        self._near_size, position, distance = closed_cuts.nearest_to_closed(
            self._state, self._near, self._near_size
        )
        if position < 0:
            return NO_CUT
        example_id = int(self.ids[position])
        return distance, example_id
