"""One class's line in memory, and the cursor that takes from the shortest cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from tailor.selection.pool_view import PoolView
from tailor.strategies.base import Cursor, random_free
from tailor.strategies.galaxy.line_board import LineBoard, Told
from tailor.strategies.galaxy.line_graph import LineGraph
from tailor.strategies.galaxy.line_segment import Found, RangeSearch, segments_in_ranges


class ClassGraph:
    """One class's line, with only the part that can matter.

    With "split" no label changes during the round, so open cuts can only lie between labelled
    neighbours that differ at its start: the line holds just those stretches, and the rest is left
    out until a closed cut is asked for.
    """

    #: memory that an example on the line takes
    bytes_on_line: ClassVar[int] = 33

    def __init__(self, board: LineBoard, klass: int, line: LineGraph) -> None:
        self.board = board
        self.klass = klass
        self.line = line
        self._is_whole = board.pending != "split"

    def shortest_cut(self) -> tuple[int, int]:
        """(free examples in it, the example in its middle) of the shortest open cut, or (-1,
        -1).
        """
        return self.line.shortest_cut()

    def nearest_to_closed(self) -> tuple[int, int]:
        """(distance by rank, the free example nearest to a closed cut), or (-1, -1) with no closed
        cut.
        """
        if not self._is_whole:
            self._make_whole()
        return self.line.nearest_to_closed()

    def _make_whole(self) -> None:
        """Put every example on the line."""
        self._is_whole = True
        view = self.board.view
        ((_, column),) = view.columns([self.klass])
        self.line = self.board.whole_line(column, self.klass)
        self.hear(view.ledger.taken, [])

    def hear(self, taken: np.ndarray, labels: Told) -> None:
        """Examples were taken, and labels came."""
        self.board.mark(self.line, self.klass, taken, labels)

    def bytes_held(self) -> int:
        """Memory of the line."""
        return self.bytes_on_line * len(self.line.ids)


def graphs_in_memory(view: PoolView, pending: str, classes: list[int]) -> Iterable[ClassGraph]:
    """The line of each class, one after another."""
    board = LineBoard(view, pending)
    if pending != "split":
        for klass, column in view.columns(classes):
            line = board.whole_line(column, klass)
            yield ClassGraph(board, klass, line)
    elif view.device.type != "cpu":
        # The compiled search below runs on the CPU: here each class is sought on the device.
        for klass, column in view.columns(classes):
            line = board.open_line(column, klass)
            yield ClassGraph(board, klass, line)
    else:

        def search_all(search: RangeSearch) -> Found:
            answers = [search.find(view, part) for part in view.chunks()]
            return search.join(answers)

        ranges = {klass: board.ends(klass) for klass in classes}
        segments = segments_in_ranges(ranges, search_all)
        for klass, segment in segments.items():
            line = board.line(segment.ids, klass)
            yield ClassGraph(board, klass, line)


class GalaxyCursor(Cursor):
    """Takes from the graph with the shortest cut; of equal ones from the first class."""

    def __init__(self, graphs: list[ClassGraph], view: PoolView, rng: np.random.Generator) -> None:
        super().__init__(view)
        self._graphs = graphs
        self._rng = rng
        self._seen_labels = 0

    def take(self) -> int:
        taken = self.unseen()
        revealed = self.ledger.revealed
        labels = revealed[self._seen_labels :]
        self._seen_labels = len(revealed)
        for graph in self._graphs:
            graph.hear(taken, labels)
        open_cuts = [graph.shortest_cut() for graph in self._graphs]
        _, index = min(open_cuts, key=_length)
        if index >= 0:
            return index
        near_closed = [graph.nearest_to_closed() for graph in self._graphs]
        _, index = min(near_closed, key=_length)
        if index >= 0:
            return index
        return random_free(
            self.ledger.free,
            self.view.free_ids,
            self._rng,
        )

    def bytes_held(self) -> int:
        return sum(graph.bytes_held() for graph in self._graphs)


def _length(cut: tuple[int, int]) -> float:
    """Of a cut, or a distance from one; infinite where there is none."""
    length, index = cut
    return length if index >= 0 else np.inf
