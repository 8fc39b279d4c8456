"""Lines over shards where labels come during the round: a cut that opens elsewhere is fetched when
it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tailor.selection.pool_view import PoolView, ShardVisitor
from tailor.strategies.galaxy.cut_search import LABELLED
from tailor.strategies.galaxy.line_board import OFF_THE_LINE, LineBoard, Told
from tailor.strategies.galaxy.line_segment import (
    LineSegment,
    Ranges,
    join_segments,
    line_key,
    segments_in_ranges,
)
from tailor.strategies.galaxy.sharded_graph import ShardedGraph


class LiveLineBoard(LineBoard):
    """A board whose labelled examples change: by the model's own labels of what is taken, or by
    labels that come and are withdrawn.

    Those that were labelled before the round are in the arrays of LineBoard. Those that came later
    are in arrays of their own, which have room for more.

    graphs  by class
    news    classes that were told of a positive since the last visit to the shards
    """

    def __init__(self, view: PoolView, pending: str) -> None:
        super().__init__(view, pending)
        self.graphs: dict[int, LiveGraph] = {}
        self.news: set[int] = set()
        # Whether each label from before the round has not been withdrawn.
        self._first_stands = np.ones(len(view.labelled), bool)
        # Where each example that came later stands in the arrays below.
        self._place: dict[int, int] = {}
        self._later_rows = np.empty((0, view.task.size), view.labelled_rows.dtype)
        self._later_max = np.empty(0, self._later_rows.dtype)  # the largest of each row
        self._later_labels = np.empty((0, view.task.size), np.int8)
        self._later_stands = np.empty(0, bool)  # whether each has not been withdrawn
        # How much of the ledger was heard.
        self._heard_taken = 0
        self._heard_labels = 0
        if pending == "predicted":
            self._add(view.pending)

    def update(self) -> None:
        """Hear what the ledger has that is new."""
        ledger = self.view.ledger
        if self.pending == "predicted":
            self._add(ledger.taken[self._heard_taken :])
            self._heard_taken = ledger.count
            return
        # Of an example that was told several times the last label counts.
        last_labels = dict[int, np.ndarray | None]()
        for index, label in ledger.revealed[self._heard_labels :]:
            if self.kind[index] != OFF_THE_LINE:
                last_labels[index] = label
        self._heard_labels = len(ledger.revealed)
        later = []
        for index, label in last_labels.items():
            was_labelled = self.kind[index] == LABELLED
            if label is not None and not was_labelled:
                later.append(index)
        self._add(np.array(later, np.int64))
        for index, label in last_labels.items():
            self._enter(index, label)

    def _enter(self, index: int, label: np.ndarray | None) -> None:
        """A label (K,) that came or was corrected, or None where it was withdrawn."""
        if self.kind[index] == LABELLED:  # an earlier round's label is corrected or withdrawn
            labels = self._labels.T
            stands = self._first_stands
            row = self._row[index]
        elif index in self._place:
            labels = self._later_labels
            stands = self._later_stands
            row = self._place[index]
        else:
            return  # withdrawn before it was heard of
        stands[row] = label is not None
        if label is not None:
            labels[row] = label
            positive_classes = np.flatnonzero(label)
            self.news.update(positive_classes.tolist())

    def _add(self, positions: np.ndarray) -> None:
        """Those that are new count as labelled, at first as the model says."""
        new = [position for position in positions.tolist() if position not in self._place]
        if not new:
            return
        first = len(self._place)
        end = first + len(new)
        if end > len(self._later_rows):
            # At least twice as many: adding costs O(1) on average.
            self._make_room(max(64, len(new), first))
        new_positions = np.array(new, np.int64)
        indices = self.view.to_device(new_positions)
        rows = self.view.rows(indices)
        largest = rows.amax(1)
        predicted = self.view.task.predicted(rows)
        self._later_rows[first:end] = rows.cpu().numpy()
        self._later_max[first:end] = largest.cpu().numpy()
        self._later_labels[first:end] = predicted.cpu().numpy()
        self._later_stands[first:end] = True
        places = range(first, end)
        self._place.update(zip(new, places))

    def _make_room(self, more: int) -> None:
        self._later_rows = _longer(self._later_rows, more)
        self._later_max = _longer(self._later_max, more)
        self._later_labels = _longer(self._later_labels, more)
        self._later_stands = _longer(self._later_stands, more)

    def stand_ins(self, taken: np.ndarray, klass: int) -> np.ndarray:
        if self.pending == "predicted":
            rows = [self._place[index] for index in taken.tolist()]
            return self._later_labels[rows, klass]
        return super().stand_ins(taken, klass)

    def known_examples(self, klass: int) -> tuple[LineSegment, np.ndarray]:
        known, labels = super().known_examples(klass)
        ids = np.fromiter(self._place, np.int64)
        count = len(self._place)
        prob = self._later_rows[:count, klass]
        key = prob
        if self.multiclass:
            key = line_key(prob, self._later_max[:count])
        later = LineSegment(
            ids=ids,
            key=key,
            prob=prob,
            ties=self.view.ties[ids],
        )
        later_labels = self._later_labels[:count, klass]
        # What was withdrawn keeps its place in the arrays, and is left out here.
        first_stands = self._first_stands
        later_stands = self._later_stands[:count]
        segment = join_segments(
            [
                known[first_stands],
                later[later_stands],
            ]
        )
        all_labels = np.concatenate(
            [
                labels[first_stands],
                later_labels[later_stands],
            ]
        )
        return segment, all_labels

    def first_ends(self, klass: int) -> Ranges:
        """Between which neighbours cuts are open; where the model's own labels stand in, or can
        open by them.
        """
        if self.pending != "predicted":
            return self.ends(klass)
        line, labels = self.known_line(klass)
        if len(line) == 0:
            return line.key, line.key
        key = np.concatenate([[-1], line.key, [1]])  # no key lies beyond these ends
        key = key.astype(line.key.dtype)
        # Above this key the model's own label, which stands in there, is positive.
        threshold = 0 if self.multiclass else 0.5
        likely = key > threshold
        known_labels = np.concatenate([[0], labels, [1]])
        is_odd = known_labels != likely
        changes = np.diff(known_labels) | np.diff(likely)
        can_open = changes | is_odd[1:] | is_odd[:-1]
        neighbours = np.flatnonzero(can_open)
        return key[neighbours], key[neighbours + 1]


def _longer(array: np.ndarray, more: int) -> np.ndarray:
    """With room for so many more rows at its end."""
    shape = (more, *array.shape[1:])
    room = np.empty_like(array, shape=shape)
    return np.concatenate([array, room])


class LiveGraph(ShardedGraph):
    """One class's line over shards. What is on it was fetched as a cut opened there; the ranges are
    remembered.

    fetched  the ranges of keys that were searched
    segment  what was found there, sorted
    """

    # A line that grows is put together anew, for a moment beside the old one.
    bytes_on_line: ClassVar[int] = 85

    board: LiveLineBoard
    together: Sequence[LiveGraph]

    def __init__(
        self,
        board: LiveLineBoard,
        shards: ShardVisitor,
        klass: int,
        fetched: Ranges,
        segment: LineSegment,
    ) -> None:
        line = board.line(segment.ids, klass)
        super().__init__(board, shards, klass, line)
        self._segment = segment
        # Whether every open cut lies on the line.
        self._is_sure = True
        board.graphs[klass] = self
        # Ascending lows, and of each the highest high so far.
        self._low, self._high = fetched

    def hear(self, taken: np.ndarray, labels: Told) -> None:
        self.board.update()
        super().hear(taken, labels)
        news = taken if self.board.pending == "predicted" else labels
        if len(news):
            self._is_sure = False

    def shortest_cut(self) -> tuple[int, int]:
        if not self._is_sure:
            self._make_sure()
        return super().shortest_cut()

    def _make_sure(self) -> None:
        """One visit to the shards for all cuts that have opened where the lines have nothing yet;
        classes that will probably ask next come along.
        """
        board = self.board
        unsure = [graph for graph in self.together if not graph._is_sure]
        missing = {graph.klass: graph._missing() for graph in unsure}
        if any(len(low) for low, _ in missing.values()):
            other_classes = board.graphs.keys() - missing.keys()
            likely_next = board.news & other_classes
            for klass in likely_next:
                graph = board.graphs[klass]
                missing[klass] = graph._missing()
            board.news.clear()
            segments = segments_in_ranges(missing, self.shards.visit)
            for klass, segment in segments.items():
                ranges = missing[klass]
                if len(ranges[0]):
                    board.graphs[klass]._extend(ranges, segment)
        for graph in unsure:
            graph._is_sure = True
            around = graph._around
            if around is not None and not graph._has_all_cuts(around):
                graph._around = None

    def _missing(self) -> Ranges:
        """Ranges of open cuts that were not searched yet."""
        low, high = self.board.ends(self.klass)
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
        self._segment = both[first_rows].sorted()
        ledger = self.board.view.ledger
        self.line = self.board.line(self._segment.ids, self.klass)
        self.board.mark(self.line, self.klass, ledger.taken, ledger.revealed)
