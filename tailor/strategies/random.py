"""random: any unlabelled example, uniformly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailor.selection.pool_view import PoolView
from tailor.strategies.base import Arm, Cursor, Strategy, random_free


class Random(Strategy):
    """Uniform sampling: the baseline that every other arm has to beat."""

    name = "random"

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        return [RandomCursor(view, rng) for rng in rngs]


class RandomCursor(Cursor):
    def __init__(self, view: PoolView, rng: np.random.Generator) -> None:
        super().__init__(view)
        self._rng = rng

    def take(self) -> int:
        return random_free(self.ledger.free, self.view.free_ids, self._rng)
