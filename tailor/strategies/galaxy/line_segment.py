"""Parts of galaxy's lines: how a line is ordered, and which examples can lie in an open cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tailor.selection.pool_view import PoolView, full_precision
from tailor.strategies.galaxy.segment_hits import find_hits
from tailor.task import MultiClass


@dataclass(frozen=True)
class LineSegment:
    """Some examples of one class's line."""

    ids: np.ndarray  # (s,) int64, positions in the pool
    key: np.ndarray  # (s,) what orders the line
    second: np.ndarray  # (s,) the class's probability: it decides between equal keys
    ties: np.ndarray  # (s,) int64: they decide between equal probabilities

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> LineSegment:
        return LineSegment(self.ids[rows], self.key[rows], self.second[rows], self.ties[rows])

    def sorted(self) -> LineSegment:
        return self[arrange(self.key, self.second, self.ties)]

    def place(self, other: LineSegment) -> np.ndarray:
        """Where each of `other` stands, or would stand, in this one, which is sorted."""
        found = np.empty(len(other), np.int64)
        for i, (key, second, tie) in enumerate(zip(other.key, other.second, other.ties)):
            low = 0
            high = len(self)
            for column, value in ((self.key, key), (self.second, second), (self.ties, tie)):
                run = column[low:high]
                low, high = (
                    low + np.searchsorted(run, value),
                    low + np.searchsorted(run, value, side="right"),
                )
            found[i] = low
        return found


NOTHING = LineSegment(
    np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32), np.empty(0, np.int64)
)
#: (low (c,), high (c,)): scores, ascending, high[j] <= low[j + 1]
Ranges = tuple[np.ndarray, np.ndarray]


def joined(found: Sequence[LineSegment]) -> LineSegment:
    columns = ([getattr(one, field.name) for one in found] for field in fields(LineSegment))
    return LineSegment(*(np.concatenate(column) for column in columns))


class Between:
    """For each class all examples whose score lies in one of its ranges, ends included: one pass
    for all classes.
    """

    def __init__(self, ranges: dict[int, Ranges]) -> None:
        lows, highs = zip(*ranges.values())
        self._classes = np.array(list(ranges), np.int64)
        self._starts = np.concatenate([[0], np.cumsum([len(low) for low in lows])]).astype(np.int64)
        self._lows = np.concatenate(lows)
        self._highs = np.concatenate(highs)
        self._bottoms, self._tops = (
            np.array([e[at] for e in ends]) for ends, at in ((lows, 0), (highs, -1))
        )

    def find(self, view: PoolView, part: slice, first: int) -> tuple[np.ndarray, LineSegment]:
        """(which of the classes (s,), the examples) of a part of a view's rows, the first of which
        has position `first` in the pool.
        """
        block = view.probs[part]
        some = len(self._classes) < view.task.size
        probs = full_precision(block[:, self._classes] if some else block).cpu().numpy()
        columns = np.arange(len(self._classes)) if some else self._classes
        multiclass = isinstance(view.task, MultiClass)
        row_max = view.row_max[part].cpu().numpy() if multiclass else np.empty(0, probs.dtype)
        ends = self._bottoms, self._tops, self._starts, self._lows, self._highs
        rows, which, keys = find_hits(probs, row_max, columns, *ends)
        return which, LineSegment(
            rows + first, keys, probs[rows, columns[which]], view.ties[part][rows]
        )

    def join(self, found: list[tuple[np.ndarray, LineSegment]]) -> tuple[np.ndarray, LineSegment]:
        return np.concatenate([which for which, _ in found]), joined(
            [stretch for _, stretch in found]
        )

    def by_class(self, found: tuple[np.ndarray, LineSegment]) -> dict[int, LineSegment]:
        """Each class's examples, sorted as on its line."""
        which, stretch = found
        order = np.argsort(
            which.astype(np.min_scalar_type(len(self._classes))), kind="stable"
        )  # 16 bits: a radix sort
        ends = np.searchsorted(which[order], np.arange(len(self._classes) + 1))
        return {
            k: stretch[order[ends[j] : ends[j + 1]]].sorted()
            for j, k in enumerate(self._classes.tolist())
        }


def stretches_between(
    ranges: dict[int, Ranges], find: Callable[[Between], tuple[np.ndarray, LineSegment]]
) -> dict[int, LineSegment]:
    """For each class what lies in its ranges, sorted. find: asks every part of the pool, and
    joins.
    """
    some = {k: own for k, own in ranges.items() if len(own[0])}
    found = dict[int, LineSegment]()
    if some:
        between = Between(some)
        found = between.by_class(find(between))
    return {k: found.get(k, NOTHING) for k in ranges}


def line_key(column: Any, row_max: Any) -> Any:
    """(n,) the score that orders a class's line in a multi-class task, p_k - max p; numpy or torch.

    Where the class is the most probable one the difference is 0 and p_k decides: p_k > 0 stands in,
    above all others.
    """
    gap = column - row_max
    return (
        np.where(gap >= 0, column, gap)
        if isinstance(gap, np.ndarray)
        else column.where(gap >= 0, gap)
    )


def arrange(key: np.ndarray, second: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """argsort by (key, second, ties). One fast sort by key; only runs of equal keys are sorted
    again.
    """
    order = np.argsort(key)
    ranked = key[order]
    same = ranked[1:] == ranked[:-1]
    if not same.any():
        return order
    in_run = np.zeros(len(key), bool)
    in_run[1:] = same
    in_run[:-1] |= same
    run = np.cumsum(np.concatenate([[True], ~same]))[in_run]
    members = order[in_run]
    order[in_run] = members[np.lexsort((ties[members], second[members], run))]
    return order
