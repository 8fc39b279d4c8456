"""galaxy: bisection on each class's line graph, and on all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tailor.errors import InputError
from tailor.selection.pool_view import COLUMNS, PoolView
from tailor.strategies.base import MULTI_CLASS, Arm, Cursor, Strategy, random_free
from tailor.strategies.galaxy.label_changes import changes
from tailor.strategies.galaxy.line_graph import (
    FREE,
    LABELLED,
    NO_LABEL,
    PENDING,
    WITHDRAWN,
    LineGraph,
)
from tailor.strategies.galaxy.line_segment import (
    Between,
    LineSegment,
    Ranges,
    arrange,
    line_key,
    stretches_between,
)
from tailor.task import MultiClass

if TYPE_CHECKING:
    import torch

MODES = ("split", "predicted", "revealed")
#: neither free, labelled nor pending: skipped, or set aside
OFF_THE_LINE = -1
#: labels that came during the round, as the ledger keeps them: positions, labels (K,) or None where
#: one was withdrawn
Told = list[tuple[int, np.ndarray | None]]


class Galaxy(Strategy):
    """GALAXY (Zhang et al. 2022), one arm a class.

    Sort the pool by the class's score. Between two neighbouring labelled examples whose labels
    differ lies an open cut: take the middle of the shortest. With no open cut, take the free
    example nearest, by rank, to a closed cut (a negative directly below a positive). With neither,
    take a random one.

    `pending` says what stands for a label that has not arrived: "split" keeps both halves of the
    cut open, "predicted" lets the model's own label stand in, and "revealed" uses each label as it
    comes and splits meanwhile; a label that is withdrawn has never come.
    """

    name = "galaxy"
    per_class = True

    def __init__(self, *, pending: str = "split") -> None:
        if pending not in MODES:
            raise InputError(f"pending is {pending!r}: it must be one of {', '.join(MODES)}")
        self.pending = pending

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        classes = [arm.klass for arm in arms if arm.klass is not None]
        graphs = self.graphs(view, classes)
        return [GalaxyCursor([graph], view, rng) for graph, rng in zip(graphs, rngs, strict=True)]

    def graphs(self, view: PoolView, classes: list[int]) -> Iterable[ClassGraph]:
        board = LineBoard(view, self.pending)
        if self.pending != "split":
            return (
                ClassGraph(board, k, board.whole_line(column, k))
                for k, column in view.columns(classes)
            )
        if view.device.type != "cpu":
            return (
                ClassGraph(board, k, board.open_line(column, k))
                for k, column in view.columns(classes)
            )

        def find(between: Between) -> tuple[np.ndarray, LineSegment]:
            return between.join([between.find(view, part, part.start) for part in view.chunks()])

        stretches = stretches_between({k: board.ends(k) for k in classes}, find)
        return (
            ClassGraph(board, k, board.line(stretch.ids, k)) for k, stretch in stretches.items()
        )


class GalaxyAll(Galaxy):
    """GALAXY as published: one arm that takes the shortest of all classes' shortest cuts."""

    name = "galaxy-all"
    tasks = MULTI_CLASS
    per_class = False

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        return [
            GalaxyCursor(list(self.graphs(view, list(range(view.task.size)))), view, rng)
            for rng in rngs
        ]


class GalaxyCursor(Cursor):
    """Takes from the graph with the shortest cut; of equal ones from the first class."""

    def __init__(self, graphs: list[ClassGraph], view: PoolView, rng: np.random.Generator) -> None:
        super().__init__(view)
        self._graphs = graphs
        self._rng = rng
        self._seen_labels = 0

    def take(self) -> int:
        taken = self.unseen()
        labels = self.ledger.revealed[self._seen_labels :]
        self._seen_labels = len(self.ledger.revealed)
        for graph in self._graphs:
            graph.hear(taken, labels)
        _, index = min((g.shortest_cut() for g in self._graphs), key=_least)
        if index >= 0:
            return index
        _, index = min((g.nearest_to_closed() for g in self._graphs), key=_least)
        if index >= 0:
            return index
        return random_free(self.ledger.free, self.view.free_ids, self._rng)


def _least(found: tuple[int, int]) -> float:
    return found[0] if found[1] >= 0 else np.inf


class LineBoard:
    """What the lines of all classes share: who is on them, and the known labels."""

    def __init__(self, view: PoolView, pending: str) -> None:
        self.view = view
        self.pending = pending
        self.multiclass = isinstance(view.task, MultiClass)
        self.kind = np.where(view.free, FREE, OFF_THE_LINE).astype(np.int8)  # (N,)
        self.kind[view.pending] = PENDING
        self.kind[view.labelled] = LABELLED
        # (n,), (n, K)
        self.known = view.labelled
        labels = view.labels.astype(np.int8)
        if pending == "predicted" and len(view.pending):
            self.kind[view.pending] = LABELLED
            self.known = np.concatenate([view.labelled, view.pending])
            labels = np.concatenate([labels, self.predicted(view.pending)])
        self._labels = np.ascontiguousarray(labels.T)  # (K, n): a class is read at once
        self._row = np.zeros(view.size, np.int64)  # where a known label stands
        self._row[self.known] = np.arange(len(self.known))
        self._labelled_ties = view.ties[view.labelled]
        self._block: tuple[slice, np.ndarray] | None = None

    def labels(self, positions: np.ndarray, klass: int) -> np.ndarray:
        """(n,) int8: labels of a class, 0 where there is none."""
        if len(self.known) == 0:
            return np.zeros(len(positions), np.int8)
        return self._labels[klass][self._row[positions]] * (self.kind[positions] == LABELLED)

    def predicted(self, positions: np.ndarray) -> np.ndarray:
        """(n, K) int8: the model's own labels."""
        rows = self.view.rows(self.on_device(positions))
        return self.view.task.predicted(rows).cpu().numpy().astype(np.int8)

    def known_line(self, klass: int) -> tuple[LineSegment, np.ndarray]:
        """A class's line with the labelled alone (n), lowest first, and their labels (n,)."""
        known, labels = self._known(klass)
        order = arrange(known.key, known.second, known.ties)
        return known[order], labels[order]

    def _known(self, klass: int) -> tuple[LineSegment, np.ndarray]:
        """As known_line, in any order."""
        view = self.view
        second = self._labelled_column(klass)
        key = line_key(second, view.labelled_max) if self.multiclass else second
        return LineSegment(view.labelled, key, second, self._labelled_ties), self._labels[klass][
            : len(second)
        ]

    def _labelled_column(self, klass: int) -> np.ndarray:
        """(n,) what the labelled have of a class. Neighbouring columns are kept, since they are
        asked for in turn.
        """
        block = slice(klass - klass % COLUMNS, klass - klass % COLUMNS + COLUMNS)
        if self._block is None or self._block[0] != block:
            self._block = block, np.ascontiguousarray(self.view.labelled_rows[:, block].T)
        return self._block[1][klass - block.start]

    def ends(self, klass: int) -> Ranges:
        """The scores of labelled neighbours that differ.

        Some that tie with an end but lie outside come along. They do no harm: from one such stretch
        to the next all labels are the same, so what lies there is never in an open cut.
        """
        return changes(*self._known(klass))

    def line(self, ids: np.ndarray, klass: int) -> LineGraph:
        """The line over ids (s,), lowest first; what is set aside is left out."""
        kind = self.kind[ids]
        on = kind != OFF_THE_LINE
        return LineGraph(ids[on], kind[on], self.labels(ids[on], klass))

    def mark(self, line: LineGraph, klass: int, taken: np.ndarray, labels: Told) -> None:
        """A class's line hears that examples were taken, and that labels came."""
        if len(taken):
            line.mark(taken, self.stand_ins(taken, klass))
        if labels and self.pending == "revealed":
            known = np.array(
                [WITHDRAWN if label is None else label[klass] for _, label in labels], np.int8
            )
            line.mark(np.array([index for index, _ in labels], np.int64), known)

    def stand_ins(self, taken: np.ndarray, klass: int) -> np.ndarray:
        """(n,) int8: what stands for the label of an example until it is known."""
        if self.pending == "predicted":
            return self.predicted(taken.copy())[:, klass]
        return np.full(len(taken), NO_LABEL, np.int8)

    def whole_line(self, column: torch.Tensor, klass: int) -> LineGraph:
        """With every example on it. column (N,): the class's probabilities."""
        return self._line(np.flatnonzero(self.kind != OFF_THE_LINE), column, klass)

    def open_line(self, column: torch.Tensor, klass: int) -> LineGraph:
        """With only what lies between labelled neighbours that differ; sought on the device."""
        low, high = self.ends(klass)
        if len(low) == 0:
            return self.line(np.empty(0, np.int64), klass)
        import torch

        key = line_key(column, self.view.row_max) if self.multiclass else column
        at = torch.searchsorted(self.on_device(low), key, right=True) - 1
        within = (at >= 0) & (key <= self.on_device(high)[at.clamp(min=0)])
        return self._line(within.nonzero().squeeze(1).cpu().numpy(), column, klass)

    def _line(self, ids: np.ndarray, column: torch.Tensor, klass: int) -> LineGraph:
        where = self.on_device(ids)
        second = column[where].cpu().numpy()
        key = (
            line_key(second, self.view.row_max[where].cpu().numpy()) if self.multiclass else second
        )
        return self.line(ids[arrange(key, second, self.view.ties[ids])], klass)

    def on_device(self, array: np.ndarray) -> torch.Tensor:
        import torch

        return torch.from_numpy(array).to(self.view.device)


class ClassGraph:
    """One class's line, with only the part that can matter.

    With "split" no label changes during the round, so open cuts can only lie between labelled
    neighbours that differ at its start: the line holds just those stretches, and the rest is left
    out until a closed cut is asked for.
    """

    def __init__(self, board: LineBoard, klass: int, line: LineGraph) -> None:
        self.board = board
        self.klass = klass
        self.line = line
        self._is_whole = board.pending != "split"

    def shortest_cut(self) -> tuple[int, int]:
        """(free examples in it, the example in its middle) of the shortest open cut, or (-1,
        -1).
        """
        return self.line.shortest_cut()

    def nearest_to_closed(self) -> tuple[int, int]:
        """(distance by rank, the free example nearest to a closed cut), or (-1, -1) with no closed
        cut.
        """
        return self._whole().nearest_to_closed()

    def _whole(self) -> LineGraph:
        """The line with every example on it, built when it is first needed."""
        if not self._is_whole:
            self._is_whole = True
            view = self.board.view
            ((_, column),) = view.columns([self.klass])
            self.line = self.board.whole_line(column, self.klass)
            self.hear(view.ledger.taken, [])
        return self.line

    def hear(self, taken: np.ndarray, labels: Told) -> None:
        """Examples were taken, and labels came."""
        self.board.mark(self.line, self.klass, taken, labels)
