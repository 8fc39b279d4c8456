"""The pool of a round, held in shards: what the arms ask for is computed where the rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tailor.compute.base import Engine
from tailor.compute.prediction_shards import FEATURES, PROBS, Predictions
from tailor.compute.shard_view import (
    CheckNumbers,
    CountPredicted,
    PerRow,
    ShardContext,
    ShardPiece,
    visit_shard,
)
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
from tailor.selection.view_checks import full_precision
from tailor.task import MultiClass, Task

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
#: epochs -> what a copy of the model says after so many epochs of fine-tuning on its own soft
#: labels
ShardedTune = Callable[[int], Predictions]
#: () -> what each pass with dropout says
ShardedDropout = Callable[[], Iterable[Predictions]]


@dataclass(frozen=True)
class Sharded(PredictionSource):
    """Predictions with the engine that reads them: hand it to Learner.ask instead of arrays.

    finetune and dropout take the place of those of Learner.ask, since what they give is in shards
    too.
    """

    predictions: Predictions
    engine: Engine
    finetune: ShardedTune | None = None
    dropout: ShardedDropout | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.predictions.shape

    def __len__(self) -> int:
        return self.predictions.rows

    def __getitem__(self, positions: Any) -> np.ndarray:
        """(n, K) probabilities of a few examples; of one position, (K,)."""
        indices = np.asarray(positions)
        rows = self.predictions.take(PROBS, np.atleast_1d(indices))
        return rows if indices.ndim else rows[0]

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
        super().__init__(task, size, torch.device(device), state, seed)
        self._sharded = sharded
        self._context = ShardContext(task, seed, device)
        self._pieces = self._cut_up()
        self._tuned: dict[int, Predictions] = {}  # by epochs
        self._passes: tuple[Predictions, ...] = ()
        self._row_max = self.visit(CheckNumbers())  # (N,); empty in a multi-label task
        if isinstance(task, MultiClass):
            self._pieces = [
                replace(piece, row_max=self._row_max[piece.shard.start : piece.shard.stop])
                for piece in self._pieces
            ]

    def _cut_up(self) -> list[ShardPiece]:
        """The shards, each with what is known of its own rows."""
        labelled = np.sort(self.labelled)
        pending = np.sort(self.pending)
        pieces = []
        for shard in self.predictions:
            ends = (shard.start, shard.stop)
            labelled_here = slice(*np.searchsorted(labelled, ends))
            pending_here = slice(*np.searchsorted(pending, ends))
            pieces.append(
                ShardPiece(
                    shard,
                    free=self.free[shard.start : shard.stop],
                    labelled=labelled[labelled_here] - shard.start,
                    pending=pending[pending_here] - shard.start,
                )
            )
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

    def visit(
        self,
        job: ShardJob[T],
        *,
        finetune_epochs: int | None = None,
        dropout: bool = False,
    ) -> T:
        pieces = self._pieces
        if finetune_epochs is not None:
            pieces = self._with_tuned(pieces, finetune_epochs)
        if dropout:
            pieces = self._with_passes(pieces)
        return self._visit(job, pieces)

    def _visit(self, job: ShardJob[T], pieces: Sequence[ShardPiece]) -> T:
        calls = [(piece,) for piece in pieces]
        answers = self.engine.map(visit_shard, calls, shared=(self._context, job))
        return job.join(answers)

    @cached_property
    def row_max(self) -> torch.Tensor:
        if not isinstance(self.task, MultiClass):
            return self.per_row(largest_of_rows)
        return self.to_device(self._row_max)

    def per_row(self, function: RowFunction) -> torch.Tensor:
        return self.to_device(self.visit(PerRow(function)))

    def count_predicted(self, among: np.ndarray) -> np.ndarray:
        pieces = [
            replace(piece, among=among[piece.shard.start : piece.shard.stop])
            for piece in self._pieces
        ]
        return self._visit(CountPredicted(), pieces)

    def rows(
        self,
        which: slice | torch.Tensor,
        classes: slice | Sequence[int] | np.ndarray | None = None,
    ) -> torch.Tensor:
        rows = self._take(PROBS, which)
        return rows if classes is None else rows[:, classes]

    def feature_rows(self, which: slice | torch.Tensor) -> torch.Tensor:
        return self._take(FEATURES, which)

    def _take(self, name: str, which: slice | torch.Tensor) -> torch.Tensor:
        positions = which if isinstance(which, slice) else which.cpu().numpy()
        rows = self.predictions.take(name, positions)
        return full_precision(self.to_device(rows))

    def columns(self, classes: list[int]) -> Iterable[tuple[int, torch.Tensor]]:
        for first in range(0, len(classes), COLUMNS):
            block = classes[first : first + COLUMNS]
            turned = self.per_row(partial(_columns_of, block)).T.contiguous()
            yield from zip(block, turned)

    def finetuned(self, epochs: int) -> torch.Tensor:
        return self._all_probs(self._tuned_predictions(epochs))

    def dropout_passes(self) -> Iterator[torch.Tensor]:
        for predictions in self._pass_predictions():
            yield self._all_probs(predictions)

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

    def _with_tuned(self, pieces: Sequence[ShardPiece], epochs: int) -> list[ShardPiece]:
        shards = self._tuned_predictions(epochs)
        return [replace(piece, tuned=shard) for piece, shard in zip(pieces, shards, strict=True)]

    def _tuned_predictions(self, epochs: int) -> Predictions:
        """Asked for once a round: fine-tuning again might come out otherwise."""
        assert self._sharded.finetune is not None
        if epochs not in self._tuned:
            tuned = self._sharded.finetune(epochs)
            self._tuned[epochs] = self._check_layout(tuned, "fine-tuned probabilities")
        return self._tuned[epochs]

    def _with_passes(self, pieces: Sequence[ShardPiece]) -> list[ShardPiece]:
        passes = self._pass_predictions()
        return [
            replace(piece, passes=tuple(predictions[number] for predictions in passes))
            for number, piece in enumerate(pieces)
        ]

    def _pass_predictions(self) -> tuple[Predictions, ...]:
        """Asked for once a round: the next passes would be others."""
        assert self._sharded.dropout is not None
        if not self._passes:
            self._passes = tuple(
                self._check_layout(predictions, "a dropout pass")
                for predictions in self._sharded.dropout()
            )
        return self._passes

    def _all_probs(self, predictions: Predictions) -> torch.Tensor:
        return self.to_device(predictions.take(PROBS, slice(None)))

    def _check_layout(self, other: Predictions, what: str) -> Predictions:
        """Other predictions must be cut into shards as those of the pool are."""
        expected = self.predictions
        if (other.shape, other.shard) != (expected.shape, expected.shard):
            raise InputError(
                f"{what}: shape {other.shape} in shards of {other.shard} rows, the pool's "
                f"predictions have {expected.shape} in shards of {expected.shard}"
            )
        return other


def _columns_of(classes: list[int], view: PoolView, part: slice) -> torch.Tensor:
    return view.rows(part, classes)
