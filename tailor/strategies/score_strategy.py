"""A family that ranks the pool once by a number: most families are one of these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tailor.errors import InputError
from tailor.selection.pool_view import Need, PoolView, ShardVisitor
from tailor.strategies.base import Arm, Cursor, Strategy
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.ranking import (
    ClassScores,
    Rank,
    RankedCursor,
    RankShards,
    first_depth,
    lowest,
)

if TYPE_CHECKING:
    import torch


class ScoreStrategy(Strategy):
    """A family that ranks the pool once: one number an example, smallest first.

    A family of one arm writes `score`; a family of one arm a class writes `class_score`. A number
    may depend on nothing but its own row: over shards it is computed where the rows are, and each
    shard sends its best. Opening costs O(N) for each arm, besides the scores.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> class Flattest(ScoreStrategy):
    ...     name = "flattest"
    ...     def score(self, view):
    ...         return view.per_row(lambda view, part: view.rows(part).square().sum(1))
    >>> task = MultiClass(2)
    >>> view = ArrayView(task, np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]))
    >>> Flattest().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    1
    """

    def score(self, view: PoolView) -> torch.Tensor:
        """(N,) finite, on view.device."""
        raise InputError(f"{type(self).__name__} must define score")

    def class_score(self, column: torch.Tensor) -> torch.Tensor:
        """column (N,): the probabilities of one class -> (N,) finite."""
        raise InputError(f"{type(self).__name__} must define class_score")

    def scores(self, view: PoolView, classes: list[int | None]) -> Iterable[ClassScores]:
        """(class, (N,) its numbers) for each of the classes; None: the family's only arm."""
        if not self.per_class:
            yield None, self.score(view)
            return
        numbers = [klass for klass in classes if klass is not None]
        for klass, column in view.columns(numbers):
            yield klass, self.class_score(column)

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        if view.shards is not None:
            return self._open_over(
                view.shards,
                arms,
                view,
                pulls,
            )
        classes = [arm.klass for arm in arms]
        scored = self.scores(view, classes)
        cursors: list[Cursor] = []
        for (klass, scores), count in zip(scored, pulls, strict=True):
            depth = first_depth(count)
            cursor = RankedCursor(
                view,
                ranked=lowest(scores, depth, view),
                pulls=count,
                rank=self._ranks_on(view, klass, scores),
            )
            cursors.append(cursor)
        return cursors

    def _open_over(
        self,
        shards: ShardVisitor,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
    ) -> list[Cursor]:
        """One visit to the shards for all arms."""
        classes = [arm.klass for arm in arms]
        depths = [first_depth(count) for count in pulls]
        ranked = self._rank_shards(shards, classes, depths)
        cursors: list[Cursor] = []
        for klass, positions, count in zip(
            classes,
            ranked,
            pulls,
            strict=True,
        ):
            cursor = RankedCursor(
                view,
                ranked=positions,
                pulls=count,
                rank=partial(self._rank_one, shards, klass),
            )
            cursors.append(cursor)
        return cursors

    def _rank_one(
        self,
        shards: ShardVisitor,
        klass: int | None,
        count: int,
    ) -> np.ndarray:
        (positions,) = self._rank_shards(shards, [klass], [count])
        return positions

    def _rank_shards(
        self,
        shards: ShardVisitor,
        classes: Sequence[int | None],
        counts: Sequence[int],
    ) -> list[np.ndarray]:
        """For each class the positions of its best, in order."""
        # What every shard needs of the model is made once, before they are visited.
        epochs = None
        if Need.FINETUNE in self.needs:
            epochs = self.finetune_epochs
        needs_dropout = Need.DROPOUT in self.needs
        best = shards.visit(
            RankShards(self, classes, counts), finetune_epochs=epochs, dropout=needs_dropout
        )
        return [rows.positions for rows in best]

    def _ranks_on(
        self,
        view: PoolView,
        klass: int | None,
        scores: torch.Tensor,
    ) -> Rank:
        """count -> as many of the best, in order, for an arm whose shortlist is used up.

        A family of one arm keeps its scores, which may have cost dropout passes or a fine-tuning
        and may come out otherwise the next time. Columns of probabilities stay what they are, and
        the scores of one arm a class would take as much memory as those: they are computed again.
        """
        if klass is None:
            return lambda count: lowest(scores, count, view)
        return partial(self.ranked, view, klass)

    def ranked(
        self,
        view: PoolView,
        klass: int | None,
        count: int,
    ) -> np.ndarray:
        """Positions of the `count` best-ranked examples, in order; all that are free where there
        are fewer.
        """
        ((_, scores),) = self.scores(view, [klass])
        return lowest(scores, count, view)

    def ranked_classes(
        self,
        view: PoolView,
        classes: Sequence[int],
        count: int,
    ) -> list[np.ndarray]:
        """As ranked(), for several classes of a family with one arm a class."""
        scored = self.scores(view, list(classes))
        return [lowest(scores, count, view) for _, scores in scored]

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        return OpeningWork(bytes_read=shape.probability_bytes)
