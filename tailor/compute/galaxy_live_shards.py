"""Galaxy over shards where labels come during the round: a cut that opens elsewhere is fetched when
it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailor.compute.galaxy_shards import ShardedGraph, ask
from tailor.strategies.galaxy.family import OFF_THE_LINE, LineBoard, Told
from tailor.strategies.galaxy.line_graph import LABELLED
from tailor.strategies.galaxy.line_segment import (
    LineSegment,
    Ranges,
    joined,
    line_key,
    stretches_between,
)

if TYPE_CHECKING:
    from tailor.compute.sharded_view import ShardedView
    from tailor.selection.pool_view import PoolView


class LiveLineBoard(LineBoard):
    """A board whose labelled examples change: by the model's own labels of what is taken, or by
    labels that come and are withdrawn.
    """

    def __init__(self, view: PoolView, pending: str) -> None:
        super().__init__(view, pending)
        self._place: dict[int, int] = {}  # where those that came later stand in what follows
        self._rows = np.empty((0, view.task.size), view.labelled_rows.dtype)
        self._max = np.empty(0, self._rows.dtype)  # of each row the largest
        self._later = np.empty((0, view.task.size), np.int8)  # labels
        self._later_stands = np.empty(0, bool)  # whether each has not been withdrawn
        self._first_stands = np.ones(
            len(view.labelled), bool
        )  # the same of those labelled before the round
        self._taken = self._told = 0  # of the ledger, heard so far
        self.graphs: dict[int, LiveGraph] = {}
        self.news: set[int] = (
            set()
        )  # classes that were told of a positive since the last visit to the shards
        if pending == "predicted":
            self._add(view.pending)

    def update(self) -> None:
        """Hear what the ledger has that is new."""
        ledger = self.view.ledger
        if self.pending == "predicted":
            self._add(ledger.taken[self._taken :])
            self._taken = ledger.count
            return
        told = {
            index: label
            for index, label in ledger.revealed[self._told :]
            if self.kind[index] != OFF_THE_LINE
        }
        self._told = len(ledger.revealed)
        came = [
            index
            for index, label in told.items()
            if label is not None and self.kind[index] != LABELLED
        ]
        self._add(np.array(came, np.int64))
        for index, label in told.items():
            if self.kind[index] == LABELLED:  # an earlier round's label is corrected or withdrawn
                labels = self._labels.T
                stands = self._first_stands
                at = self._row[index]
            elif index in self._place:
                labels = self._later
                stands = self._later_stands
                at = self._place[index]
            else:
                continue  # withdrawn before it was heard of
            stands[at] = label is not None
            if label is not None:
                labels[at] = label
                self.news.update(np.flatnonzero(label).tolist())

    def _add(self, positions: np.ndarray) -> None:
        """Those that are new count as labelled, at first as the model says."""
        new = np.array([p for p in positions.tolist() if p not in self._place], np.int64)
        first = len(self._place)
        if first + len(new) > len(self._rows):
            room = max(64, len(new), first)
            self._rows, self._max, self._later, self._later_stands = (
                np.concatenate([a, np.empty_like(a, shape=(room, *a.shape[1:]))])
                for a in (self._rows, self._max, self._later, self._later_stands)
            )
        if len(new):
            rows = self.view.rows(self.on_device(new))
            here = slice(first, first + len(new))
            self._rows[here], self._max[here] = rows.cpu().numpy(), rows.amax(1).cpu().numpy()
            self._later[here] = self.view.task.predicted(rows).cpu().numpy()
            self._later_stands[here] = True
            self._place.update(zip(new.tolist(), range(first, here.stop)))

    def stand_ins(self, taken: np.ndarray, klass: int) -> np.ndarray:
        if self.pending == "predicted":
            return self._later[[self._place[index] for index in taken.tolist()], klass]
        return super().stand_ins(taken, klass)

    def _known(self, klass: int) -> tuple[LineSegment, np.ndarray]:
        known, labels = super()._known(klass)
        ids = np.fromiter(self._place, np.int64)
        count = len(self._place)
        second = self._rows[:count, klass]
        key = line_key(second, self._max[:count]) if self.multiclass else second
        later = LineSegment(ids, key, second, self.view.ties[ids])
        stands = self._later_stands[:count]
        first = self._first_stands
        return (
            joined([known[first], later[stands]]),
            np.concatenate([labels[first], self._later[:count, klass][stands]]),
        )

    def first_ends(self, klass: int) -> Ranges:
        """Between which neighbours cuts are open; where the model's own labels stand in, or can
        open by them.
        """
        if self.pending != "predicted":
            return self.ends(klass)
        line, labels = self.known_line(klass)
        if len(line) == 0:
            return line.key, line.key
        key = np.concatenate([[-1], line.key, [1]]).astype(line.key.dtype)  # no score lies beyond
        likely = key > (0 if self.multiclass else 0.5)  # what stands in for a label there
        known = np.concatenate([[0], labels, [1]])
        odd = known != likely
        can_open = np.flatnonzero(np.diff(known) | np.diff(likely) | odd[1:] | odd[:-1])
        return key[can_open], key[can_open + 1]


class LiveGraph(ShardedGraph):
    """One class's line over shards. What is on it was fetched as a cut opened there; the ranges are
    remembered.
    """

    board: LiveLineBoard

    def __init__(
        self, board: LiveLineBoard, klass: int, fetched: Ranges, stretch: LineSegment
    ) -> None:
        super().__init__(board, klass, board.line(stretch.ids, klass))
        self._stretch = stretch
        self._is_sure = True
        board.graphs[klass] = self
        self._low, self._high = fetched  # ascending lows, and of each the highest high so far

    def hear(self, taken: np.ndarray, labels: Told) -> None:
        self.board.update()
        super().hear(taken, labels)
        if len(taken if self.board.pending == "predicted" else labels):
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
        unsure = [g for g in self.together if isinstance(g, LiveGraph) and not g._is_sure]
        missing = {graph.klass: graph._missing() for graph in unsure}
        if any(len(low) for low, _ in missing.values()):
            missing |= {
                k: board.graphs[k]._missing()
                for k in board.news & board.graphs.keys() - missing.keys()
            }
            board.news.clear()
            view: ShardedView = board.view  # type: ignore[assignment]
            for k, stretch in stretches_between(missing, ask(view)).items():
                if len(missing[k][0]):
                    board.graphs[k]._extend(missing[k], stretch)
        for graph in unsure:
            graph._is_sure = True
            if graph._around is not None and not graph._has_all_cuts(graph._around):
                graph._around = None

    def _missing(self) -> Ranges:
        low, high = self.board.ends(self.klass)
        at = np.searchsorted(self._low, low, side="right") - 1
        lacks = (at < 0) | (high > self._high[at]) if len(self._low) else np.ones(len(low), bool)
        return low[lacks], high[lacks]

    def _extend(self, fetched: Ranges, stretch: LineSegment) -> None:
        low, high = (np.concatenate(ends) for ends in zip((self._low, self._high), fetched))
        order = np.argsort(low)
        self._low = low[order]
        self._high = np.maximum.accumulate(high[order])
        both = joined([self._stretch, stretch])
        self._stretch = both[np.unique(both.ids, return_index=True)[1]].sorted()
        ledger = self.board.view.ledger
        self.line = self.board.line(self._stretch.ids, self.klass)
        self.board.mark(self.line, self.klass, ledger.taken, ledger.revealed)
