"""Lines over shards where labels come during the round: a cut that opens elsewhere is fetched when
it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tailor.selection.pool_view import ShardVisitor
from tailor.strategies.galaxy.line_builder import Told
from tailor.strategies.galaxy.line_segment import (
    LineSegment,
    Ranges,
    join_segments,
    segments_in_ranges,
)
from tailor.strategies.galaxy.live_line_builder import LiveLineBuilder
from tailor.strategies.galaxy.sharded_graph import ShardedGraph


class LiveGraph(ShardedGraph):
    """One class's line over shards. What is on it was fetched as a cut opened there; the ranges are
    remembered.

    fetched  the ranges of keys that were searched
    segment  what was found there, sorted
    """

    # A line that grows is put together anew, for a moment beside the old one.
    bytes_on_line: ClassVar[int] = 85

    builder: LiveLineBuilder
    together: Sequence[LiveGraph]

    def __init__(
        self,
        builder: LiveLineBuilder,
        shards: ShardVisitor,
        klass: int,
        fetched: Ranges,
        segment: LineSegment,
    ) -> None:
        line = builder.line(segment.ids, klass)
        super().__init__(
            builder,
            shards,
            klass,
            line,
        )
        self._segment = segment
        # Whether every open cut lies on the line.
        self._is_sure = True
        builder.graphs[klass] = self
        # Ascending lows, and of each the highest high so far.
        low, high = fetched
        self._low = low
        self._high = high

    def hear(self, taken: np.ndarray, labels: Told) -> None:
        self.builder.update()
        super().hear(taken, labels)
        # What is taken has a label at once where the model's own stands in.
        if self.builder.pending == "predicted":
            new_labels = len(taken)
        else:
            new_labels = len(labels)
        if new_labels:
            self._is_sure = False

    def shortest_cut(self) -> tuple[int, int]:
        if not self._is_sure:
            self._make_sure()
        return super().shortest_cut()

    def _make_sure(self) -> None:
        """One visit to the shards for all cuts that have opened where the lines have nothing
        yet.
        """
        unsure = []
        missing = dict[int, Ranges]()
        is_any_missing = False
        for graph in self.together:
            if graph._is_sure:
                continue
            low, high = graph._missing()
            missing[graph.klass] = (low, high)
            unsure.append(graph)
            if len(low):
                is_any_missing = True
        if is_any_missing:
            self._fetch(missing)
        for graph in unsure:
            graph._is_sure = True
            around = graph._around
            if around is None:
                continue
            if not graph._has_all_cuts(around):
                graph._around = None

    def _fetch(self, missing: dict[int, Ranges]) -> None:
        """Extend the lines by these ranges, by class; classes that will probably ask next come
        along.
        """
        builder = self.builder
        other_classes = builder.graphs.keys() - missing.keys()
        likely_next = builder.news & other_classes
        for klass in likely_next:
            graph = builder.graphs[klass]
            missing[klass] = graph._missing()
        builder.news.clear()
        segments = segments_in_ranges(missing, self.shards.visit)
        for klass, segment in segments.items():
            low, high = missing[klass]
            if len(low):
                graph = builder.graphs[klass]
                graph._extend((low, high), segment)

    def _missing(self) -> Ranges:
        """Ranges of open cuts that were not searched yet."""
        low, high = self.builder.open_ranges(self.klass)
        if len(self._low) == 0:
            return low, high
        # The last fetched range that begins at or below each, -1 where there is none.
        before = np.searchsorted(self._low, low, side="right") - 1
        begins_outside = before < 0
        ends_outside = high > self._high[before]
        is_missing = begins_outside | ends_outside
        return low[is_missing], high[is_missing]

    def _extend(self, fetched: Ranges, segment: LineSegment) -> None:
        """Put on the line what was found in more ranges."""
        new_low, new_high = fetched
        low = np.concatenate([self._low, new_low])
        high = np.concatenate([self._high, new_high])
        order = np.argsort(low)
        self._low = low[order]
        self._high = np.maximum.accumulate(high[order])
        both = join_segments([self._segment, segment])
        # Ranges may overlap: each example once.
        _, first_rows = np.unique(both.ids, return_index=True)
        unique_rows = both[first_rows]
        self._segment = unique_rows.sorted()
        self.line = self.builder.line(self._segment.ids, self.klass)
        # The new line has heard of nothing yet: it is told all of the round so far.
        ledger = self.builder.view.ledger
        self.builder.mark(
            self.line,
            self.klass,
            ledger.taken,
            ledger.revealed,
        )
