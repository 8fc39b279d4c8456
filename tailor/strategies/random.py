"""random: any unlabelled example, uniformly."""

from __future__ import annotations

import numpy as np

from tailor.selection.pool_view import PoolView
from tailor.strategies.base import Cursor, Idea, SeparateArms, random_free


class Random(SeparateArms):
    """Uniform sampling: the baseline that every other arm has to beat.

    Both kinds of task; reads nothing of the predictions. A take costs O(1) on average.

    Formula: every free example is taken with the same chance.

    Cost: next to nothing; no prediction is read.

    When to use: as the baseline of a comparison, and where the labels must stay a fair sample of
    the pool.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> view = ArrayView(task, np.full((3, 2), 0.5), free=np.array([False, False, True]))
    >>> Random().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    2
    """

    name = "random"
    idea = Idea.REPRESENTATIVE
    bytes_per_example = 8

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        return RandomCursor(view, rng)


class RandomCursor(Cursor):
    """Draws from what was free at the round's start, until it hits what is free now."""

    def __init__(self, view: PoolView, rng: np.random.Generator) -> None:
        super().__init__(view)
        self._rng = rng

    def take(self) -> int:
        return random_free(self.ledger.free, self.view.free_ids, self._rng)
