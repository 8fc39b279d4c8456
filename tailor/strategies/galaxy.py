"""galaxy: bisection on each class's line graph, and on all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.errors import InputError
from tailor.strategies.base import MULTI_CLASS, Arm, Cursor, Strategy, random_free
from tailor.strategies.line import FREE, LABELLED, NO_LABEL, PENDING, Line, stretches
from tailor.task import MultiClass
from tailor.view import RoundView

if TYPE_CHECKING:
    import torch

MODES = ("split", "predicted", "revealed")
#: neither free, labelled nor pending: skipped, or set aside
OFF_THE_LINE = -1


class Galaxy(Strategy):
    """GALAXY (Zhang et al. 2022), one arm a class.

    Sort the pool by the class's score. Between two neighbouring labelled examples whose labels differ lies an open
    cut: take the middle of the shortest. With no open cut, take the free example nearest, by rank, to a closed cut
    (a negative directly below a positive). With neither, take a random one.

    `pending` says what stands for a label that has not arrived: "split" keeps both halves of the cut open,
    "predicted" lets the model's own label stand in, and "revealed" uses each label as it comes and splits meanwhile.
    """

    name = "galaxy"
    per_class = True

    def __init__(self, *, pending: str = "split") -> None:
        if pending not in MODES:
            raise InputError(f"pending is {pending!r}: it must be one of {', '.join(MODES)}")
        self.pending = pending

    def open(
        self, arms: Sequence[Arm], view: RoundView, pulls: Sequence[int], rngs: Sequence[np.random.Generator]
    ) -> list[Cursor]:
        classes = [arm.klass for arm in arms if arm.klass is not None]
        graphs = self.graphs(view, classes)
        return [GalaxyCursor([graph], view, rng) for graph, rng in zip(graphs, rngs, strict=True)]

    def graphs(self, view: RoundView, classes: list[int]) -> Iterable[ClassGraph]:
        board = Board(view, self.pending)
        return (ClassGraph(board, k, column) for k, column in view.columns(classes))


class GalaxyAll(Galaxy):
    """GALAXY as published: one arm that takes the shortest of all classes' shortest cuts."""

    name = "galaxy-all"
    tasks = MULTI_CLASS
    per_class = False

    def open(
        self, arms: Sequence[Arm], view: RoundView, pulls: Sequence[int], rngs: Sequence[np.random.Generator]
    ) -> list[Cursor]:
        return [GalaxyCursor(list(self.graphs(view, list(range(view.task.size)))), view, rng) for rng in rngs]


class GalaxyCursor(Cursor):
    """Takes from the graph with the shortest cut; of equal ones from the first class."""

    def __init__(self, graphs: list[ClassGraph], view: RoundView, rng: np.random.Generator) -> None:
        super().__init__(view)
        self._graphs, self._rng = graphs, rng
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


class Board:
    """What the lines of all classes share: who is on them, and the known labels."""

    def __init__(self, view: RoundView, pending: str) -> None:
        self.view, self.pending = view, pending
        self.multiclass = isinstance(view.task, MultiClass)
        self.kind = np.where(view.free, FREE, OFF_THE_LINE).astype(np.int8)  # (N,)
        self.kind[view.pending] = PENDING
        self.kind[view.labelled] = LABELLED
        self.known, self._labels = view.labelled, view.labels.astype(np.int8)  # (n,), (n, K)
        if pending == "predicted" and len(view.pending):
            self.kind[view.pending] = LABELLED
            self.known = np.concatenate([view.labelled, view.pending])
            self._labels = np.concatenate([self._labels, self.predicted(view.pending)])
        self._row = np.zeros(view.size, np.int64)  # where a known label stands
        self._row[self.known] = np.arange(len(self.known))

    def labels(self, positions: np.ndarray, klass: int) -> np.ndarray:
        """(n,) int8: labels of a class, 0 where there is none."""
        if len(self.known) == 0:
            return np.zeros(len(positions), np.int8)
        return self._labels[self._row[positions], klass] * (self.kind[positions] == LABELLED)

    def predicted(self, positions: np.ndarray) -> np.ndarray:
        """(n, K) int8: the model's own labels."""
        rows = self.view.rows(self.on_device(positions))
        return self.view.task.predicted(rows).cpu().numpy().astype(np.int8)

    def labelled_order(self, klass: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A class's line among the labelled: their keys (n,), probabilities (n,), and the order (n,), lowest first."""
        second = self.view.labelled_rows[:, klass]
        keys = line_key(second, self.view.labelled_max) if self.multiclass else second
        return keys, second, arrange(keys, second, self.view.ties[self.view.labelled])

    def line(self, ids: np.ndarray, klass: int) -> Line:
        """The line over ids (s,), lowest first; what is set aside is left out."""
        kind = self.kind[ids]
        on = kind != OFF_THE_LINE
        return Line(ids[on], kind[on], self.labels(ids[on], klass))

    def on_device(self, array: np.ndarray) -> torch.Tensor:
        import torch

        return torch.from_numpy(array).to(self.view.device)


class ClassGraph:
    """One class's line, with only the part that can matter.

    With "split" no label changes during the round, so open cuts can only lie between labelled neighbours that
    differ at its start: the line holds just those stretches, and the rest is left out until a closed cut is asked for.
    """

    def __init__(self, board: Board, klass: int, column: torch.Tensor) -> None:
        self.board, self.klass = board, klass
        self._is_whole = board.pending != "split"
        self.line = self._build(column)

    def shortest_cut(self) -> tuple[int, int]:
        """(free examples in it, the example in its middle) of the shortest open cut, or (-1, -1)."""
        return self.line.shortest_cut()

    def nearest_to_closed(self) -> tuple[int, int]:
        """(distance by rank, the free example nearest to a closed cut), or (-1, -1) with no closed cut."""
        return self._whole().nearest_to_closed()

    def _whole(self) -> Line:
        """The line with every example on it, built when it is first needed."""
        if not self._is_whole:
            self._is_whole = True
            view = self.board.view
            ((_, column),) = view.columns([self.klass])
            self.line = self._build(column)
            self.hear(view.ledger.taken, [])
        return self.line

    def hear(self, taken: np.ndarray, labels: list[tuple[int, np.ndarray]]) -> None:
        """Examples were taken, and labels came."""
        if len(taken):
            if self.board.pending == "predicted":
                stand_ins = self.board.predicted(taken.copy())[:, self.klass]
            else:
                stand_ins = np.full(len(taken), NO_LABEL, np.int8)
            self.line.mark(taken, stand_ins)
        if labels and self.board.pending == "revealed":
            known = np.array([label[self.klass] for _, label in labels], np.int8)
            self.line.mark(np.array([index for index, _ in labels], np.int64), known)

    def _build(self, column: torch.Tensor) -> Line:
        board, view = self.board, self.board.view
        ids = np.flatnonzero(board.kind != OFF_THE_LINE) if self._is_whole else self._between_ends(column)
        where = board.on_device(ids)
        second = column[where].cpu().numpy()
        key = line_key(second, view.row_max[where].cpu().numpy()) if board.multiclass else second
        return board.line(ids[arrange(key, second, view.ties[ids])], self.klass)

    def _between_ends(self, column: torch.Tensor) -> np.ndarray:
        """Every position whose score lies between labelled neighbours that differ, ends included.

        Some that tie with an end but lie outside come along. They do no harm: from one such stretch to the next
        all labels are the same, so what lies there is never in an open cut.
        """
        board, view = self.board, self.board.view
        keys, _, order = board.labelled_order(self.klass)
        differ = np.flatnonzero(np.diff(board.labels(view.labelled[order], self.klass)))
        if len(differ) == 0:
            return np.empty(0, np.int64)
        low, high = keys[order][differ], keys[order][differ + 1]
        if view.device.type == "cpu":
            row_max = view.row_max if board.multiclass else column[:0]
            return np.flatnonzero(stretches(column.numpy(), row_max.numpy(), low, high))
        import torch

        key = line_key(column, view.row_max) if board.multiclass else column
        lows, highs = board.on_device(low), board.on_device(high)
        at = torch.searchsorted(lows, key, right=True) - 1
        within = (at >= 0) & (key <= highs[at.clamp(min=0)])
        return within.nonzero().squeeze(1).cpu().numpy()


def line_key(column: Any, row_max: Any) -> Any:
    """(n,) the score that orders a class's line in a multi-class task, p_k - max p; numpy or torch.

    Where the class is the most probable one the difference is 0 and p_k decides: p_k > 0 stands in, above all others.
    """
    gap = column - row_max
    return np.where(gap >= 0, column, gap) if isinstance(gap, np.ndarray) else column.where(gap >= 0, gap)


def arrange(key: np.ndarray, second: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """argsort by (key, second, ties). One fast sort by key; only runs of equal keys are sorted again."""
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
