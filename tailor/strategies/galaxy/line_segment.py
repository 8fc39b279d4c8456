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

    def order(self) -> np.ndarray:
        """(s,) int64: the rows, lowest first."""
        return line_order(self.key, self.prob, self.ties)

    def sorted(self) -> LineSegment:
        """The same examples, lowest first."""
        return self[self.order()]

    def places_of(self, others: LineSegment) -> np.ndarray:
        """(n,) int64: where each of the others stands, or would stand, in this one, which is
        sorted.
        """
        columns = (
            self.key,
            self.prob,
            self.ties,
        )
        wanted_rows = zip(others.key, others.prob, others.ties)
        places = np.empty(len(others), np.int64)
        for i, wanted in enumerate(wanted_rows):
            places[i] = _place_of(wanted, columns)
        return places


def _place_of(wanted: tuple[Any, ...], columns: tuple[np.ndarray, ...]) -> int:
    """Where a row stands, or would stand, among rows that are sorted by their columns (s,)."""
    low = 0
    high = len(columns[0])
    # Each column narrows the run of those that are equal in the columns before.
    for column, value in zip(columns, wanted):
        run = column[low:high]
        equal_from = np.searchsorted(run, value)
        equal_to = np.searchsorted(run, value, side="right")
        high = low + int(equal_to)
        low = low + int(equal_from)
    return low


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
        lows = []
        highs = []
        bottoms = []
        tops = []
        starts = [0]
        for low, high in ranges.values():
            lows.append(low)
            highs.append(high)
            # A class's ranges ascend, so these two bound them all.
            bottoms.append(low[0])
            tops.append(high[-1])
            end = starts[-1] + len(low)
            starts.append(end)
        self._classes = np.array(list(ranges), np.int64)
        # The ranges of all classes one after another, and where those of each class start.
        self._starts = np.array(starts, np.int64)
        self._lows = np.concatenate(lows)
        self._highs = np.concatenate(highs)
        self._bottoms = np.array(bottoms)
        self._tops = np.array(tops)

    def find(self, view: PoolView, part: slice) -> Found:
        """In a part of a view's rows."""
        probs, columns = self._class_rows(view, part)
        row_max = np.empty(0, probs.dtype)
        if isinstance(view.task, MultiClass):
            largest = view.row_max[part]
            row_max = largest.cpu().numpy()
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
        hit_columns = columns[which]
        ties = view.ties[part]
        segment = LineSegment(
            ids=rows + start,
            key=keys,
            prob=probs[rows, hit_columns],
            ties=ties[rows],
        )
        return which, segment

    def _class_rows(self, view: PoolView, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """(n, K or fewer) probabilities that have the classes' among them, and the column of
        each class.
        """
        classes = self._classes
        if len(classes) < view.task.size:
            rows = view.rows(part, classes)
            columns = np.arange(len(classes))
        else:
            # No copy of the rows for all classes.
            rows = view.rows(part)
            columns = classes
        return rows.cpu().numpy(), columns

    def __call__(self, part: PoolView) -> Found:
        all_rows = slice(0, part.size)
        return self.find(part, all_rows)

    def join(self, answers: list[Found]) -> Found:
        numbers = []
        segments = []
        for which, segment in answers:
            numbers.append(which)
            segments.append(segment)
        return np.concatenate(numbers), join_segments(segments)

    def by_class(self, answer: Found) -> dict[int, LineSegment]:
        """Each class's examples, sorted as on its line."""
        which, segment = answer
        order, begins = _grouped(which, len(self._classes))
        segments = dict[int, LineSegment]()
        classes = self._classes.tolist()
        for number, klass in enumerate(classes):
            first = begins[number]
            end = begins[number + 1]
            class_rows = order[first:end]
            class_segment = segment[class_rows]
            segments[klass] = class_segment.sorted()
        return segments


def _grouped(which: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """which (s,) below `count` -> the rows (s,) of 0 first, then those of 1, ...; and where each
    begins there, (count + 1,).
    """
    # As few bits as will do: NumPy sorts 16 of them by radix.
    smallest_type = np.min_scalar_type(count)
    small = which.astype(smallest_type)
    order = np.argsort(small, kind="stable")
    in_order = which[order]
    numbers = np.arange(count + 1)
    begins = np.searchsorted(in_order, numbers)
    return order, begins


def segments_in_ranges(
    ranges: dict[int, Ranges], search: Callable[[RangeSearch], Found]
) -> dict[int, LineSegment]:
    """For each class what lies in its ranges, sorted.

    search: takes the question to every part of the pool, and joins the answers.
    """
    not_empty = dict[int, Ranges]()
    # In the order of `ranges`, whether or not a class has any.
    segments = dict[int, LineSegment]()
    for klass, (low, high) in ranges.items():
        segments[klass] = EMPTY_SEGMENT
        if len(low):
            not_empty[klass] = (low, high)
    if not_empty:
        range_search = RangeSearch(not_empty)
        answer = search(range_search)
        segments.update(range_search.by_class(answer))
    return segments


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
    if same.any():
        _sort_runs(
            order,
            same,
            prob,
            ties,
        )
    return order


def _sort_runs(
    order: np.ndarray,
    same: np.ndarray,
    prob: np.ndarray,
    ties: np.ndarray,
) -> None:
    """Sort each run of equal keys by (prob, ties), in place.

    order  (n,) rows by key
    same   (n - 1,) bool: whether the key is that of the row before
    """
    in_run = np.zeros(len(order), bool)
    in_run[1:] = same
    in_run[:-1] |= same
    begins_run = np.concatenate([[True], ~same])
    run_numbers = np.cumsum(begins_run)
    members = order[in_run]
    # lexsort's last key counts most: every member stays in its run.
    sort_keys = (
        ties[members],
        prob[members],
        run_numbers[in_run],
    )
    within_runs = np.lexsort(sort_keys)
    order[in_run] = members[within_runs]
