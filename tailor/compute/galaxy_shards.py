"""Galaxy over shards: each shard sends only the examples that can lie in a cut, and the line is put
together here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tailor.compute.shard_view import ShardView
from tailor.strategies.base import Arm, Cursor
from tailor.strategies.galaxy.family import (
    ClassGraph,
    Galaxy,
    GalaxyAll,
    GalaxyCursor,
    LineBoard,
    Told,
)
from tailor.strategies.galaxy.line_graph import FREE, LineGraph
from tailor.strategies.galaxy.line_segment import (
    Between,
    LineSegment,
    joined,
    line_key,
    stretches_between,
)
from tailor.task import MultiClass

if TYPE_CHECKING:
    from tailor.compute.sharded_view import ShardedView

#: how far from a closed cut the search for a free example looks at first, by rank
REACH = 64


class InParts:
    """Between as a question to every part of the pool."""

    def __init__(self, between: Between) -> None:
        self._between = between
        self.join = between.join

    def __call__(self, part: ShardView) -> tuple[np.ndarray, LineSegment]:
        return self._between.find(part, slice(0, part.size), part.start)


class Around:
    """For each class all examples from `reach` ranks below to `reach` ranks above each of its cuts.

    A cut is a labelled negative and the labelled positive next above it, with whatever lies
    between.
    """

    def __init__(
        self, classes: list[int], cuts: list[tuple[LineSegment, LineSegment]], reach: list[int]
    ) -> None:
        self._classes = classes
        self._cuts = cuts
        self._reach = reach

    def __call__(self, part: ShardView) -> list[LineSegment]:
        on = part.on_the_line
        found: list[LineSegment] = []
        for _, column in part.columns(self._classes):
            second = column.cpu().numpy()[on]
            multiclass = isinstance(part.task, MultiClass)
            key = line_key(second, part.row_max.cpu().numpy()[on]) if multiclass else second
            found.append(
                self._near(len(found), LineSegment(on + part.start, key, second, part.ties[on]))
            )
        return found

    def join(self, found: list[list[LineSegment]]) -> list[LineSegment]:
        return [self._near(number, joined(own)) for number, own in enumerate(zip(*found))]

    def _near(self, number: int, stretch: LineSegment) -> LineSegment:
        stretch = stretch.sorted()
        kept = np.zeros(len(stretch), bool)
        for low, high in self.windows(number, stretch):
            kept[max(0, low) : high] = True
        return stretch[kept]

    def windows(self, number: int, stretch: LineSegment) -> list[tuple[int, int]]:
        """(first, one past the last) around each cut; below 0 or above the size where the line
        itself ends there.
        """
        below, above = self._cuts[number]
        reach = self._reach[number]
        first = stretch.place(below) - reach
        last = stretch.place(above) + 1 + reach
        return list(zip(first.tolist(), last.tolist()))

    def line(self, number: int, stretch: LineSegment, board: LineBoard, klass: int) -> LineGraph:
        """The line around the cuts. Where it breaks off before the pool does, a stand-in without an
        id is free: when it comes up, the search must reach further.
        """
        pieces: list[np.ndarray] = []
        size = len(stretch)
        end = 0
        breaks = 0

        def stand_in() -> None:
            nonlocal breaks
            breaks += 1
            pieces.append(np.array([-breaks], np.int64))

        for low, high in self.windows(number, stretch):
            if low >= end and (pieces or low >= 0):
                stand_in()
            pieces.append(stretch.ids[max(low, end, 0) : high])
            end = max(end, high)
        if end <= size:
            stand_in()
        ids = np.concatenate(pieces)
        real = ids >= 0
        kind = np.full(len(ids), FREE, np.int8)
        label = np.zeros(len(ids), np.int8)
        kind[real], label[real] = board.kind[ids[real]], board.labels(ids[real], klass)
        return LineGraph(ids, kind, label)


class ShardedGraph(ClassGraph):
    """One class's line over shards: open cuts lie on `line`; around closed cuts a second line is
    made when one is asked for, and again, reaching further, when it is used up.
    """

    def __init__(self, board: LineBoard, klass: int, line: LineGraph) -> None:
        self.board = board
        self.klass = klass
        self.line = line
        self.reach = REACH
        self._around: LineGraph | None = None
        self.together: Sequence[ShardedGraph] = [self]  # graphs that are asked at the same time

    def hear(self, taken: np.ndarray, labels: Told) -> None:
        super().hear(taken, labels)
        if self._around is not None:
            self.board.mark(self._around, self.klass, taken, labels)

    def nearest_to_closed(self) -> tuple[int, int]:
        while True:
            if self._around is None:
                self._look_around()
            assert self._around is not None
            distance, index = self._around.nearest_to_closed()
            if distance < 0 or index >= 0:
                return distance, index
            self.reach *= 4
            self._around = None

    def _look_around(self) -> None:
        view: ShardedView = self.board.view  # type: ignore[assignment]
        waiting = [graph for graph in self.together if graph._around is None]
        cuts = [graph.cuts() for graph in waiting]
        some = [i for i, (below, _) in enumerate(cuts) if len(below)]
        for graph in waiting:
            graph._around = LineGraph(
                np.empty(0, np.int64), np.empty(0, np.int8), np.empty(0, np.int8)
            )
        if not some:
            return
        around = Around(
            [waiting[i].klass for i in some],
            [cuts[i] for i in some],
            [waiting[i].reach for i in some],
        )
        found: list[LineSegment] = view.visit(around)
        for number, (i, stretch) in enumerate(zip(some, found, strict=True)):
            line = around.line(number, stretch, self.board, waiting[i].klass)
            self.board.mark(line, waiting[i].klass, view.ledger.taken, view.ledger.revealed)
            waiting[i]._around = line

    def cuts(self) -> tuple[LineSegment, LineSegment]:
        """Labelled negatives, and the labelled positive next above each."""
        line, labels = self.board.known_line(self.klass)
        at = np.flatnonzero(np.diff(labels) == 1)
        return line[at], line[at + 1]

    def _has_all_cuts(self, around: LineGraph) -> bool:
        """Whether the two ends of every cut, as they are now, stand on this line with all that lies
        between.
        """
        breaks = np.cumsum(around.ids < 0)
        places = [around.places(ends.ids) for ends in self.cuts()]
        return all((at >= 0).all() for at in places) and np.array_equal(
            *(breaks[at] for at in places)
        )


def ask(view: ShardedView) -> Callable[[Between], tuple[np.ndarray, LineSegment]]:
    """What finds stretches: a visit to every shard."""
    return lambda between: view.visit(InParts(between))


def open_galaxy(
    strategy: Galaxy, arms: Sequence[Arm], view: ShardedView, rngs: Sequence[np.random.Generator]
) -> list[Cursor]:
    """As Galaxy.open."""
    every = isinstance(strategy, GalaxyAll)
    classes = (
        list(range(view.task.size))
        if every
        else [arm.klass for arm in arms if arm.klass is not None]
    )
    graphs = _graphs(view, strategy.pending, classes)
    if every:
        for graph in graphs:
            graph.together = graphs
        return [GalaxyCursor(list(graphs), view, rng) for rng in rngs]
    return [GalaxyCursor([graph], view, rng) for graph, rng in zip(graphs, rngs, strict=True)]


def _graphs(view: ShardedView, pending: str, classes: list[int]) -> Sequence[ShardedGraph]:
    """One visit to every shard for all classes."""
    from tailor.compute.galaxy_live_shards import LiveGraph, LiveLineBoard

    if pending == "split":
        board = LineBoard(view, pending)
        found = stretches_between({k: board.ends(k) for k in classes}, ask(view))
        return [ShardedGraph(board, k, board.line(found[k].ids, k)) for k in classes]
    live = LiveLineBoard(view, pending)
    ranges = {k: live.first_ends(k) for k in classes}
    found = stretches_between(ranges, ask(view))
    return [LiveGraph(live, k, ranges[k], found[k]) for k in classes]
