"""Makes lines over shards where labels come during the round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailor.selection.pool_view import PoolView
from tailor.strategies.galaxy.line_builder import OFF_THE_LINE, Labelled, LineBuilder
from tailor.strategies.galaxy.line_segment import LineSegment, Ranges, join_segments, line_key
from tailor.strategies.galaxy.marks import LABELLED

if TYPE_CHECKING:
    from tailor.strategies.galaxy.live_graph import LiveGraph


class LiveLineBuilder(LineBuilder):
    """A builder whose labelled examples change: by the model's own labels of what is taken, or by
    labels that come and are withdrawn.

    Those that were labelled before the round are in the arrays of LineBuilder. Those that came
    later are in arrays of their own, which have room for more.

    graphs  by class
    news    classes that were told of a positive since the last visit to the shards
    """

    def __init__(self, view: PoolView, pending: str) -> None:
        super().__init__(view, pending)
        self.graphs: dict[int, LiveGraph] = {}
        self.news: set[int] = set()
        # Whether each label from before the round has not been withdrawn.
        first_count = len(view.labelled)
        self._first_stands = np.ones(first_count, bool)
        # Where each example that came later stands in the arrays below.
        self._place: dict[int, int] = {}
        shape = (0, view.task.size)
        dtype = view.labelled_rows.dtype
        self._later_rows = np.empty(shape, dtype)
        self._later_max = np.empty(0, dtype)  # the largest of each row
        self._later_labels = np.empty(shape, np.int8)
        self._later_stands = np.empty(0, bool)  # whether each has not been withdrawn
        # How much of the ledger was heard.
        self._heard_taken = 0
        self._heard_labels = 0
        if pending == "predicted":
            self._add(view.pending)

    def update(self) -> None:
        """Hear what the ledger has that is new."""
        if self.pending == "predicted":
            self._hear_taken()
        else:
            self._hear_labels()

    def _hear_taken(self) -> None:
        ledger = self.view.ledger
        new = ledger.taken[self._heard_taken :]
        self._add(new)
        self._heard_taken = ledger.count

    def _hear_labels(self) -> None:
        revealed = self.view.ledger.revealed
        new = revealed[self._heard_labels :]
        self._heard_labels = len(revealed)
        # Of an example that was told several times the last label counts.
        last_labels: dict[int, np.ndarray | None] = {}
        for index, label in new:
            kind = self.kind[index]
            if kind == OFF_THE_LINE:
                continue
            last_labels[index] = label
        # All rows are read together, before any label is entered in its place.
        later = []
        for index, label in last_labels.items():
            if label is None:
                continue
            kind = self.kind[index]
            if kind == LABELLED:
                continue
            later.append(index)
        positions = np.array(later, np.int64)
        self._add(positions)
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
        if label is None:
            stands[row] = False
            return
        stands[row] = True
        labels[row] = label
        positive_classes = np.flatnonzero(label)
        self.news.update(positive_classes.tolist())

    def _add(self, positions: np.ndarray) -> None:
        """Those that are new count as labelled, at first as the model says."""
        new = []
        for position in positions.tolist():
            if position not in self._place:
                new.append(position)
        if not new:
            return
        first = len(self._place)
        end = first + len(new)
        if end > len(self._later_rows):
            # At least twice as many: adding costs O(1) on average.
            room = max(64, len(new), first)
            self._make_room(room)
        part = slice(first, end)
        self._fill(part, new)
        places = range(first, end)
        self._place.update(zip(new, places))

    def _fill(self, part: slice, positions: list[int]) -> None:
        """Write the rows and the model's own labels of positions into a part of the arrays."""
        view = self.view
        new_positions = np.array(positions, np.int64)
        indices = view.to_device(new_positions)
        rows = view.rows(indices)
        largest = rows.amax(1)
        predicted = view.task.predicted(rows)
        self._later_rows[part] = rows.cpu().numpy()
        self._later_max[part] = largest.cpu().numpy()
        self._later_labels[part] = predicted.cpu().numpy()
        self._later_stands[part] = True

    def _make_room(self, count: int) -> None:
        self._later_rows = _longer(self._later_rows, count)
        self._later_max = _longer(self._later_max, count)
        self._later_labels = _longer(self._later_labels, count)
        self._later_stands = _longer(self._later_stands, count)

    def stand_ins(self, taken: np.ndarray, klass: int) -> np.ndarray:
        if self.pending != "predicted":
            return super().stand_ins(taken, klass)
        # The rows of what was taken were read when the ledger was heard.
        rows = []
        for index in taken.tolist():
            row = self._place[index]
            rows.append(row)
        return self._later_labels[rows, klass]

    def known_examples(self, klass: int) -> Labelled:
        first, first_labels = super().known_examples(klass)
        later, later_labels = self._later_examples(klass)
        # What was withdrawn keeps its place in the arrays, and is left out here.
        first_stands = self._first_stands
        later_stands = self._later_stands[: len(later)]
        segment = join_segments(
            [
                first[first_stands],
                later[later_stands],
            ]
        )
        labels = np.concatenate(
            [
                first_labels[first_stands],
                later_labels[later_stands],
            ]
        )
        return segment, labels

    def _later_examples(self, klass: int) -> Labelled:
        """Those that came during the round, withdrawn ones too, and their labels."""
        count = len(self._place)
        ids = np.fromiter(self._place, np.int64)
        prob = self._later_rows[:count, klass]
        key = prob
        if self.multiclass:
            row_max = self._later_max[:count]
            key = line_key(prob, row_max)
        segment = LineSegment(
            ids=ids,
            key=key,
            prob=prob,
            ties=self.view.ties[ids],
        )
        labels = self._later_labels[:count, klass]
        return segment, labels

    def first_ranges(self, klass: int) -> Ranges:
        """Between which neighbours cuts are open; where the model's own labels stand in, or can
        open by them.
        """
        if self.pending != "predicted":
            return self.open_ranges(klass)
        line, labels = self.known_line(klass)
        if len(line) == 0:
            return line.key, line.key
        key = np.concatenate(
            [
                [-1],  # no key lies below this end, nor above the other
                line.key,
                [1],
            ]
        )
        key = key.astype(line.key.dtype)
        # Above this key the model's own label, which stands in there, is positive.
        threshold = 0.5
        if self.multiclass:
            threshold = 0
        likely = key > threshold
        known_labels = np.concatenate(
            [
                [0],
                labels,
                [1],
            ]
        )
        # A known label against the model's word opens a cut beside it as soon as one is taken.
        is_odd = known_labels != likely
        has_odd_end = is_odd[1:] | is_odd[:-1]
        label_changes = np.diff(known_labels)
        likely_changes = np.diff(likely)
        changes = label_changes | likely_changes
        can_open = changes | has_odd_end
        lower = np.flatnonzero(can_open)
        upper = lower + 1
        return key[lower], key[upper]


def _longer(array: np.ndarray, count: int) -> np.ndarray:
    """With room for so many more rows at its end."""
    shape = (count, *array.shape[1:])
    room = np.empty_like(array, shape=shape)
    return np.concatenate([array, room])
