"""badge: k-means++ draws in gradient-embedding space."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailor.errors import Exhausted
from tailor.selection.pool_view import CHUNK, Need, PoolView
from tailor.strategies.base import Cursor, Idea, SeparateArms, random_free
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.gradient_embeddings import Centres, parts, rough_squared_norms, squared_norms
from tailor.strategies.lazy_maximum import SLACK, LazyLargest

if TYPE_CHECKING:
    import torch


class Badge(SeparateArms):
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
    idea = Idea.BOTH
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})
    bytes_per_example = 72

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        return BadgeCursor(view, rng)

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        bytes_read = shape.probability_bytes + shape.feature_bytes
        return OpeningWork(bytes_read=bytes_read)


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
        self._add_new_centres()
        if self.ledger.count == 0:
            return self._largest_norm()
        if self._race is None:
            bounds = self._clocks.first_bounds()
            self._race = LazyLargest(bounds, values=self._clocks, ties=self.view.ties)
        index, value = self._race.largest()
        # Copies of what was taken: none of their clocks ever rings.
        if value == -np.inf:
            return random_free(self.ledger.free, self.view.free_ids, self._rng)
        ringing_time = -value
        self._clocks.now = ringing_time
        return index

    def _add_new_centres(self) -> None:
        """What any arm took since the last call is a centre."""
        taken = self.unseen().copy()
        if len(taken) == 0:
            return
        positions = self.view.to_device(taken)
        self._clocks.add_centres(positions)
        if self._race is not None:
            self._race.remove(positions)

    def _largest_norm(self) -> int:
        """Rough norms leave a few rivals, of which the exact ones decide."""
        view = self.view
        rough = self._rough.masked_fill(view.closed, -1)
        # Both the largest and a rival may be off by SLACK, hence twice as much.
        tolerance = 1 - 2 * SLACK
        least = rough.amax() * tolerance
        is_rival = rough >= least
        rivals = is_rival.nonzero().squeeze(1)
        norms = self._exact_norms(rivals)
        is_largest = norms == norms.amax()
        largest = rivals[is_largest].cpu().numpy()
        ties = view.ties[largest]
        first_by_ties = ties.argmin()
        return int(largest[first_by_ties])

    def _exact_norms(self, ids: torch.Tensor) -> torch.Tensor:
        """(n,) squared norms of these, float64."""
        import torch

        norms = []
        # Embeddings are in double precision: a few at a time bound the memory.
        for chunk in ids.split(CHUNK):
            embeddings = parts(self.view, chunk)
            exact = squared_norms(embeddings)
            norms.append(exact)
        return torch.cat(norms)


class Clocks:
    """A clock for every example. Values are minus ringing times, so that the largest rings first.

    What is kept of a clock holds from its `since` on: the waiting still to go, the rate, and how
    many centres that rate knows of. Between two draws no time passes, however many centres come.

    rough  (N,) squared norms, for the first bounds
    """

    def __init__(
        self,
        view: PoolView,
        rough: torch.Tensor,
        rng: np.random.Generator,
    ) -> None:
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
        self._centres_counted = torch.zeros(view.size, dtype=torch.int64, device=view.device)
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

        view = self._view
        norms = self._rough.double().sqrt()
        smallest = self._centres.norms.amin().sqrt()
        largest_distances = norms + smallest
        # Raised by what rounding may have taken away, so that it stays a bound.
        squared = largest_distances.square()
        rate = squared * (1 + SLACK)
        ringing_times = self._waiting / rate
        offered = ringing_times.masked_fill(view.closed, torch.inf)
        bounds = -offered
        taken = view.ledger.taken.copy()
        positions = view.to_device(taken)
        bounds[positions] = -torch.inf
        return bounds

    def load(self, ids: torch.Tensor) -> torch.Tensor:
        """Brings clocks that stopped at different times up to date, centre by centre."""
        import torch

        self._store()
        self._ids = ids
        self._parts = parts(self._view, ids)
        self._norms = squared_norms(self._parts)
        counted = self._centres_counted[ids]
        start = int(counted.amin())
        rates = self._falling_rates(counted, start)
        spans = self._spans(start)
        # A rate may be infinite, and infinity times an empty span is not a number.
        has_passed = spans > 0
        used_in_spans = torch.where(has_passed, rates * spans, 0)
        used = used_in_spans.sum(1)
        left = self._waiting[ids] - used
        self._left = left.clamp_(min=0)
        self._rate_now = rates[:, -1]
        self._stop()
        return self._values()

    def _falling_rates(self, counted: torch.Tensor, start: int) -> torch.Tensor:
        """(n, 1 + centres from `start` on): the rates of those at hand, first as they were kept,
        then after each centre's arrival. counted (n,): how many centres the kept rates know of.
        """
        import torch

        distances = self._distances(start)
        # A centre that a clock's rate counts already must not slow it down a second time.
        centres = torch.arange(start, self._centres.count, device=counted.device)
        is_counted = centres < counted[:, None]
        distances = distances.masked_fill_(is_counted, torch.inf)
        # After each centre's arrival the rate is the smallest distance so far.
        kept = self._rate[self._ids, None]
        rates = torch.cat([kept, distances], 1)
        return rates.cummin(1).values

    def _spans(self, start: int) -> torch.Tensor:
        """As _falling_rates(): how long each of those rates held."""
        import torch

        since = self._since[self._ids, None]
        # A centre that came before a clock was stopped changes nothing before that time.
        arrivals = self._arrivals[start:].maximum(since)
        times = torch.cat([since, arrivals], 1)
        shape = (len(times), 1)
        now = times.new_full(shape, self.now)
        # Each rate holds until the next centre arrives, and the last one until now.
        next_arrivals = times[:, 1:]
        ends = torch.cat([next_arrivals, now], 1)
        return ends - times

    def renew(self) -> torch.Tensor:
        """All clocks at hand stopped at the same time, and the centres since then came just now."""
        import torch

        span = self.now - self._stopped
        used = self._rate_now * span
        left = self._left - used
        self._left = left.clamp_(min=0)
        start = self._counted_at_stop
        if start < self._centres.count:
            distances = self._distances(start)
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

        rate = self._rate_now
        waits = self._left / rate
        rings = self.now + waits
        # A copy of a centre never rings: its rate is 0.
        ever_rings = rate > 0
        ringing_times = torch.where(ever_rings, rings, torch.inf)
        return -ringing_times

    def _store(self) -> None:
        """Keep what is known of those at hand, before others come."""
        ids = self._ids
        if len(ids) == 0:
            return
        self._waiting[ids] = self._left
        self._rate[ids] = self._rate_now
        self._since[ids] = self._stopped
        self._centres_counted[ids] = self._counted_at_stop

    def _distances(self, start: int) -> torch.Tensor:
        """(n, count - start) squared distances of those at hand to the centres from `start` on,
        float64.

        Rounding must not tell a copy from its original: it gets exactly 0.
        """
        import torch

        # |g|^2 + |c|^2 - 2 g.c, so that the work is a matrix product.
        centres = self._centres
        centre_norms = centres.norms[start:]
        norms = self._norms[:, None] + centre_norms
        products = centres.products(self._parts, start)
        squared = norms - 2 * products
        epsilon = torch.finfo(norms.dtype).eps
        rounding = 16 * epsilon * norms
        return squared.masked_fill_(squared <= rounding, 0)
