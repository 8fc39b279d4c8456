"""Unit features of a random sample of the pool, for families that cluster or cover it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailor.common.unit_features import unit_features
from tailor.selection.pool_view import PoolView
from tailor.strategies.feature_kernel import blocks

if TYPE_CHECKING:
    import torch


class FeatureSample:
    """Random examples that are free, and in a small pool random ones that are labelled, pending or
    taken too: up to `count` in all.

    Unit features are measured from the sample's mean and divided by their length. Only positions
    are drawn, so that a pool in shards gives the same sample.
    """

    def __init__(
        self,
        view: PoolView,
        count: int,
        rng: np.random.Generator,
    ) -> None:
        import torch

        self.view = view
        #: (s,) positions, in random order
        self.positions = self._draw(count, rng)
        self._by_position = np.argsort(self.positions)
        features = []
        sums = []
        for positions in blocks(self.positions):
            block = self._features(positions)
            block_sum = block.double().sum(0)
            features.append(block)
            sums.append(block_sum)
        total = torch.stack(sums).sum(0)
        #: (d,) float64: what unit features are measured from
        self.centre = total / len(self.positions)
        unit_blocks = []
        for block in features:
            unit_block = unit_features(block, self.centre)
            unit_blocks.append(unit_block)
        #: (s, d) float64 unit features
        self.rows = torch.cat(unit_blocks)

    def _draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """(s,) positions: free ones first of all, others where there is room for them."""
        free = np.flatnonzero(self.view.ledger.free)
        free_count = min(count, len(free))
        free_drawn = rng.choice(free, free_count, replace=False)
        covering = self.covering
        room = count - free_count
        covering_count = min(room, len(covering))
        covering_drawn = rng.choice(covering, covering_count, replace=False)
        drawn = np.concatenate([free_drawn, covering_drawn])
        return rng.permutation(drawn)

    def _features(self, positions: np.ndarray) -> torch.Tensor:
        """(n, d) as the view has them."""
        indices = self.view.to_device(positions)
        return self.view.feature_rows(indices)

    def find(self, positions: np.ndarray) -> np.ndarray:
        """(n,) int64: the place of each of positions (n,) in the sample, -1 where it is not in
        it.
        """
        ordered = self.positions[self._by_position]
        places = np.searchsorted(ordered, positions)
        # Beyond the last one any place will do: what stands there is another position.
        is_beyond = places == len(ordered)
        places[is_beyond] = 0
        is_sampled = ordered[places] == positions
        sampled_places = self._by_position[places]
        return np.where(is_sampled, sampled_places, -1)

    @property
    def covering(self) -> np.ndarray:
        """(m,) positions that are labelled, pending or taken now."""
        view = self.view
        return np.concatenate(
            [
                view.labelled,
                view.pending,
                view.ledger.taken,
            ]
        )

    def unit_rows(self, positions: np.ndarray) -> torch.Tensor:
        """(n, d) float64 unit features of any positions (n,)."""
        features = self._features(positions)
        return unit_features(features, self.centre)
