"""The whole pool of a round, over its shards: arms' questions are answered where the rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tailor.common.linear_head import LinearHead
from tailor.compute.base import Engine
from tailor.compute.part_view import (
    CheckNumbers,
    CountPredicted,
    PerRow,
    ShardContext,
    ShardPiece,
    positions_within,
    visit_shard,
)
from tailor.compute.prediction_shards import FEATURES, PROBS, Predictions
from tailor.errors import InputError
from tailor.selection.pool_view import (
    COLUMNS,
    Need,
    PoolState,
    PoolView,
    PredictionSource,
    RowFunction,
    ShardJob,
    ShardVisitor,
    check_need,
    largest_of_rows,
)
from tailor.selection.view_checks import check_distances, full_precision
from tailor.task import MultiClass, Task

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
#: epochs -> what a copy of the model says after so many epochs of fine-tuning on its own soft
#: labels
ShardedTune = Callable[[int], Predictions]
#: () -> what each pass with dropout says
ShardedDropout = Callable[[], Iterable[Predictions]]
#: (positions (n,), steps) -> distances (n,): the network is in the process that asks
ShardedDistances = Callable[[np.ndarray, int], Any]


@dataclass(frozen=True)
class Sharded(PredictionSource):
    """Predictions with the engine that reads them: hand it to Learner.ask instead of arrays.

    finetune and dropout take the place of those of Learner.ask, since what they give is in shards
    too; head and boundary_distances are as there.
    """

    predictions: Predictions
    engine: Engine
    finetune: ShardedTune | None = None
    dropout: ShardedDropout | None = None
    head: Any = None
    boundary_distances: ShardedDistances | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.predictions.shape

    def __len__(self) -> int:
        return self.predictions.rows

    def __getitem__(self, positions: Any) -> np.ndarray:
        """(n, K) probabilities of a few examples; of one position, (K,)."""
        indices = np.asarray(positions)
        at_least_one = np.atleast_1d(indices)
        rows = self.predictions.take(PROBS, at_least_one)
        is_single = indices.ndim == 0
        if is_single:
            return rows[0]
        return rows

    def round_view(
        self,
        task: Task,
        *,
        labelled: Any = (),
        labels: Any = None,
        free: Any = None,
        pending: Any = (),
        seed: int = 0,
        device: str = "cpu",
    ) -> ShardedView:
        return ShardedView(
            self,
            task,
            labelled=labelled,
            labels=labels,
            free=free,
            pending=pending,
            seed=seed,
            device=device,
        )


class ModelVariants:
    """What variants of the round's model say of the pool: copies fine-tuned on their own soft
    labels, and passes with dropout.

    Each is computed when it is first asked for and kept for the round, since computing it again
    might come out otherwise.
    """

    def __init__(self, sharded: Sharded) -> None:
        self._sharded = sharded
        self._finetuned: dict[int, Predictions] = {}  # by epochs
        self._dropout_passes: tuple[Predictions, ...] = ()

    def finetuned(self, epochs: int) -> Predictions:
        """Of a copy after so many epochs. Raises InputError where its shards are not the pool's."""
        assert self._sharded.finetune is not None
        if epochs not in self._finetuned:
            predictions = self._sharded.finetune(epochs)
            self._check_layout(predictions, "fine-tuned probabilities")
            self._finetuned[epochs] = predictions
        return self._finetuned[epochs]

    def dropout_passes(self) -> tuple[Predictions, ...]:
        """Of each pass. Raises InputError where the shards of one are not the pool's."""
        assert self._sharded.dropout is not None
        if not self._dropout_passes:
            passes = []
            for predictions in self._sharded.dropout():
                self._check_layout(predictions, "a dropout pass")
                passes.append(predictions)
            self._dropout_passes = tuple(passes)
        return self._dropout_passes

    def add_finetuned(self, pieces: Sequence[ShardPiece], epochs: int) -> list[ShardPiece]:
        """The pieces, each with its shard of the fine-tuned predictions."""
        shards = self.finetuned(epochs)
        extended = []
        for piece, shard in zip(pieces, shards, strict=True):
            extended.append(replace(piece, tuned=shard))
        return extended

    def add_dropout_passes(self, pieces: Sequence[ShardPiece]) -> list[ShardPiece]:
        """The pieces, each with its shard of every pass."""
        passes = self.dropout_passes()
        extended = []
        for number, piece in enumerate(pieces):
            shards = tuple(predictions[number] for predictions in passes)
            extended.append(replace(piece, passes=shards))
        return extended

    def _check_layout(self, predictions: Predictions, what: str) -> None:
        """A piece pairs shards by their number, so all must be cut as the pool's are."""
        expected = self._sharded.predictions
        same_shape = predictions.shape == expected.shape
        same_shards = predictions.shard == expected.shard
        if not (same_shape and same_shards):
            raise InputError(
                f"{what}: shape {predictions.shape} in shards of {predictions.shard} rows, the "
                f"pool's predictions have {expected.shape} in shards of {expected.shard}"
            )


class ShardedView(PoolView):
    """A view with the same picks as ArrayView, but no more of the matrices in memory than each
    worker's part.

    This process holds the vectors of N numbers that some arms need (the guide to large pools lists
    them) and the rows of what is labelled. A family that knows about shards asks all of them at
    once through `visit`; others go through `per_row` and `rows`.
    """

    def __init__(
        self,
        sharded: Sharded,
        task: Task,
        *,
        labelled: Any = (),
        labels: Any = None,
        free: Any = None,
        pending: Any = (),
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        import torch

        predictions = sharded.predictions
        if predictions.classes != task.size:
            raise InputError(
                f"probabilities have shape {predictions.shape}: {task.size} columns are needed, "
                "one a class"
            )
        size = predictions.rows
        state = PoolState.checked(
            task,
            size,
            labelled=labelled,
            labels=labels,
            free=free,
            pending=pending,
        )
        super().__init__(
            task,
            size,
            torch.device(device),
            state,
            seed,
        )
        self._sharded = sharded
        if sharded.head is not None:
            width = predictions.features or None
            self.head = LinearHead.checked(sharded.head, task.size, width)
        self._context = ShardContext(
            task,
            seed,
            device,
            self.head,
        )
        self._pieces = self._cut_up()
        self._variants = ModelVariants(sharded)
        # Every number is looked at once, before an arm goes by it.
        self._row_max = self.visit(CheckNumbers())  # (N,); empty in a multi-label task
        if isinstance(task, MultiClass):
            # Sent along with every later visit, so that no worker has to find them again.
            pieces = []
            for piece in self._pieces:
                row_max = self._row_max[piece.shard.span]
                pieces.append(replace(piece, row_max=row_max))
            self._pieces = pieces

    def _cut_up(self) -> list[ShardPiece]:
        """The shards, each with what is known of its own rows."""
        # Ascending, so that a shard's own lie together and two searches find them.
        labelled = np.sort(self.labelled)
        pending = np.sort(self.pending)
        pieces = []
        for shard in self.predictions:
            piece = ShardPiece(
                shard,
                free=self.free[shard.span],
                labelled=positions_within(labelled, shard.span),
                pending=positions_within(pending, shard.span),
            )
            pieces.append(piece)
        return pieces

    @property
    def predictions(self) -> Predictions:
        return self._sharded.predictions

    @property
    def engine(self) -> Engine:
        """What visits the shards."""
        return self._sharded.engine

    @property
    def shards(self) -> ShardVisitor:
        return self

    def offering(self, free: np.ndarray) -> ShardedView:
        part = super().offering(free)
        assert isinstance(part, ShardedView)
        # The workers see what is free by the pieces, not by the view.
        pieces = []
        for piece in self._pieces:
            free_here = free[piece.shard.start : piece.shard.stop]
            pieces.append(replace(piece, free=free_here))
        part._pieces = pieces
        return part

    def visit(
        self,
        job: ShardJob[T],
        *,
        finetune_epochs: int | None = None,
        dropout: bool = False,
    ) -> T:
        pieces = self._pieces
        if finetune_epochs is not None:
            pieces = self._variants.add_finetuned(pieces, finetune_epochs)
        if dropout:
            pieces = self._variants.add_dropout_passes(pieces)
        return self._visit(job, pieces)

    def _visit(self, job: ShardJob[T], pieces: Sequence[ShardPiece]) -> T:
        calls = [(piece,) for piece in pieces]
        shared = (self._context, job)
        answers = self.engine.map(visit_shard, calls, shared=shared)
        return job.join(answers)

    @cached_property
    def row_max(self) -> torch.Tensor:
        if not isinstance(self.task, MultiClass):
            return self.per_row(largest_of_rows)
        return self.to_device(self._row_max)

    def per_row(self, function: RowFunction) -> torch.Tensor:
        numbers = self.visit(PerRow(function))
        return self.to_device(numbers)

    def count_predicted(self, among: np.ndarray) -> np.ndarray:
        pieces = []
        for piece in self._pieces:
            in_question = among[piece.shard.span]
            pieces.append(replace(piece, among=in_question))
        return self._visit(CountPredicted(), pieces)

    def rows(
        self, which: slice | torch.Tensor, classes: slice | Sequence[int] | np.ndarray | None = None
    ) -> torch.Tensor:
        rows = self._take(PROBS, which)
        if classes is None:
            return rows
        return rows[:, classes]

    def feature_rows(self, which: slice | torch.Tensor) -> torch.Tensor:
        return self._take(FEATURES, which)

    def _take(self, name: str, which: slice | torch.Tensor) -> torch.Tensor:
        positions: slice | np.ndarray
        if isinstance(which, slice):
            positions = which
        else:
            positions = which.cpu().numpy()
        rows = self.predictions.take(name, positions)
        on_device = self.to_device(rows)
        return full_precision(on_device)

    def columns(self, classes: list[int]) -> Iterable[tuple[int, torch.Tensor]]:
        # A visit reads every shard whole, so it brings the columns of many classes.
        for first in range(0, len(classes), COLUMNS):
            last = first + COLUMNS
            block = classes[first:last]
            columns_of_block = partial(_columns_of, block)
            block_rows = self.per_row(columns_of_block)
            columns = block_rows.T.contiguous()
            yield from zip(block, columns)

    def finetuned(self, epochs: int) -> torch.Tensor:
        predictions = self._variants.finetuned(epochs)
        return self._all_probs(predictions)

    def dropout_passes(self) -> Iterator[torch.Tensor]:
        for predictions in self._variants.dropout_passes():
            yield self._all_probs(predictions)

    def boundary_distances(self, positions: np.ndarray, steps: int) -> np.ndarray:
        assert self._sharded.boundary_distances is not None
        measured = self._sharded.boundary_distances(positions, steps)
        return check_distances(measured, len(positions))

    def has(self, need: Need) -> bool:
        match check_need(need):
            case Need.PROBABILITIES:
                return True
            case Need.FEATURES:
                return self.predictions.features > 0
            case Need.FINETUNE:
                return self._sharded.finetune is not None
            case Need.DROPOUT:
                return self._sharded.dropout is not None
            case Need.GRADIENTS:
                return self._sharded.boundary_distances is not None

    def _all_probs(self, predictions: Predictions) -> torch.Tensor:
        # All of the pool in this process: only families that do not know of shards come here.
        all_rows = slice(None)
        probs = predictions.take(PROBS, all_rows)
        return self.to_device(probs)


def _columns_of(classes: list[int], view: PoolView, part: slice) -> torch.Tensor:
    return view.rows(part, classes)
