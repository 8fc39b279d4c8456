"""coreset: the example farthest from everything labelled or taken."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tailor.errors import Exhausted
from tailor.strategies.base import Arm, Cursor, Strategy, random_free
from tailor.strategies.lazy import LazyLargest
from tailor.view import Need, RoundView

if TYPE_CHECKING:
    import torch

#: centres that every example is measured against at the start, for a first bound
FIRST = 64


class Coreset(Strategy):
    """Greedy k-centre (Sener and Savarese 2018): the largest Euclidean distance, in features, to the nearest example
    that is labelled, pending or taken. With none of those, a random one."""

    name = "coreset"
    needs = frozenset({Need.FEATURES})

    def open(
        self, arms: Sequence[Arm], view: RoundView, pulls: Sequence[int], rngs: Sequence[np.random.Generator]
    ) -> list[Cursor]:
        return [CoresetCursor(view, rng) for rng in rngs]


class CoresetCursor(Cursor):
    """Distances only fall as centres come, so few have to be brought up to date for each pick."""

    def __init__(self, view: RoundView, rng: np.random.Generator) -> None:
        super().__init__(view)
        self._rng, self._distances = rng, Distances(view)
        self._search: LazyLargest | None = None

    def take(self) -> int:
        import torch

        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        news = torch.from_numpy(self.unseen().copy()).to(self.view.device)
        if len(news):
            self._distances.add_centres(news)
            if self._search is not None:
                self._search.remove(news)
        if self._distances.count == 0:
            return random_free(self.ledger.free, self.view.free_ids, self._rng)
        if self._search is None:
            self._search = LazyLargest(self._distances.first_bounds(), self._distances, self.view.ties)
        return self._search.largest()[0]


class Distances:
    """Squared distances to the nearest centre, and how many centres each knows of."""

    def __init__(self, view: RoundView) -> None:
        import torch

        self._view = view
        self._norms = view.per_row(_squared_norms)
        known = torch.from_numpy(np.concatenate([view.labelled, view.pending])).to(view.device)
        self._centres, self._centre_norms = view.feature_rows(known), self._norms[known]
        self._nearest = torch.full((view.size,), torch.inf, dtype=torch.float64, device=view.device)
        self._known = torch.zeros(view.size, dtype=torch.int64, device=view.device)

    @property
    def count(self) -> int:
        return len(self._centres)

    def add_centres(self, positions: torch.Tensor) -> None:
        import torch

        self._centres = torch.cat([self._centres, self._view.feature_rows(positions)])
        self._centre_norms = torch.cat([self._centre_norms, self._norms[positions]])

    def first_bounds(self) -> torch.Tensor:
        import torch

        first = self._centres[:FIRST], self._centre_norms[:FIRST]
        self._nearest = self._view.per_row(partial(_nearest_of, *first))
        self._known.fill_(len(first[0]))
        bounds = self._nearest.masked_fill(self._view.closed, -torch.inf)
        bounds[torch.from_numpy(self._view.ledger.taken.copy()).to(bounds.device)] = -torch.inf
        return bounds

    def load(self, ids: torch.Tensor) -> torch.Tensor:
        self._ids, self._rows = ids, self._view.feature_rows(ids)
        return self._measure(int(self._known[ids].amin()))

    def renew(self) -> torch.Tensor:
        return self._measure(int(self._known[self._ids[0]]))

    def _measure(self, start: int) -> torch.Tensor:
        import torch

        ids, centres = self._ids, self._centres[start:]
        if len(centres):
            found = nearest(self._rows, self._norms[ids], centres, self._centre_norms[start:])
            self._nearest[ids] = torch.minimum(self._nearest[ids], found)
            self._known[ids] = self.count
        return self._nearest[ids]


def nearest(rows: torch.Tensor, norms: torch.Tensor, centres: torch.Tensor, centre_norms: torch.Tensor) -> torch.Tensor:
    """(n,) float64: squared distances of rows (n, d) to the nearest of centres (c, d), squared norms given."""
    import torch

    sums = norms[:, None] + centre_norms
    squared = sums - 2 * (rows @ centres.T)
    # Rounding must not tell a copy from its original.
    return squared.masked_fill_(squared <= 16 * torch.finfo(sums.dtype).eps * sums, 0).double().amin(1)


def _squared_norms(view: RoundView, part: slice) -> torch.Tensor:
    return view.feature_rows(part).square().sum(1)


def _nearest_of(centres: torch.Tensor, centre_norms: torch.Tensor, view: RoundView, part: slice) -> torch.Tensor:
    return nearest(view.feature_rows(part), _squared_norms(view, part), centres, centre_norms)
