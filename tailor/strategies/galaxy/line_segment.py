"""Parts of galaxy's lines: how a line is ordered, and which examples can lie in an open cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailor.selection.pool_view import PoolView
from tailor.strategies.galaxy.segment_hits import find_hits
from tailor.task import MultiClass


@dataclass(frozen=True)
class LineSegment:
    """Some examples of one class's line."""

    ids: np.ndarray  # (s,) int64, positions in the pool
    key: np.ndarray  # (s,) what orders the line
    prob: np.ndarray  # (s,) the class's probability: it decides between equal keys
    ties: np.ndarray  # (s,) int64: they decide between equal probabilities

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> LineSegment:
        return LineSegment(
            ids=self.ids[rows],
            key=self.key[rows],
            prob=self.prob[rows],
            ties=self.ties[rows],
        )

    def sorted(self) -> LineSegment:
        """The same examples, lowest first."""
        order = line_order(self.key, self.prob, self.ties)
        return self[order]

    def places_of(self, others: LineSegment) -> np.ndarray:
        """(n,) int64: where each of the others stands, or would stand, in this one, which is
        sorted.
        """
        places = np.empty(len(others), np.int64)
        columns = (self.key, self.prob, self.ties)
        wanted_rows = zip(others.key, others.prob, others.ties)
        for i, wanted in enumerate(wanted_rows):
            low = 0
            high = len(self)
            # Each column narrows the run of those that are equal in the columns before.
            for column, value in zip(columns, wanted):
                run = column[low:high]
                high = low + np.searchsorted(run, value, side="right")
                low = low + np.searchsorted(run, value)
            places[i] = low
        return places


EMPTY_SEGMENT = LineSegment(
    ids=np.empty(0, np.int64),
    key=np.empty(0, np.float32),
    prob=np.empty(0, np.float32),
    ties=np.empty(0, np.int64),
)
#: (low (c,), high (c,)): keys, ascending, high[j] <= low[j + 1]
Ranges = tuple[np.ndarray, np.ndarray]
#: (which of several classes each example was found for (s,), the examples)
Found = tuple[np.ndarray, LineSegment]


def join_segments(segments: Sequence[LineSegment]) -> LineSegment:
    """All examples of several segments, one after another."""
    return LineSegment(
        ids=np.concatenate([segment.ids for segment in segments]),
        key=np.concatenate([segment.key for segment in segments]),
        prob=np.concatenate([segment.prob for segment in segments]),
        ties=np.concatenate([segment.ties for segment in segments]),
    )


class RangeSearch:
    """For each class all examples whose key lies in one of its ranges, ends included.

    One pass over the rows for all classes: O(N) for each, and nothing is sorted but what is found.
    It is a job for the shards too.

    ranges  by class, at least one range for each
    """

    def __init__(self, ranges: dict[int, Ranges]) -> None:
        lows = [low for low, _ in ranges.values()]
        highs = [high for _, high in ranges.values()]
        counts = [len(low) for low in lows]
        ends = np.cumsum(counts)
        self._classes = np.array(list(ranges), np.int64)
        self._starts = np.concatenate([[0], ends]).astype(np.int64)
        self._lows = np.concatenate(lows)
        self._highs = np.concatenate(highs)
        self._bottoms = np.array([low[0] for low in lows])
        self._tops = np.array([high[-1] for high in highs])

    def find(self, view: PoolView, part: slice) -> Found:
        """In a part of a view's rows."""
        if len(self._classes) < view.task.size:
            class_rows = view.rows(part, self._classes)
            columns = np.arange(len(self._classes))
        else:
            # No copy of the rows for all classes.
            class_rows = view.rows(part)
            columns = self._classes
        probs = class_rows.cpu().numpy()
        row_max = np.empty(0, probs.dtype)
        if isinstance(view.task, MultiClass):
            row_max = view.row_max[part].cpu().numpy()
        rows, which, keys = find_hits(
            probs,
            row_max,
            columns,
            self._bottoms,
            self._tops,
            self._starts,
            self._lows,
            self._highs,
        )
        start = view.start + part.start
        ties = view.ties[part]
        segment = LineSegment(
            ids=rows + start,
            key=keys,
            prob=probs[rows, columns[which]],
            ties=ties[rows],
        )
        return which, segment

    def __call__(self, part: PoolView) -> Found:
        return self.find(part, slice(0, part.size))

    def join(self, answers: list[Found]) -> Found:
        which = np.concatenate([numbers for numbers, _ in answers])
        segments = [segment for _, segment in answers]
        return which, join_segments(segments)

    def by_class(self, found: Found) -> dict[int, LineSegment]:
        """Each class's examples, sorted as on its line."""
        which, segment = found
        # As few bits as will do: NumPy sorts 16 of them by radix.
        count = len(self._classes)
        small = which.astype(np.min_scalar_type(count))
        order = np.argsort(small, kind="stable")
        numbers = np.arange(count + 1)
        ends = np.searchsorted(which[order], numbers)
        segments = dict[int, LineSegment]()
        for number, klass in enumerate(self._classes.tolist()):
            first = ends[number]
            end = ends[number + 1]
            of_class = segment[order[first:end]]
            segments[klass] = of_class.sorted()
        return segments


def segments_in_ranges(
    ranges: dict[int, Ranges],
    search: Callable[[RangeSearch], Found],
) -> dict[int, LineSegment]:
    """For each class what lies in its ranges, sorted.

    search: takes the question to every part of the pool, and joins the answers.
    """
    not_empty = dict[int, Ranges]()
    for klass, (low, high) in ranges.items():
        if len(low):
            not_empty[klass] = (low, high)
    segments = dict[int, LineSegment]()
    if not_empty:
        range_search = RangeSearch(not_empty)
        found = search(range_search)
        segments = range_search.by_class(found)
    return {klass: segments.get(klass, EMPTY_SEGMENT) for klass in ranges}


def line_key(column: Any, row_max: Any) -> Any:
    """(n,) the key that orders a class's line in a multi-class task, p_k - max p; numpy or torch.

    Where the class is the most probable one the difference is 0 and p_k decides: p_k > 0 stands in,
    above all others.

    column   (n,) the class's probabilities
    row_max  (n,) the largest probability of each row
    """
    gap = column - row_max
    if isinstance(gap, np.ndarray):
        return np.where(gap >= 0, column, gap)
    return column.where(gap >= 0, gap)


def line_order(key: np.ndarray, prob: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """argsort by (key, prob, ties)."""
    # One fast sort by key; only runs of equal keys are sorted again.
    order = np.argsort(key)
    ranked = key[order]
    same = ranked[1:] == ranked[:-1]
    if not same.any():
        return order
    in_run = np.zeros(len(key), bool)
    in_run[1:] = same
    in_run[:-1] |= same
    begins_run = np.concatenate([[True], ~same])
    run_numbers = np.cumsum(begins_run)
    run = run_numbers[in_run]
    members = order[in_run]
    within_runs = np.lexsort((ties[members], prob[members], run))
    order[in_run] = members[within_runs]
    return order
