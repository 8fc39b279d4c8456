"""Makes the lines of all classes, from the kinds and labels that they share."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tailor.selection.pool_view import COLUMNS, PoolView
from tailor.strategies.galaxy.label_changes import label_changes
from tailor.strategies.galaxy.line_graph import LineGraph
from tailor.strategies.galaxy.line_segment import LineSegment, Ranges, line_key, line_order
from tailor.strategies.galaxy.marks import FREE, LABELLED, NO_LABEL, PENDING, WITHDRAWN
from tailor.task import MultiClass

if TYPE_CHECKING:
    import torch

#: neither free, labelled nor pending: skipped, or set aside
OFF_THE_LINE = -1
#: labels that came during the round, as the ledger keeps them: positions, labels (K,) or None where
#: one was withdrawn
Told = list[tuple[int, np.ndarray | None]]

#: examples of a line, and their labels (n,)
Labelled = tuple[LineSegment, np.ndarray]


class LineBuilder:
    """Makes each class's line, and keeps it up to date: it knows who is on the lines, and the
    labels of all classes.

    pending  what stands for a label that has not arrived: see Galaxy
    kind     (N,) int8: FREE, PENDING, LABELLED or OFF_THE_LINE
    """

    def __init__(self, view: PoolView, pending: str) -> None:
        self.view = view
        self.pending = pending
        self.multiclass = isinstance(view.task, MultiClass)
        self.kind = self._kinds()
        positions, labels = self._first_labels()
        # (K, n), since the labels of a class are read together.
        self._labels = np.ascontiguousarray(labels.T)
        count = len(positions)
        # Where the label of a known example stands among those, (N,).
        row = np.zeros(view.size, np.int64)
        row[positions] = np.arange(count)
        self._row = row
        self._known_count = count
        self._labelled_ties = view.ties[view.labelled]
        # The probabilities that the labelled have of some neighbouring classes, (c, n), and the
        # first of those classes.
        self._block: np.ndarray | None = None
        self._block_first = 0

    def _kinds(self) -> np.ndarray:
        """(N,) int8, before anything is taken in this round."""
        view = self.view
        kind = np.full(view.size, OFF_THE_LINE, np.int8)
        kind[view.free] = FREE
        kind[view.pending] = PENDING
        if self.pending == "predicted":
            # The model's own labels stand for those that have not arrived.
            kind[view.pending] = LABELLED
        kind[view.labelled] = LABELLED
        return kind

    def _first_labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions (n,) of what counts as labelled, and the labels (n, K) int8.

        Those with labels of their own come first.
        """
        view = self.view
        labels = view.labels.astype(np.int8)
        if self.pending != "predicted":
            return view.labelled, labels
        if len(view.pending) == 0:
            return view.labelled, labels
        positions = np.concatenate(
            [
                view.labelled,
                view.pending,
            ]
        )
        stand_ins = self.predicted(view.pending)
        all_labels = np.concatenate([labels, stand_ins])
        return positions, all_labels

    @cached_property
    def _labelled_max(self) -> np.ndarray:
        """(n,) the largest probability of each labelled example; a multi-label task never asks."""
        return self.view.labelled_rows.max(1)

    def labels(self, positions: np.ndarray, klass: int) -> np.ndarray:
        """(n,) int8: labels of a class, 0 where there is none."""
        if self._known_count == 0:
            return np.zeros(len(positions), np.int8)
        rows = self._row[positions]
        class_labels = self._labels[klass]
        labels = class_labels[rows]
        # The row of an example without a label is 0, and what is read there does not count.
        kinds = self.kind[positions]
        is_labelled = kinds == LABELLED
        return labels * is_labelled

    def predicted(self, positions: np.ndarray) -> np.ndarray:
        """(n, K) int8: the model's own labels."""
        view = self.view
        indices = view.to_device(positions)
        rows = view.rows(indices)
        predicted = view.task.predicted(rows)
        on_cpu = predicted.cpu().numpy()
        return on_cpu.astype(np.int8)

    def known_line(self, klass: int) -> Labelled:
        """A class's line with the labelled alone (n), lowest first, and their labels (n,)."""
        segment, labels = self.known_examples(klass)
        order = segment.order()
        line = segment[order]
        return line, labels[order]

    def known_examples(self, klass: int) -> Labelled:
        """As known_line, in any order."""
        prob = self._labelled_column(klass)
        key = prob
        if self.multiclass:
            key = line_key(prob, self._labelled_max)
        segment = LineSegment(
            ids=self.view.labelled,
            key=key,
            prob=prob,
            ties=self._labelled_ties,
        )
        # The labelled come first; after them stand predicted labels of what is pending.
        labels = self._labels[klass]
        return segment, labels[: len(prob)]

    def _labelled_column(self, klass: int) -> np.ndarray:
        """(n,) the probabilities that the labelled have of a class."""
        column = klass % COLUMNS
        first = klass - column
        block = self._block
        if block is None or self._block_first != first:
            # Neighbouring columns are kept, since classes are asked for in turn.
            end = first + COLUMNS
            rows = self.view.labelled_rows
            columns = rows[:, first:end]
            block = np.ascontiguousarray(columns.T)
            self._block = block
            self._block_first = first
        return block[column]

    def open_ranges(self, klass: int) -> Ranges:
        """The keys of labelled neighbours that differ: open cuts lie between them.

        Some that tie with an end but lie outside come along. They do no harm: from one such stretch
        to the next all labels are the same, so what lies there is never in an open cut.
        """
        segment, labels = self.known_examples(klass)
        return label_changes(segment, labels)

    def line(self, ids: np.ndarray, klass: int) -> LineGraph:
        """The line over ids (s,), lowest first; what is set aside is left out."""
        kind = self.kind[ids]
        on_line = kind != OFF_THE_LINE
        ids = ids[on_line]
        labels = self.labels(ids, klass)
        return LineGraph(ids, kind[on_line], labels)

    def mark(
        self,
        line: LineGraph,
        klass: int,
        taken: np.ndarray,
        labels: Told,
    ) -> None:
        """A class's line hears that examples were taken, and that labels came."""
        if len(taken):
            stand_ins = self.stand_ins(taken, klass)
            line.mark(taken, stand_ins)
        if self.pending != "revealed":
            return
        if not labels:
            return
        count = len(labels)
        positions = np.empty(count, np.int64)
        values = np.full(count, WITHDRAWN, np.int8)
        for number, (index, label) in enumerate(labels):
            positions[number] = index
            if label is not None:
                values[number] = label[klass]
        line.mark(positions, values)

    def stand_ins(self, taken: np.ndarray, klass: int) -> np.ndarray:
        """(n,) int8: what stands for the label of an example until it is known."""
        if self.pending == "predicted":
            # On the CPU a tensor shares its array's memory, and this one is the ledger's.
            predicted = self.predicted(taken.copy())
            return predicted[:, klass]
        return np.full(len(taken), NO_LABEL, np.int8)

    def whole_line(self, column: torch.Tensor, klass: int) -> LineGraph:
        """With every example on it. column (N,): the class's probabilities."""
        on_line = self.kind != OFF_THE_LINE
        ids = np.flatnonzero(on_line)
        return self._line_of(ids, column, klass)

    def open_line(self, column: torch.Tensor, klass: int) -> LineGraph:
        """With only what lies between labelled neighbours that differ; sought on the device."""
        view = self.view
        low, high = self.open_ranges(klass)
        if len(low) == 0:
            nothing = np.empty(0, np.int64)
            return self.line(nothing, klass)
        key = column
        if self.multiclass:
            key = line_key(column, view.row_max)
        is_within = _is_within(key, lows=view.to_device(low), highs=view.to_device(high))
        rows = is_within.nonzero().squeeze(1)
        ids = rows.cpu().numpy()
        return self._line_of(ids, column, klass)

    def _line_of(
        self,
        ids: np.ndarray,
        column: torch.Tensor,
        klass: int,
    ) -> LineGraph:
        """The line over some examples, which come in any order."""
        view = self.view
        rows = view.to_device(ids)
        column_part = column[rows]
        prob = column_part.cpu().numpy()
        key = prob
        if self.multiclass:
            row_max = view.row_max[rows]
            key = line_key(prob, row_max.cpu().numpy())
        order = line_order(key, prob, view.ties[ids])
        return self.line(ids[order], klass)


def _is_within(key: torch.Tensor, lows: torch.Tensor, highs: torch.Tensor) -> torch.Tensor:
    """(N,) bool: whether each key lies in one of the ranges, ends included."""
    import torch

    # The last range that begins at or below each key, -1 where there is none.
    number = torch.searchsorted(lows, key, right=True) - 1
    has_range = number >= 0
    any_number = number.clamp(min=0)
    end = highs[any_number]
    return has_range & (key <= end)
