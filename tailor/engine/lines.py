"""Galaxy over shards: each shard sends only the examples that can lie in a cut, and the line is put together here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.engine.part import Part
from tailor.strategies.base import Arm, Cursor
from tailor.strategies.galaxy import Board, ClassGraph, Galaxy, GalaxyAll, GalaxyCursor, arrange, line_key
from tailor.strategies.line import FREE, NO_LABEL, Line
from tailor.task import MultiClass

if TYPE_CHECKING:
    from tailor.engine.view import ShardedView

#: how far from a closed cut the search for a free example looks at first, by rank
REACH = 64


@dataclass(frozen=True)
class Stretch:
    """Some examples of one class's line."""

    ids: np.ndarray  # (s,) int64, positions in the pool
    key: np.ndarray  # (s,) what orders the line
    second: np.ndarray  # (s,) the class's probability: it decides between equal keys
    ties: np.ndarray  # (s,) int64: they decide between equal probabilities

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> Stretch:
        return Stretch(self.ids[rows], self.key[rows], self.second[rows], self.ties[rows])

    def sorted(self) -> Stretch:
        return self[arrange(self.key, self.second, self.ties)]

    def place(self, other: Stretch) -> np.ndarray:
        """Where each of `other` stands, or would stand, in this one, which is sorted."""
        found = np.empty(len(other), np.int64)
        for i, (key, second, tie) in enumerate(zip(other.key, other.second, other.ties)):
            low, high = 0, len(self)
            for column, value in ((self.key, key), (self.second, second), (self.ties, tie)):
                run = column[low:high]
                low, high = low + np.searchsorted(run, value), low + np.searchsorted(run, value, side="right")
            found[i] = low
        return found


def joined(found: Sequence[Stretch]) -> Stretch:
    columns = ([getattr(one, field.name) for one in found] for field in fields(Stretch))
    return Stretch(*(np.concatenate(column) for column in columns))


class Between:
    """For each class all examples whose score lies between labelled neighbours that differ."""

    def __init__(self, classes: list[int], lows: list[np.ndarray], highs: list[np.ndarray]) -> None:
        self._classes = np.array(classes, np.int64)
        self._starts = np.concatenate([[0], np.cumsum([len(low) for low in lows])]).astype(np.int64)
        self._lows, self._highs = np.concatenate(lows), np.concatenate(highs)
        self._bottoms, self._tops = (np.array([e[at] for e in ends]) for ends, at in ((lows, 0), (highs, -1)))

    def __call__(self, part: Part) -> tuple[np.ndarray, Stretch]:
        """(which class (s,), the examples)"""
        from tailor.engine.cuts import find_hits

        probs = part.rows(slice(None)).cpu().numpy()
        row_max = part.row_max.cpu().numpy() if isinstance(part.task, MultiClass) else np.empty(0, probs.dtype)
        ends = self._bottoms, self._tops, self._starts, self._lows, self._highs
        rows, which, keys = find_hits(probs, row_max, self._classes, *ends)
        return which, Stretch(rows + part.start, keys, probs[rows, self._classes[which]], part.ties[rows])

    def join(self, found: list[tuple[np.ndarray, Stretch]]) -> tuple[np.ndarray, Stretch]:
        return np.concatenate([which for which, _ in found]), joined([stretch for _, stretch in found])


class Around:
    """For each class all examples from `reach` ranks below to `reach` ranks above each of its cuts.

    A cut is a labelled negative and the labelled positive next above it, with whatever lies between.
    """

    def __init__(self, classes: list[int], cuts: list[tuple[Stretch, Stretch]], reach: list[int]) -> None:
        self._classes, self._cuts, self._reach = classes, cuts, reach

    def __call__(self, part: Part) -> list[Stretch]:
        on = part.on_the_line
        found: list[Stretch] = []
        for _, column in part.columns(self._classes):
            second = column.cpu().numpy()[on]
            multiclass = isinstance(part.task, MultiClass)
            key = line_key(second, part.row_max.cpu().numpy()[on]) if multiclass else second
            found.append(self._near(len(found), Stretch(on + part.start, key, second, part.ties[on])))
        return found

    def join(self, found: list[list[Stretch]]) -> list[Stretch]:
        return [self._near(number, joined(own)) for number, own in enumerate(zip(*found))]

    def _near(self, number: int, stretch: Stretch) -> Stretch:
        stretch = stretch.sorted()
        kept = np.zeros(len(stretch), bool)
        for low, high in self.windows(number, stretch):
            kept[max(0, low) : high] = True
        return stretch[kept]

    def windows(self, number: int, stretch: Stretch) -> list[tuple[int, int]]:
        """(first, one past the last) around each cut; below 0 or above the size where the line itself ends there."""
        below, above = self._cuts[number]
        reach = self._reach[number]
        first, last = stretch.place(below) - reach, stretch.place(above) + 1 + reach
        return list(zip(first.tolist(), last.tolist()))

    def line(self, number: int, stretch: Stretch, board: Board, klass: int) -> Line:
        """The line around the cuts. Where it breaks off before the pool does, a stand-in without an id is free: when
        it comes up, the search must reach further."""
        pieces: list[np.ndarray] = []
        size, end = len(stretch), 0
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
        kind, label = np.full(len(ids), FREE, np.int8), np.zeros(len(ids), np.int8)
        kind[real], label[real] = board.kind[ids[real]], board.labels(ids[real], klass)
        return Line(ids, kind, label)


class ShardedGraph(ClassGraph):
    """One class's line over shards, pending labels split: open cuts lie on `line`; around closed cuts a second line is
    made when one is asked for, and again, reaching further, when it is used up."""

    def __init__(self, board: Board, klass: int, line: Line, together: list[ShardedGraph]) -> None:
        self.board, self.klass, self.line = board, klass, line
        self.reach = REACH
        self._around: Line | None = None
        self._together = together  # graphs that are asked for closed cuts at the same time

    def hear(self, taken: np.ndarray, labels: list[tuple[int, np.ndarray]]) -> None:
        if len(taken):
            unknown = np.full(len(taken), NO_LABEL, np.int8)
            self.line.mark(taken, unknown)
            if self._around is not None:
                self._around.mark(taken, unknown)

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
        waiting = [graph for graph in (self._together or [self]) if graph._around is None]
        cuts = [graph.cuts() for graph in waiting]
        some = [i for i, (below, _) in enumerate(cuts) if len(below)]
        for graph in waiting:
            graph._around = Line(np.empty(0, np.int64), np.empty(0, np.int8), np.empty(0, np.int8))
        if not some:
            return
        around = Around([waiting[i].klass for i in some], [cuts[i] for i in some], [waiting[i].reach for i in some])
        found: list[Stretch] = view.visit(around)
        for number, (i, stretch) in enumerate(zip(some, found, strict=True)):
            line = around.line(number, stretch, self.board, waiting[i].klass)
            line.mark(view.ledger.taken, np.full(view.ledger.count, NO_LABEL, np.int8))
            waiting[i]._around = line

    def cuts(self) -> tuple[Stretch, Stretch]:
        """Labelled negatives, and the labelled positive next above each."""
        view = self.board.view
        key, second, order = self.board.labelled_order(self.klass)
        line = Stretch(view.labelled, key, second, view.ties[view.labelled])[order]
        at = np.flatnonzero(np.diff(self.board.labels(line.ids, self.klass)) == 1)
        return line[at], line[at + 1]


def open_galaxy(
    strategy: Galaxy, arms: Sequence[Arm], view: ShardedView, rngs: Sequence[np.random.Generator]
) -> list[Cursor]:
    """As Galaxy.open, with pending="split"."""
    every = isinstance(strategy, GalaxyAll)
    classes = list(range(view.task.size)) if every else [arm.klass for arm in arms if arm.klass is not None]
    board, together = Board(view, strategy.pending), list[ShardedGraph]()
    lines = _open_lines(board, view, classes)
    graphs = [ShardedGraph(board, k, line, together) for k, line in zip(classes, lines, strict=True)]
    if every:
        together.extend(graphs)
        return [GalaxyCursor(list[ClassGraph](graphs), view, rng) for rng in rngs]
    return [GalaxyCursor([graph], view, rng) for graph, rng in zip(graphs, rngs, strict=True)]


def _open_lines(board: Board, view: ShardedView, classes: list[int]) -> list[Line]:
    """Each class's line with only its open stretches on it: one visit to every shard for all classes."""
    ranges = {}
    for klass in classes:
        keys, _, order = board.labelled_order(klass)
        differ = np.flatnonzero(np.diff(board.labels(view.labelled[order], klass)))
        if len(differ):
            ranges[klass] = keys[order][differ], keys[order][differ + 1]
    lines = {k: board.line(np.empty(0, np.int64), k) for k in classes if k not in ranges}
    if ranges:
        lows, highs = zip(*ranges.values())
        which, found = view.visit(Between(list(ranges), list(lows), list(highs)))
        order = np.argsort(which, kind="stable")
        ends = np.searchsorted(which[order], np.arange(len(ranges) + 1))
        for j, klass in enumerate(ranges):
            lines[klass] = board.line(found[order[ends[j] : ends[j + 1]]].sorted().ids, klass)
    return [lines[k] for k in classes]
