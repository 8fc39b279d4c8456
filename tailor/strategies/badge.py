"""badge: k-means++ draws in gradient-embedding space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tailor.errors import Exhausted
from tailor.selection.pool_view import CHUNK, Need, PoolView
from tailor.strategies.base import Arm, Cursor, Strategy, random_free
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.gradient_embeddings import Centres, parts, rough_squared_norms, squared_norms
from tailor.strategies.lazy_maximum import SLACK, LazyLargest

if TYPE_CHECKING:
    import torch


class Badge(Strategy):
    """BADGE: k-means++ in the space of gradient embeddings.

    The embedding of an example is the outer product of p - (the model's own label) and its
    features. The first centre is the example of largest norm; each further one is drawn with
    probability proportional to D^2, its squared distance from the nearest centre. Every example
    taken in this batch, by whichever arm, is a centre; so the largest norm is taken only where
    nothing was taken before.

    Ash et al., "Deep Batch Active Learning by Diverse, Uncertain Gradient Lower Bounds", 2020. Both
    kinds of task; needs probabilities and features. Opening costs O(N (K + d)); a take brings a few
    hundred distances up to date, and not all N.

    Formula: g(x) = (p(x) − e_ŷ) ⊗ h(x), with ŷ the predicted class (multi-label: the predicted set)
    and h the features; the next is drawn with P(x) ∝ min_c |g(x) − g(c)|² over the centres c.

    Cost: one pass for the norms; then the distances of a few hundred examples a pick, instead of
    all N.

    When to use: large batches with a network whose features are good: its picks are unsure and
    unlike each other at once.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> view = ArrayView(task, np.array([[0.9, 0.1], [0.5, 0.5], [0.8, 0.2]]), np.eye(3))
    >>> Badge().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    1
    """

    name = "badge"
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})
    bytes_per_example = 72

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        return [BadgeCursor(view, rng) for rng in rngs]

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        return OpeningWork(bytes_read=shape.probability_bytes + shape.feature_bytes)


class BadgeCursor(Cursor):
    """Draws in proportion to D^2 by racing clocks, so that few distances have to be known.

    Give every example a clock that rings at rate D^2, its squared distance to the nearest centre:
    the first to ring is a draw in proportion to D^2, and what the others have left of their
    (exponential) waiting is as good as new. A rate only falls as centres come, so a ringing time
    computed from an old rate is a lower bound on the true one: only the few examples whose bound
    comes up first have their distances brought up to date.
    """

    def __init__(self, view: PoolView, rng: np.random.Generator) -> None:
        super().__init__(view)
        self._rng = rng
        self._rough = rough_squared_norms(view)  # (N,)
        self._clocks = Clocks(view, self._rough, rng)
        self._race: LazyLargest | None = None

    def take(self) -> int:
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        new_centres = self.view.to_device(self.unseen().copy())
        if len(new_centres):
            self._clocks.add_centres(new_centres)
            if self._race is not None:
                self._race.remove(new_centres)
        if self.ledger.count == 0:
            return self._largest_norm()
        if self._race is None:
            bounds = self._clocks.first_bounds()
            self._race = LazyLargest(bounds, self._clocks, self.view.ties)
        index, value = self._race.largest()
        all_are_copies = value == -np.inf
        if all_are_copies:  # of what was taken: none of their clocks ever rings
            return random_free(
                self.ledger.free,
                self.view.free_ids,
                self._rng,
            )
        ringing_time = -value
        self._clocks.now = ringing_time
        return index

    def _largest_norm(self) -> int:
        """Rough norms leave a few rivals, of which the exact ones decide."""
        import torch

        rough = self._rough.masked_fill(self.view.closed, -1)
        # Both the largest and a rival may be off by SLACK, hence twice as much.
        tolerance = 1 - 2 * SLACK
        least = rough.amax() * tolerance
        is_rival = rough >= least
        rivals = is_rival.nonzero().squeeze(1)
        chunks = []
        for ids in rivals.split(CHUNK):
            embeddings = parts(self.view, ids)
            chunks.append(squared_norms(embeddings))
        norms = torch.cat(chunks)
        is_largest = norms == norms.amax()
        largest = rivals[is_largest].cpu().numpy()
        first_by_ties = self.view.ties[largest].argmin()
        return int(largest[first_by_ties])


class Clocks:
    """A clock for every example. Values are minus ringing times, so that the largest rings first.

    What is kept of a clock holds from its `since` on: the waiting still to go, the rate, and how
    many centres that rate knows of. Between two draws no time passes, however many centres come.

    rough  (N,) squared norms, for the first bounds
    """

    def __init__(self, view: PoolView, rough: torch.Tensor, rng: np.random.Generator) -> None:
        import torch

        self.now = 0.0
        self._view = view
        self._rough = rough
        self._centres = Centres(view)
        # Drawn by NumPy, so that the picks are the same on every device.
        drawn = rng.standard_exponential(view.size)
        waiting = torch.from_numpy(drawn).to(view.device)
        self._arrivals = waiting.new_empty(0)  # when each centre came
        # Of every clock, (N,):
        self._waiting = waiting
        self._since = torch.zeros_like(waiting)
        self._rate = torch.full_like(waiting, torch.inf)
        self._centres_counted = torch.zeros(
            view.size,
            dtype=torch.int64,
            device=view.device,
        )
        # Of those at hand, all of which were stopped at the same time:
        self._ids = self._centres_counted[:0]

    def add_centres(self, positions: torch.Tensor) -> None:
        import torch

        self._centres.add(positions)
        count = len(positions)
        came_now = self._arrivals.new_full((count,), self.now)
        self._arrivals = torch.cat([self._arrivals, came_now])

    def first_bounds(self) -> torch.Tensor:
        """Before any distance is known: D <= own norm + the smallest norm of a centre."""
        import torch

        norms = self._rough.double().sqrt()
        smallest = self._centres.norms.amin().sqrt()
        largest_distances = norms + smallest
        rate = largest_distances.square() * (1 + SLACK)
        ringing_times = self._waiting / rate
        bounds = -ringing_times.masked_fill(self._view.closed, torch.inf)
        ledger = self._view.ledger
        taken = self._view.to_device(ledger.taken.copy())
        bounds[taken] = -torch.inf
        return bounds

    def load(self, ids: torch.Tensor) -> torch.Tensor:
        """Brings clocks that stopped at different times up to date, centre by centre."""
        import torch

        self._store()
        self._ids = ids
        self._parts = parts(self._view, ids)
        self._norms = squared_norms(self._parts)
        counted = self._centres_counted[ids]
        since = self._since[ids, None]
        start = int(counted.amin())
        distances = self._distances(start)
        # A centre that a clock's rate counts already must not slow it down a second time.
        centres = torch.arange(start, self._centres.count, device=ids.device)
        is_counted = centres < counted[:, None]
        distances = distances.masked_fill_(is_counted, torch.inf)
        # After each centre's arrival the rate is the smallest distance so far.
        old_rate = self._rate[ids, None]
        rates = torch.cat([old_rate, distances], 1)
        falling = rates.cummin(1).values
        arrivals = self._arrivals[start:].maximum(since)
        times = torch.cat([since, arrivals], 1)
        now = times.new_full((len(ids), 1), self.now)
        ends = torch.cat([times[:, 1:], now], 1)
        spans = ends - times
        # A rate may be infinite, and infinity times an empty span is not a number.
        used_in_spans = torch.where(spans > 0, falling * spans, 0)
        used = used_in_spans.sum(1)
        left = self._waiting[ids] - used
        self._left = left.clamp_(min=0)
        self._rate_now = falling[:, -1]
        self._stop()
        return self._values()

    def renew(self) -> torch.Tensor:
        """All clocks at hand stopped at the same time, and the centres since then came just now."""
        import torch

        span = self.now - self._stopped
        used = self._rate_now * span
        left = self._left - used
        self._left = left.clamp_(min=0)
        if self._counted_at_stop < self._centres.count:
            distances = self._distances(self._counted_at_stop)
            nearest = distances.amin(1)
            self._rate_now = torch.minimum(self._rate_now, nearest)
        self._stop()
        return self._values()

    def _stop(self) -> None:
        """What is known of those at hand holds from now on."""
        self._stopped = self.now
        self._counted_at_stop = self._centres.count

    def _values(self) -> torch.Tensor:
        import torch

        waits = self._left / self._rate_now
        rings = self.now + waits
        ever_rings = self._rate_now > 0  # a copy of a centre never does
        return -torch.where(ever_rings, rings, torch.inf)

    def _store(self) -> None:
        """Keep what is known of those at hand, before others come."""
        if len(self._ids):
            self._waiting[self._ids] = self._left
            self._rate[self._ids] = self._rate_now
            self._since[self._ids] = self._stopped
            self._centres_counted[self._ids] = self._counted_at_stop

    def _distances(self, start: int) -> torch.Tensor:
        """(n, count - start) squared distances of those at hand to the centres from `start` on,
        float64.

        Rounding must not tell a copy from its original: it gets exactly 0.
        """
        import torch

        norms = self._norms[:, None] + self._centres.norms[start:]
        products = self._centres.products(self._parts, start)
        squared = norms - 2 * products
        epsilon = torch.finfo(norms.dtype).eps
        rounding = 16 * epsilon * norms
        return squared.masked_fill_(squared <= rounding, 0)
