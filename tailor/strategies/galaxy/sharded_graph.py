"""One class's line over shards: each shard sends only the examples that can lie in a cut, and the
line is put together here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tailor.selection.pool_view import PoolView, ShardVisitor
from tailor.strategies.galaxy.class_graph import ClassGraph
from tailor.strategies.galaxy.line_builder import LineBuilder, Told
from tailor.strategies.galaxy.line_graph import LineGraph
from tailor.strategies.galaxy.line_segment import LineSegment, join_segments, line_key
from tailor.strategies.galaxy.marks import FREE
from tailor.task import MultiClass

#: how far from a closed cut the search for a free example looks at first, by rank
REACH = 64

#: labelled negatives, and the labelled positive next above each, with whatever lies between
Cuts = tuple[LineSegment, LineSegment]


class AroundCuts:
    """A job for the shards: for each class all examples from `reach` ranks below to `reach` ranks
    above each of its cuts.

    Ranks within some rows are no larger than ranks within all: so what a part keeps holds all that
    the pool would keep, and keeping again where parts are joined is exact.

    classes  of the lines
    cuts     of each class
    reach    of each class
    """

    def __init__(
        self,
        classes: list[int],
        cuts: list[Cuts],
        reach: list[int],
    ) -> None:
        self._classes = classes
        self._cuts = cuts
        self._reach = reach

    def __call__(self, part: PoolView) -> list[LineSegment]:
        ids = _on_the_line(part)
        is_multiclass = isinstance(part.task, MultiClass)
        row_max = np.empty(0)
        if is_multiclass:
            all_max = part.row_max.cpu().numpy()
            row_max = all_max[ids]
        segments = list[LineSegment]()
        columns = part.columns(self._classes)
        for number, (_, column) in enumerate(columns):
            all_probs = column.cpu().numpy()
            prob = all_probs[ids]
            key = prob
            if is_multiclass:
                key = line_key(prob, row_max)
            segment = LineSegment(
                ids=ids + part.start,
                key=key,
                prob=prob,
                ties=part.ties[ids],
            )
            near_cuts = self._near(number, segment)
            segments.append(near_cuts)
        return segments

    def join(self, answers: list[list[LineSegment]]) -> list[LineSegment]:
        by_class = zip(*answers)
        joined = list[LineSegment]()
        for number, segments in enumerate(by_class):
            segment = join_segments(segments)
            near_cuts = self._near(number, segment)
            joined.append(near_cuts)
        return joined

    def _near(self, number: int, segment: LineSegment) -> LineSegment:
        """What of a segment lies around the cuts of a class, sorted."""
        line = segment.sorted()
        is_near = np.zeros(len(line), bool)
        for first, end in self._windows(number, line):
            # A window that begins before the line would count from its end.
            start = max(0, first)
            is_near[start:end] = True
        return line[is_near]

    def _windows(self, number: int, segment: LineSegment) -> list[tuple[int, int]]:
        """(first, one past the last) around each cut; below 0 or above the size where the line
        itself ends there.
        """
        below, above = self._cuts[number]
        reach = self._reach[number]
        firsts = segment.places_of(below) - reach
        past_cuts = segment.places_of(above) + 1
        ends = past_cuts + reach
        windows = zip(firsts.tolist(), ends.tolist())
        return list(windows)

    def line(
        self,
        number: int,
        segment: LineSegment,
        builder: LineBuilder,
    ) -> LineGraph:
        """The line around the cuts. Where it breaks off before the pool does, a stand-in without an
        id is free: when it comes up, the search must reach further.
        """
        ids = self._with_stand_ins(number, segment)
        is_example = ids >= 0
        examples = ids[is_example]
        kind = np.full(len(ids), FREE, np.int8)
        kind[is_example] = builder.kind[examples]
        klass = self._classes[number]
        label = np.zeros(len(ids), np.int8)
        label[is_example] = builder.labels(examples, klass)
        return LineGraph(ids, kind, label)

    def _with_stand_ins(self, number: int, segment: LineSegment) -> np.ndarray:
        """(s,) int64: the ids around the cuts, a stand-in wherever the line breaks off."""
        pieces = list[np.ndarray]()
        covered = 0
        breaks = 0
        for first, end in self._windows(number, segment):
            is_apart = first >= covered
            # The first window may begin where the line itself does.
            begins_inside = bool(pieces) or first >= 0
            if is_apart and begins_inside:
                breaks += 1
                pieces.append(_stand_in(breaks))
            start = max(first, covered, 0)
            piece = segment.ids[start:end]
            pieces.append(piece)
            covered = max(covered, end)
        if covered <= len(segment):
            pieces.append(_stand_in(breaks + 1))
        return np.concatenate(pieces)


def _on_the_line(part: PoolView) -> np.ndarray:
    """(s,) int64: what is free, labelled or pending, ascending."""
    on_line = part.free.copy()
    on_line[part.labelled] = True
    on_line[part.pending] = True
    return np.flatnonzero(on_line)


def _stand_in(number: int) -> np.ndarray:
    """Ids below 0 are no example's; each stand-in has its own."""
    return np.array([-number], np.int64)


class ShardedGraph(ClassGraph):
    """One class's line over shards: open cuts lie on `line`; around closed cuts a second line is
    made when one is asked for, and again, reaching further, when it is used up.
    """

    bytes_on_line: ClassVar[int] = 70

    #: graphs that one cursor takes from: what they look for, they look for in one visit
    together: Sequence[ShardedGraph]

    def __init__(
        self,
        builder: LineBuilder,
        shards: ShardVisitor,
        klass: int,
        line: LineGraph,
    ) -> None:
        super().__init__(builder, klass, line)
        self.shards = shards
        self.reach = REACH
        self.together = [self]
        self._around: LineGraph | None = None

    def hear(self, taken: np.ndarray, labels: Told) -> None:
        super().hear(taken, labels)
        if self._around is not None:
            self.builder.mark(
                self._around,
                self.klass,
                taken,
                labels,
            )

    def nearest_to_closed(self) -> tuple[int, int]:
        while True:
            if self._around is None:
                self._look_around()
            assert self._around is not None
            distance, index = self._around.nearest_to_closed()
            if distance < 0 or index >= 0:
                return distance, index
            # A stand-in is nearest: an example beyond the line's end may be nearer.
            self.reach *= 4
            self._around = None

    def _look_around(self) -> None:
        """One visit to the shards for all graphs that lack a line around their closed cuts."""
        searching = list[ShardedGraph]()
        classes = list[int]()
        cuts = list[Cuts]()
        reach = list[int]()
        for graph in self.together:
            if graph._around is not None:
                continue
            # A graph without cuts keeps this one, so that it does not ask again.
            graph._around = _empty_line()
            below, above = graph.cuts()
            if len(below) == 0:
                continue
            searching.append(graph)
            classes.append(graph.klass)
            cuts.append((below, above))
            reach.append(graph.reach)
        if not searching:
            return
        around = AroundCuts(classes, cuts, reach)
        segments = self.shards.visit(around)
        ledger = self.builder.view.ledger
        with_segments = zip(searching, segments, strict=True)
        for number, (graph, segment) in enumerate(with_segments):
            line = around.line(number, segment, self.builder)
            self.builder.mark(
                line,
                graph.klass,
                ledger.taken,
                ledger.revealed,
            )
            graph._around = line

    def cuts(self) -> Cuts:
        """Labelled negatives, and the labelled positive next above each."""
        line, labels = self.builder.known_line(self.klass)
        turns_positive = np.diff(labels) == 1
        negatives = np.flatnonzero(turns_positive)
        return line[negatives], line[negatives + 1]

    def _has_all_cuts(self, around: LineGraph) -> bool:
        """Whether the two ends of every cut, as they are now, stand on this line with all that lies
        between.
        """
        negatives, positives = self.cuts()
        below = around.places(negatives.ids)
        above = around.places(positives.ids)
        is_off_line = (below < 0) | (above < 0)
        if is_off_line.any():
            return False
        # Stand-ins mark where the line breaks off: none may lie between the two ends.
        is_break = around.ids < 0
        breaks_before = np.cumsum(is_break)
        return np.array_equal(breaks_before[below], breaks_before[above])


def _empty_line() -> LineGraph:
    no_ids = np.empty(0, np.int64)
    nothing = np.empty(0, np.int8)
    return LineGraph(no_ids, kind=nothing, label=nothing)
