"""One class's line in memory, and the cursor that takes from the shortest cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from tailor.selection.pool_view import PoolView
from tailor.strategies.base import Cursor, random_free
from tailor.strategies.galaxy.line_builder import LineBuilder, Told
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

    def __init__(
        self,
        builder: LineBuilder,
        klass: int,
        line: LineGraph,
    ) -> None:
        self.builder = builder
        self.klass = klass
        self.line = line
        self._is_whole = builder.pending != "split"

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
        view = self.builder.view
        ((_, column),) = view.columns([self.klass])
        self.line = self.builder.whole_line(column, self.klass)
        # The new line has not heard of this round's takes; with "split" no label counts.
        self.hear(view.ledger.taken, [])

    def hear(self, taken: np.ndarray, labels: Told) -> None:
        """Examples were taken, and labels came."""
        self.builder.mark(
            self.line,
            self.klass,
            taken,
            labels,
        )

    def bytes_held(self) -> int:
        """Memory of the line."""
        examples = len(self.line.ids)
        return self.bytes_on_line * examples


def graphs_in_memory(view: PoolView, pending: str, classes: list[int]) -> Iterable[ClassGraph]:
    """The line of each class, one after another."""
    builder = LineBuilder(view, pending)
    for klass, line in _lines(builder, classes):
        yield ClassGraph(builder, klass, line)


def _lines(builder: LineBuilder, classes: list[int]) -> Iterable[tuple[int, LineGraph]]:
    """(class, its line): whole, or with only the stretches that may hold open cuts."""
    view = builder.view
    if builder.pending != "split":
        for klass, column in view.columns(classes):
            yield klass, builder.whole_line(column, klass)
        return
    # The compiled search below runs on the CPU: here each class is sought on the device.
    if view.device.type != "cpu":
        for klass, column in view.columns(classes):
            yield klass, builder.open_line(column, klass)
        return

    def search_all(search: RangeSearch) -> Found:
        answers = []
        for part in view.chunks():
            answer = search.find(view, part)
            answers.append(answer)
        return search.join(answers)

    ranges = {klass: builder.open_ranges(klass) for klass in classes}
    segments = segments_in_ranges(ranges, search_all)
    for klass, segment in segments.items():
        yield klass, builder.line(segment.ids, klass)


class GalaxyCursor(Cursor):
    """Takes from the graph with the shortest cut; of equal ones from the first class."""

    def __init__(
        self,
        graphs: list[ClassGraph],
        view: PoolView,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(view)
        self._graphs = graphs
        self._rng = rng
        self._seen_labels = 0

    def take(self) -> int:
        self._tell_graphs()
        open_cuts = [graph.shortest_cut() for graph in self._graphs]
        # min() gives the first of equal ones.
        _, index = min(open_cuts, key=_length)
        if index >= 0:
            return index
        near_closed = [graph.nearest_to_closed() for graph in self._graphs]
        _, index = min(near_closed, key=_length)
        if index >= 0:
            return index
        return random_free(self.ledger.free, self.view.free_ids, self._rng)

    def _tell_graphs(self) -> None:
        """What the ledger has that is new."""
        taken = self.unseen()
        revealed = self.ledger.revealed
        labels = revealed[self._seen_labels :]
        self._seen_labels = len(revealed)
        for graph in self._graphs:
            graph.hear(taken, labels)

    def bytes_held(self) -> int:
        return sum(graph.bytes_held() for graph in self._graphs)


def _length(cut: tuple[int, int]) -> float:
    """Of a cut, or a distance from one; infinite where there is none."""
    length, index = cut
    if index < 0:
        return np.inf
    return length
