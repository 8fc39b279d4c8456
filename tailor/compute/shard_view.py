"""A part of the pool as an arm sees it, and what may be asked of every part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from tailor.compute.prediction_shards import FEATURES, PROBS, Shard
from tailor.selection.pool_view import (
    CHUNK,
    Ledger,
    PoolView,
    check_features,
    check_probabilities,
    predicted_in,
    tie_keys,
)
from tailor.task import MultiClass, Task

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


@dataclass(frozen=True)
class ShardContext:
    """What all parts of a round share."""

    task: Task
    seed: int
    device: str


@dataclass(frozen=True)
class ShardPiece:
    """A shard, and what the round knows of its rows. Positions are within the shard."""

    shard: Shard
    free: np.ndarray  # (n,) bool
    labelled: np.ndarray  # (m,) int64, ascending
    pending: np.ndarray  # int64, ascending
    row_max: np.ndarray | None = None  # (n,) the largest probability of each row, once it is known
    labels: np.ndarray | None = None  # (m, K), where a fine-tuned copy of the model is asked for
    tuned: Shard | None = None  # what that copy said
    passes: tuple[Shard, ...] = ()  # what the passes with dropout said
    among: np.ndarray | None = (
        None  # (n,) bool: the rows that a question is about, where not all are meant
    )


class ShardJob(Protocol[T]):
    """A question to every part of the pool."""

    def __call__(self, part: ShardView) -> T: ...

    def join(self, found: list[T]) -> T:
        """The answer for several parts, in order, from the answers for each. Asked within a shard
        and then across.
        """


class ShardView(PoolView):
    """Up to CHUNK rows of a shard as a view of their own: position 0 is the pool's position
    `start`.
    """

    def __init__(self, setting: ShardContext, piece: ShardPiece, rows: slice) -> None:
        import torch

        self.task = setting.task
        self.device = torch.device(setting.device)
        self.start = piece.shard.start + rows.start
        self.size = rows.stop - rows.start
        self._shard = piece.shard
        self._rows = rows
        self._seed = setting.seed
        self.free = piece.free[rows]
        self.ledger = Ledger(self.free)
        known = _within(piece.labelled, rows)
        self.labelled = piece.labelled[known] - rows.start
        self.pending = _shift(piece.pending, rows)
        if piece.labels is not None:
            self.labels = piece.labels[known]
        if piece.row_max is not None:
            self.row_max = torch.from_numpy(piece.row_max[rows]).to(self.device)
        self.among = None if piece.among is None else piece.among[rows]
        self.finetune = self.dropout = None
        tuned = piece.tuned
        passes = piece.passes
        if tuned is not None:
            self.finetune = lambda targets, epochs: tuned.read(PROBS, rows)
        if passes:
            self.dropout = lambda: (one.read(PROBS, rows) for one in passes)

    @cached_property
    def probs(self) -> torch.Tensor:  # type: ignore[override]
        return self._tensor(PROBS)

    @cached_property
    def features(self) -> torch.Tensor | None:  # type: ignore[override]
        return None if self._shard.features is None else self._tensor(FEATURES)

    @cached_property
    def ties(self) -> np.ndarray:
        return tie_keys(self.size, self._seed, self.start)

    @cached_property
    def on_the_line(self) -> np.ndarray:
        """(s,) int64: what is free, labelled or pending, ascending."""
        on = self.free.copy()
        on[self.labelled] = on[self.pending] = True
        return np.flatnonzero(on)

    def _tensor(self, name: str) -> torch.Tensor:
        import torch

        return torch.from_numpy(self._shard.read(name, self._rows)).to(self.device)


def _within(positions: np.ndarray, rows: slice) -> slice:
    return slice(*np.searchsorted(positions, (rows.start, rows.stop)))


def _shift(positions: np.ndarray, rows: slice) -> np.ndarray:
    return positions[_within(positions, rows)] - rows.start


def parts(setting: ShardContext, piece: ShardPiece) -> Iterator[ShardView]:
    for start in range(0, len(piece.shard), CHUNK):
        yield ShardView(setting, piece, slice(start, min(start + CHUNK, len(piece.shard))))


def visit(shared: tuple[ShardContext, ShardJob[T]], piece: ShardPiece) -> T:
    """What an engine calls for every shard."""
    setting, job = shared
    return job.join([job(part) for part in parts(setting, piece)])


class PerRow:
    """The numbers that a function gives for every row, joined; numpy, on the host."""

    def __init__(self, function: Callable[[PoolView, slice], torch.Tensor]) -> None:
        self._function = function

    def __call__(self, part: ShardView) -> np.ndarray:
        found: np.ndarray = self._function(part, slice(0, part.size)).cpu().numpy()
        return found

    def join(self, found: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(found)


class CountPredicted:
    """How many of the rows in question the model puts in each class, (K,) int64: whole numbers, so
    the order of adding them up changes nothing.
    """

    def __call__(self, part: ShardView) -> np.ndarray:
        assert part.among is not None
        found: np.ndarray = predicted_in(part, slice(0, part.size), part.among).cpu().numpy()
        return found

    def join(self, found: list[np.ndarray]) -> np.ndarray:
        return np.sum(found, axis=0)


class Check(PerRow):
    """All numbers are what they should be; since every row is read, its largest probability comes
    along.
    """

    def __init__(self) -> None:
        super().__init__(lambda view, part: view.rows(part).amax(1))

    def __call__(self, part: ShardView) -> np.ndarray:
        check_probabilities(part.probs, part.task, part.start)
        if part.features is not None:
            check_features(part.features, part.size, part.start)
        return (
            super().__call__(part) if isinstance(part.task, MultiClass) else np.empty(0, np.float32)
        )
