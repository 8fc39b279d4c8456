"""coreset: the example farthest from everything labelled or taken."""

from __future__ import annotations

from collections.abc import Sequence
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
        import torch

        super().__init__(view)
        self._rng = rng
        self._norms = torch.cat([view.feature_rows(part).square().sum(1) for part in view.chunks()])
        self._centres = view.feature_rows(self._on_device(np.concatenate([view.labelled, view.pending])))
        self._known = torch.zeros(view.size, dtype=torch.int64, device=view.device)  # centres measured so far
        self._nearest = torch.full((view.size,), torch.inf, dtype=torch.float64, device=view.device)
        self._search: LazyLargest | None = None

    def take(self) -> int:
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        news = self.unseen()
        if len(news):
            import torch

            where = self._on_device(news.copy())
            self._centres = torch.cat([self._centres, self.view.feature_rows(where)])
            if self._search is not None:
                self._search.remove(where)
        if len(self._centres) == 0:
            return random_free(self.ledger.free, self.view.free_ids, self._rng)
        if self._search is None:
            self._search = self._start()
        return self._search.largest()[0]

    def _start(self) -> LazyLargest:
        import torch

        everyone = torch.arange(self.view.size, device=self.view.device)
        for part in self.view.chunks():
            self._measure(everyone[part], up_to=FIRST)
        search = LazyLargest(self._nearest.masked_fill(self.view.closed, -torch.inf), self._measure, self.view.ties)
        search.remove(self._on_device(self.ledger.taken.copy()))
        return search

    def _measure(self, positions: torch.Tensor, up_to: int | None = None) -> torch.Tensor:
        """(n,) squared distances to the nearest centre, brought up to date."""
        import torch

        known = self._known[positions]
        start, end = int(known.amin()), min(up_to or len(self._centres), len(self._centres))
        if start < end:
            centres = self._centres[start:end]
            products = self.view.feature_rows(positions) @ centres.T
            norms = self._norms[positions, None] + centres.square().sum(1)
            squared = norms - 2 * products
            # Rounding must not tell a copy from its original.
            squared.masked_fill_(squared <= 16 * torch.finfo(norms.dtype).eps * norms, 0)
            self._nearest[positions] = torch.minimum(self._nearest[positions], squared.double().amin(1))
            self._known[positions] = end
        return self._nearest[positions]

    def _on_device(self, positions: np.ndarray) -> torch.Tensor:
        import torch

        return torch.from_numpy(positions).to(self.view.device)
