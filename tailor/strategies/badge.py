"""badge: k-means++ draws in gradient-embedding space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tailor.errors import Exhausted
from tailor.strategies.base import Arm, Cursor, Strategy, random_free
from tailor.strategies.gradient import Centres, squared_norms
from tailor.strategies.lazy import LazyLargest
from tailor.view import Need, RoundView

if TYPE_CHECKING:
    import torch


class Badge(Strategy):
    """BADGE (Ash et al. 2020): the first centre is the example of largest gradient norm; each further one is drawn
    with probability proportional to its squared distance from the nearest centre. Every example taken in this batch,
    by whichever arm, is a centre; so the largest norm is taken only where nothing was taken before.
    """

    name = "badge"
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})

    def open(
        self, arms: Sequence[Arm], view: RoundView, pulls: Sequence[int], rngs: Sequence[np.random.Generator]
    ) -> list[Cursor]:
        return [BadgeCursor(view, rng) for rng in rngs]


class BadgeCursor(Cursor):
    """Draws in proportion to D^2 by racing clocks, so that few distances have to be known.

    Give every example a clock that rings at rate D^2, its squared distance to the nearest centre: the first to ring
    is a draw in proportion to D^2, and what the others have left of their (exponential) waiting is as good as new.
    A rate only falls as centres come, so a ringing time computed from an old rate is a lower bound on the true one:
    only the few examples whose bound comes up first have their distances brought up to date.
    """

    def __init__(self, view: RoundView, rng: np.random.Generator) -> None:
        import torch

        super().__init__(view)
        self._rng, self._now = rng, 0.0
        self._norms = squared_norms(view)  # (N,)
        doubles = {"dtype": torch.float64, "device": view.device}
        self._left = torch.from_numpy(rng.standard_exponential(view.size)).to(view.device)  # waiting still to go
        self._rate = torch.full((view.size,), torch.inf, **doubles)  # type: ignore[call-overload]
        self._since = torch.zeros(view.size, **doubles)  # type: ignore[call-overload]  # when left and rate were right
        self._known = torch.zeros(view.size, dtype=torch.int64, device=view.device)  # centres the rate knows of
        self._centres = Centres(view)
        self._centre_norms = self._norms.new_empty(0)
        self._arrivals = torch.zeros(0, **doubles)  # type: ignore[call-overload]
        self._race: LazyLargest | None = None

    def take(self) -> int:
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        self._add_centres()
        if self._centres.count == 0:
            norms = self._norms.masked_fill(self.view.closed, -1)
            largest = (norms == norms.amax()).nonzero().squeeze(1).cpu().numpy()
            return int(largest[self.view.ties[largest].argmin()])
        if self._race is None:
            self._race = self._start_race()
        index, value = self._race.largest()
        if value == -np.inf:  # all that is left are copies of what was taken
            return random_free(self.ledger.free, self.view.free_ids, self._rng)
        self._now = -value
        return index

    def _add_centres(self) -> None:
        import torch

        news = self.unseen()
        if len(news) == 0:
            return
        where = torch.from_numpy(news.copy()).to(self.view.device)
        self._centres.add(where)
        self._centre_norms = torch.cat([self._centre_norms, self._norms[where]])
        self._arrivals = torch.cat([self._arrivals, self._arrivals.new_full((len(news),), self._now)])
        if self._race is not None:
            self._race.remove(where)

    def _start_race(self) -> LazyLargest:
        """Before any distance is known: D <= own norm + the smallest norm of a centre."""
        import torch

        bound = (self._norms.double().sqrt() + self._centre_norms.double().amin().sqrt()).square()
        times = -(self._left / bound).masked_fill(self.view.closed, torch.inf)
        race = LazyLargest(times, self._ring, self.view.ties)
        race.remove(torch.from_numpy(self.ledger.taken.copy()).to(self.view.device))
        return race

    def _ring(self, positions: torch.Tensor) -> torch.Tensor:
        """Minus the time at which each clock rings, by today's distances."""
        import torch

        known = self._known[positions]
        start = int(known.amin())
        rates, arrivals = self._rate[positions], self._arrivals[start:]
        distances = self._distances(positions, start)
        already = torch.arange(start, self._centres.count, device=known.device) < known[:, None]
        distances = distances.double().masked_fill_(already, torch.inf)
        # After each centre's arrival the rate is the smallest distance so far.
        falling = torch.cat([rates[:, None], distances], 1).cummin(1).values
        since = self._since[positions]
        times = torch.cat([since[:, None], arrivals.maximum(since[:, None])], 1)
        spans = torch.cat([times[:, 1:], times.new_full((len(times), 1), self._now)], 1) - times
        used = torch.where(spans > 0, falling * spans, 0).sum(1)
        left = (self._left[positions] - used).clamp_(min=0)
        rate = falling[:, -1]
        self._left[positions], self._rate[positions] = left, rate
        self._since[positions], self._known[positions] = self._now, self._centres.count
        return -torch.where(rate > 0, self._now + left / rate, torch.inf)  # a copy of a centre never rings

    def _distances(self, positions: torch.Tensor, start: int) -> torch.Tensor:
        """(n, count - start) squared distances. Rounding must not tell a copy from its original: it gets exactly 0."""
        import torch

        norms = self._norms[positions, None] + self._centre_norms[start:]
        squared = norms - 2 * self._centres.products(positions, start)
        return squared.masked_fill_(squared <= 16 * torch.finfo(norms.dtype).eps * norms, 0)
