"""A part of one shard, as a worker sees it, and how a job goes through the parts of a shard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tailor.common.linear_head import LinearHead
from tailor.compute.prediction_shards import FEATURES, PROBS, Shard
from tailor.errors import InputError
from tailor.selection.matrix_view import MatrixView
from tailor.selection.pool_view import (
    CHUNK,
    Need,
    PoolState,
    PoolView,
    RowFunction,
    ShardJob,
    check_need,
    count_predicted_in,
    largest_of_rows,
)
from tailor.selection.view_checks import check_features, check_probabilities
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
    head: LinearHead | None = None


@dataclass(frozen=True)
class ShardPiece:
    """A shard, and what the round knows of its n rows. Positions are within the shard."""

    shard: Shard
    free: np.ndarray  # (n,) bool
    labelled: np.ndarray  # int64, ascending
    pending: np.ndarray  # int64, ascending
    row_max: np.ndarray | None = None  # (n,) the largest probability of each row, once it is known
    tuned: Shard | None = None  # what a fine-tuned copy of the model said
    passes: tuple[Shard, ...] = ()  # what the passes with dropout said
    among: np.ndarray | None = None  # (n,) bool: the rows in question, where not all are meant


class PartView(MatrixView):
    """Up to CHUNK rows of a shard. Position 0 is the pool's position `start`.

    The matrices are read when they are first asked for. The labels told so far stay behind: they
    would have to travel with every visit, and what a part is asked depends on its own rows alone.

    rows  which of the shard's rows, a slice with both ends
    """

    def __init__(
        self,
        context: ShardContext,
        piece: ShardPiece,
        rows: slice,
    ) -> None:
        import torch

        state = PoolState(
            labelled=positions_within(piece.labelled, rows),
            labels=None,
            pending=positions_within(piece.pending, rows),
            free=piece.free[rows],
        )
        self.start = piece.shard.start + rows.start
        self.head = context.head
        self._piece = piece
        self._slice = rows
        size = rows.stop - rows.start
        device = torch.device(context.device)
        super().__init__(
            context.task,
            size,
            device,
            state,
            context.seed,
        )

    @cached_property
    def probs(self) -> torch.Tensor:
        """(N, K)"""
        return self._read(self._piece.shard, PROBS)

    @cached_property
    def features(self) -> torch.Tensor | None:
        """(N, d), or None"""
        shard = self._piece.shard
        if shard.features is None:
            return None
        return self._read(shard, FEATURES)

    @cached_property
    def row_max(self) -> torch.Tensor:
        shard_max = self._piece.row_max
        if shard_max is None:
            return self.per_row(largest_of_rows)
        part_max = shard_max[self._slice]
        return self.to_device(part_max)

    @property
    def among(self) -> np.ndarray:
        """(N,) bool: the rows in question."""
        in_question = self._piece.among
        if in_question is None:
            return np.ones(self.size, bool)
        return in_question[self._slice]

    def finetuned(self, epochs: int) -> torch.Tensor:
        # The epochs are not asked for: whoever sent the visit chose them.
        if self._piece.tuned is None:
            raise InputError("this visit to the shards brought no fine-tuned probabilities")
        return self._read_checked(self._piece.tuned)

    def dropout_passes(self) -> Iterator[torch.Tensor]:
        for shard in self._piece.passes:
            yield self._read_checked(shard)

    def boundary_distances(self, positions: np.ndarray, steps: int) -> np.ndarray:
        raise InputError("the network stays behind: ask the whole view for boundary distances")

    def has(self, need: Need) -> bool:
        match check_need(need):
            case Need.PROBABILITIES:
                return True
            case Need.FEATURES:
                return self._piece.shard.features is not None
            case Need.FINETUNE:
                return self._piece.tuned is not None
            case Need.DROPOUT:
                return bool(self._piece.passes)
            case Need.GRADIENTS:
                return False

    def _read_checked(self, shard: Shard) -> torch.Tensor:
        probs = self._read(shard, PROBS)
        return check_probabilities(probs, self.task, self.start)

    def _read(self, shard: Shard, name: str) -> torch.Tensor:
        rows = shard.read(name, self._slice)
        return self.to_device(rows)


def positions_within(positions: np.ndarray, rows: slice) -> np.ndarray:
    """Those of the ascending positions that lie in a slice, counted from its start."""
    # They ascend: two searches will do, and no mask over the whole shard.
    ends = (rows.start, rows.stop)
    first, last = np.searchsorted(positions, ends)
    return positions[first:last] - rows.start


def parts_of(context: ShardContext, piece: ShardPiece) -> Iterator[PartView]:
    """The views of a shard, CHUNK rows at a time."""
    size = len(piece.shard)
    for start in range(0, size, CHUNK):
        stop = min(start + CHUNK, size)
        yield PartView(context, piece, slice(start, stop))


def visit_shard(shared: tuple[ShardContext, ShardJob[T]], piece: ShardPiece) -> T:
    """What an engine calls for every shard: a job's answer for all of its parts."""
    context, job = shared
    answers = []
    # One part after the other, so that no more than one is in memory.
    for part in parts_of(context, piece):
        answer = job(part)
        answers.append(answer)
    return job.join(answers)


class PerRow:
    """A job: the numbers that a function gives for every row, joined; numpy, on the host."""

    def __init__(self, function: RowFunction) -> None:
        self._function = function

    def __call__(self, part: PoolView) -> np.ndarray:
        whole_part = slice(0, part.size)
        # On the host, since what several workers give is joined there.
        numbers = self._function(part, whole_part)
        on_host: np.ndarray = numbers.cpu().numpy()
        return on_host

    def join(self, answers: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(answers)


class CountPredicted:
    """A job: how many of the rows in question the model puts in each class, (K,) int64.

    Whole numbers, so the order of adding them up changes nothing.
    """

    def __call__(self, part: PoolView) -> np.ndarray:
        assert isinstance(part, PartView)
        whole_part = slice(0, part.size)
        counts = count_predicted_in(part, whole_part, part.among)
        on_host: np.ndarray = counts.cpu().numpy()
        return on_host

    def join(self, answers: list[np.ndarray]) -> np.ndarray:
        return np.sum(answers, axis=0)


class CheckNumbers:
    """A job: all numbers are what they should be, or InputError.

    -> (N,) the largest probability of each row, since every row is read here anyway; empty in a
    multi-label task, where nobody asks for it.
    """

    def __call__(self, part: PoolView) -> np.ndarray:
        assert isinstance(part, PartView)
        check_probabilities(part.probs, part.task, part.start)
        if part.features is not None:
            check_features(part.features, part.size, part.start)
        if not isinstance(part.task, MultiClass):
            return np.empty(0, np.float32)
        whole_part = slice(0, part.size)
        largest = largest_of_rows(part, whole_part)
        on_host: np.ndarray = largest.cpu().numpy()
        return on_host

    def join(self, answers: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(answers)
