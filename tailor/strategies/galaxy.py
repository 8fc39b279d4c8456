"""galaxy: bisection on each class's line graph, and on all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.errors import InputError
from tailor.strategies.base import MULTI_CLASS, Arm, Cursor, Strategy, random_free
from tailor.strategies.line import FREE, LABELLED, NO_LABEL, PENDING, Line
from tailor.task import MultiClass, Task
from tailor.view import RoundView

if TYPE_CHECKING:
    import torch

MODES = ("split", "predicted", "revealed")


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
        columns = view.columns(classes)
        return (ClassGraph(view, k, column, self.pending) for k, column in columns)


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
        length, index = min((g.line.shortest_cut() for g in self._graphs), key=_least)
        if index >= 0:
            return index
        distance, index = min((g.whole().nearest_to_closed() for g in self._graphs), key=_least)
        if index >= 0:
            return index
        return random_free(self.ledger.free, self.view.free_ids, self._rng)


def _least(found: tuple[int, int]) -> float:
    return found[0] if found[1] >= 0 else np.inf


class ClassGraph:
    """One class's line, with only the part that can matter.

    With "split" no label changes during the round, so open cuts can only lie between labelled neighbours that
    differ at its start: the line holds just those stretches, and the rest is left out until a closed cut is asked for.
    """

    def __init__(self, view: RoundView, klass: int, column: torch.Tensor, pending: str) -> None:
        self.view, self.klass, self.pending = view, klass, pending
        self._is_whole = pending != "split"
        self.line = self._build(column, whole=self._is_whole)

    def whole(self) -> Line:
        """The line with every example on it, built when it is first needed."""
        if not self._is_whole:
            ((_, column),) = self.view.columns([self.klass])
            self.line, self._is_whole = self._build(column, whole=True), True
            self.hear(self.view.ledger.taken, [])
        return self.line

    def hear(self, taken: np.ndarray, labels: list[tuple[int, np.ndarray]]) -> None:
        if len(taken):
            self.line.mark(taken, self._stand_ins(taken))
        if labels and self.pending == "revealed":
            known = np.array([label[self.klass] for _, label in labels], np.int8)
            self.line.mark(np.array([index for index, _ in labels], np.int64), known)

    def _stand_ins(self, indices: np.ndarray) -> np.ndarray:
        if self.pending != "predicted":
            return np.full(len(indices), NO_LABEL, np.int8)
        import torch

        rows = self.view.rows(torch.from_numpy(indices).to(self.view.device))
        return self.view.task.predicted(rows)[:, self.klass].cpu().numpy().astype(np.int8)

    def _build(self, column: torch.Tensor, *, whole: bool) -> Line:
        import torch

        view = self.view
        key = line_key(view.task, column, view.row_max if isinstance(view.task, MultiClass) else None)
        kind = np.where(view.free, FREE, NO_LABEL).astype(np.int8)  # neither free, labelled nor pending: not on the line
        label = np.zeros(view.size, np.int8)
        kind[view.pending] = PENDING
        kind[view.labelled] = LABELLED
        label[view.labelled] = view.labels[:, self.klass]
        if self.pending == "predicted" and len(view.pending):
            kind[view.pending] = LABELLED
            label[view.pending] = self._stand_ins(view.pending)
        ids = np.flatnonzero(kind >= 0) if whole else self._between_ends(key, label)
        where = torch.from_numpy(ids).to(view.device)
        ids = ids[arrange(key[where].cpu().numpy(), column[where].cpu().numpy(), view.ties[ids])]
        ids = ids[kind[ids] >= 0]
        return Line(ids, kind[ids], label[ids])

    def _between_ends(self, key: torch.Tensor, label: np.ndarray) -> np.ndarray:
        """Every position whose score lies between labelled neighbours that differ, ends included.

        Some that tie with an end but lie outside come along. They do no harm: from one such stretch to the next
        all labels are the same, so what lies there is never in an open cut.
        """
        import torch

        view = self.view
        if len(view.labelled) == 0:
            return view.labelled
        column = view.labelled_rows[:, self.klass]
        keys = line_key(view.task, column, view.labelled_max)
        order = arrange(keys, column, view.ties[view.labelled])
        differ = np.flatnonzero(np.diff(label[view.labelled[order]]))
        if len(differ) == 0:
            return np.empty(0, np.int64)
        ends = torch.from_numpy(keys[order]).to(view.device)
        low, high = ends[differ], ends[differ + 1]
        at = torch.searchsorted(low, key, right=True) - 1
        within = (at >= 0) & (key <= high[at.clamp(min=0)])
        return within.nonzero().squeeze(1).cpu().numpy()


def line_key(task: Task, column: Any, row_max: Any) -> Any:
    """(n,) the score that orders a class's line: p_k, or p_k - max p in a multi-class task; numpy or torch.

    Where the class is the most probable one the difference is 0 and p_k decides: p_k > 0 stands in, above all others.
    """
    if not isinstance(task, MultiClass):
        return column
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
