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

        self._view = view
        free = np.flatnonzero(view.ledger.free)
        free_drawn = rng.choice(free, min(count, len(free)), replace=False)
        covering = self.covering
        room = min(count - len(free_drawn), len(covering))
        covering_drawn = rng.choice(covering, room, replace=False)
        #: (s,) positions, in random order
        self.positions = rng.permutation(np.concatenate([free_drawn, covering_drawn]))
        features = []
        for positions in blocks(self.positions):
            features.append(view.feature_rows(view.to_device(positions)))
        sums = [block.double().sum(0) for block in features]
        self._centre = torch.stack(sums).sum(0) / len(self.positions)
        #: (s, d) float64 unit features
        self.rows = torch.cat([unit_features(block, self._centre) for block in features])

        self._by_position = np.argsort(self.positions)

    def find(self, positions: np.ndarray) -> np.ndarray:
        """(n,) int64: the place of each of positions (n,) in the sample, -1 where it is not in
        it.
        """
        ordered = self.positions[self._by_position]
        places = np.searchsorted(ordered, positions)
        places[places == len(ordered)] = 0
        is_sampled = ordered[places] == positions
        return np.where(is_sampled, self._by_position[places], -1)

    @property
    def covering(self) -> np.ndarray:
        """(m,) positions that are labelled, pending or taken now."""
        view = self._view
        return np.concatenate([view.labelled, view.pending, view.ledger.taken])

    def unit_rows(self, positions: np.ndarray) -> torch.Tensor:
        """(n, d) float64 unit features of any positions (n,)."""
        features = self._view.feature_rows(self._view.to_device(positions))
        return unit_features(features, self._centre)
