"""The pool of a round, held in shards: what the arms ask for is computed where the rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tailor.compute.base import Engine
from tailor.compute.prediction_shards import FEATURES, PROBS, Predictions
from tailor.compute.shard_ranking import Lowest
from tailor.compute.shard_view import (
    Check,
    CountPredicted,
    PerRow,
    ShardContext,
    ShardJob,
    ShardPiece,
    visit,
)
from tailor.errors import InputError
from tailor.selection.pool_view import COLUMNS, Need, Opening, PoolView, full_precision
from tailor.strategies.base import Arm, Cursor, RankedCursor, ScoreStrategy, first_depth
from tailor.strategies.galaxy.family import Galaxy, GalaxyAll
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
class Sharded:
    """Predictions with the engine that reads them: hand it to Loop.ask instead of arrays.

    finetune and dropout take the place of those of Loop.ask, since what they give is in shards too.
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
        where = np.asarray(positions)
        found = self.predictions.take(PROBS, np.atleast_1d(where))
        return found if where.ndim else found[0]

    def round_view(self, task: Task, **state: Any) -> ShardedView:
        state |= {"finetune": self.finetune, "dropout": self.dropout}
        return ShardedView(self.predictions, self.engine, task, **state)


class ShardedView(PoolView):
    """As PoolView, with the same picks, but no more of the matrices in memory than each worker's
    part.

    Here stay the vectors of N numbers that some arms need (docs/concepts/scale.md lists them) and
    the rows of what is labelled. Families that rank and galaxy ask every shard for its candidates
    at once; others go through `per_row` and `rows`.
    """

    def __init__(
        self,
        predictions: Predictions,
        engine: Engine,
        task: Task,
        *,
        labelled: Any = (),
        labels: Any = None,
        free: Any = None,
        pending: Any = (),
        finetune: ShardedTune | None = None,
        dropout: ShardedDropout | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        import torch

        if predictions.classes != task.size:
            raise InputError(
                f"probabilities have shape {predictions.shape}: {task.size} columns are needed, "
                "one a class"
            )
        self.task = task
        self.size = predictions.rows
        self.device = torch.device(device)
        self.predictions = predictions
        self.engine = engine
        self.probs: Any = predictions
        self.features: Any = predictions if predictions.features else None
        self.finetune: Any = finetune
        self.dropout: Any = dropout
        self._settle(labelled, labels, free, pending, seed)
        self._setting = ShardContext(task, seed, device)
        self._pieces = self._cut_up()
        self._tuned: dict[int, Predictions] = {}
        self._passes: tuple[Predictions, ...] = ()
        largest = self.visit(Check())
        if isinstance(task, MultiClass):
            self.row_max = torch.from_numpy(largest).to(self.device)
            self._pieces = [
                replace(p, row_max=largest[p.shard.start : p.shard.stop]) for p in self._pieces
            ]

    def _cut_up(self) -> list[ShardPiece]:
        labelled = np.sort(self.labelled)
        pending = np.sort(self.pending)

        def within(positions: np.ndarray, start: int, stop: int) -> np.ndarray:
            return positions[slice(*np.searchsorted(positions, (start, stop)))] - start

        return [
            ShardPiece(
                s,
                self.free[s.start : s.stop],
                within(labelled, s.start, s.stop),
                within(pending, s.start, s.stop),
            )
            for s in self.predictions
        ]

    def visit(self, job: ShardJob[T], pieces: Sequence[ShardPiece] | None = None) -> T:
        """The answer of the whole pool to a job."""
        calls = [(piece,) for piece in (pieces or self._pieces)]
        return job.join(self.engine.map(visit, calls, shared=(self._setting, job)))

    def per_row(self, function: Callable[[PoolView, slice], torch.Tensor]) -> torch.Tensor:
        import torch

        return torch.from_numpy(self.visit(PerRow(function))).to(self.device)

    def count_predicted(self, among: np.ndarray) -> np.ndarray:
        pieces = [replace(p, among=among[p.shard.start : p.shard.stop]) for p in self._pieces]
        return self.visit(CountPredicted(), pieces)

    def rows(self, which: Any) -> torch.Tensor:
        return self._take(PROBS, which)

    def feature_rows(self, which: Any) -> torch.Tensor:
        return self._take(FEATURES, which)

    def _take(self, name: str, which: Any) -> torch.Tensor:
        import torch

        where = which if isinstance(which, slice) else which.cpu().numpy()
        return full_precision(torch.from_numpy(self.predictions.take(name, where)).to(self.device))

    def columns(self, classes: list[int]) -> Iterable[tuple[int, torch.Tensor]]:
        for start in range(0, len(classes), COLUMNS):
            block = classes[start : start + COLUMNS]
            turned = self.per_row(partial(_columns, block)).T.contiguous()
            yield from zip(block, turned)

    def open(self, families: Sequence[Opening]) -> list[list[Any]]:
        return [self._open(*one) for one in families]

    def _open(
        self,
        strategy: Any,
        arms: Sequence[Arm],
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        from tailor.compute.galaxy_shards import open_galaxy

        if isinstance(strategy, ScoreStrategy) and type(strategy).open is ScoreStrategy.open:
            classes = [arm.klass for arm in arms]
            ranked = self.ranked(strategy, classes, [first_depth(n) for n in pulls])
            again = [lambda count, k=k: self.ranked(strategy, [k], [count])[0] for k in classes]
            return [RankedCursor(self, *one) for one in zip(ranked, pulls, again, strict=True)]
        if type(strategy) in (Galaxy, GalaxyAll):
            return open_galaxy(strategy, arms, self, rngs)
        opened: list[Cursor] = strategy.open(arms, self, pulls, rngs)
        return opened

    def ranked(
        self, strategy: ScoreStrategy, classes: Sequence[int | None], counts: Sequence[int]
    ) -> list[np.ndarray]:
        """For each class the positions of its best, in order."""
        pieces = self._with_needs(strategy)
        return [found.ids for found in self.visit(Lowest(strategy, classes, counts), pieces)]

    def _with_needs(self, strategy: ScoreStrategy) -> list[ShardPiece]:
        """The pieces, with what a family reads besides the predictions."""
        pieces = self._pieces
        if Need.FINETUNE in strategy.needs:
            epochs = int(getattr(strategy, "epochs", 2))
            if epochs not in self._tuned:
                self._tuned[epochs] = self._like_these(
                    self.finetune(epochs), "fine-tuned probabilities"
                )
            by_position = np.argsort(self.labelled)
            labels = self.labels[by_position]
            ends = np.searchsorted(self.labelled[by_position], [p.shard.stop for p in pieces])
            starts = [0, *ends[:-1].tolist()]
            tuned = self._tuned[epochs]
            pieces = [
                replace(p, tuned=t, labels=labels[a:b])
                for p, t, a, b in zip(pieces, tuned, starts, ends, strict=True)
            ]
        if Need.DROPOUT in strategy.needs:
            if not self._passes:
                self._passes = tuple(self._like_these(p, "a dropout pass") for p in self.dropout())
            pieces = [
                replace(p, passes=tuple(one[n] for one in self._passes))
                for n, p in enumerate(pieces)
            ]
        return pieces

    def _like_these(self, other: Predictions, what: str) -> Predictions:
        mine = self.predictions
        if (other.shape, other.shard) != (mine.shape, mine.shard):
            raise InputError(
                f"{what}: shape {other.shape} in shards of {other.shard} rows, the pool's "
                "predictions have "
                f"{mine.shape} in shards of {mine.shard}"
            )
        return other


def _columns(classes: list[int], view: PoolView, part: slice) -> torch.Tensor:
    return full_precision(view.probs[part][:, classes])
