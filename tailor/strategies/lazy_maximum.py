"""The largest of many values that only fall, by looking at few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    import torch

#: candidates kept at hand and up to date
BUFFER = 256
#: candidates looked at together before every one that may still win is
MOST = 1024
#: A pass over the whole pool works in the precision it was given, and only what is at hand in
#: double precision. So bounds from such a pass are raised by this share of the terms that went into
#: them: more than rounding can take away.
SLACK = 1e-5


class FallingValues(Protocol):
    """Values of some examples, which fall as the batch grows."""

    def load(self, ids: torch.Tensor) -> torch.Tensor:
        """These (n,) are at hand from now on, instead of those before -> their values today, (n,)
        float64.
        """

    def renew(self) -> torch.Tensor:
        """Today's values of those at hand, (n,) float64."""


class LazyLargest:
    """Greedy choice with old values as upper bounds.

    Values fall as the batch grows (a distance to the nearest centre, a submodular gain), so an old
    value bounds the new one. A few candidates with the highest bounds are kept at hand and up to
    date; as long as the best of them beats every bound outside, nothing else has to be computed.
    When none does, more are loaded. Minoux, "Accelerated greedy algorithms for maximizing
    submodular set functions", 1978.

    bounds  (N,) float64: no value is above its bound; -inf for what is not on offer
    values  gives the values of those at hand
    ties    (N,) int64: of equal values the smallest wins
    """

    def __init__(
        self,
        bounds: torch.Tensor,
        values: FallingValues,
        ties: np.ndarray,
    ) -> None:
        import torch

        device = bounds.device
        self._bounds = bounds
        self._values = values
        self._ties = torch.from_numpy(ties).to(device)
        # At hand, in the order of ties, and which of those are taken:
        self._ids = torch.empty(0, dtype=torch.int64, device=device)
        self._gone = torch.empty(0, dtype=torch.bool, device=device)
        # The highest bound of what is not at hand:
        self._highest_outside = np.inf

    def remove(self, positions: torch.Tensor) -> None:
        """These are taken: never offer them again."""
        import torch

        self._bounds[positions] = -torch.inf
        taken_now = torch.isin(self._ids, positions)
        self._gone |= taken_now

    def largest(self) -> tuple[int, float]:
        """(position, value); value -inf where nothing is worth anything."""
        import torch

        if len(self._ids):
            renewed = self._values.renew()
            values = renewed.masked_fill(self._gone, -torch.inf)
        else:
            values = self._load(BUFFER)
        size = BUFFER
        while True:
            # max() gives the first of equal values, and those at hand stand in the order of ties.
            top, place = values.max(0)
            best = float(top)
            outside = self._highest_outside
            # Not where they are equal: one outside may come first by ties.
            if best > outside:
                break
            # Nothing is on offer outside, so the best at hand wins whatever it is.
            if outside == -np.inf:
                break
            # What was computed tightens the bounds, so that others come to hand.
            self._bounds[self._ids] = values
            size *= 4
            if size > MOST:
                return self._search_all(best)
            values = self._load(size)
        position = int(self._ids[place])
        # Back to a few, since all at hand are renewed for every pick.
        if size > BUFFER:
            self._bounds[self._ids] = values
            self._load(BUFFER)
        return position, best

    def _search_all(self, best: float) -> tuple[int, float]:
        """Bring every value up to date whose bound reaches the best one known."""
        bounds = self._bounds
        is_rival = bounds >= best
        rivals = is_rival.nonzero().squeeze(1)
        # Where the best is -inf itself, what is not on offer reaches it too.
        is_gone = bounds[rivals].isneginf()
        offered = rivals[~is_gone]
        for ids in offered.split(BUFFER):
            bounds[ids] = self._values.load(ids)
        top = bounds.amax()
        is_winner = bounds == top
        winners = is_winner.nonzero().squeeze(1)
        ties = self._ties[winners]
        first_by_ties = ties.argmin()
        position = int(winners[first_by_ties])
        self._load(BUFFER)
        return position, float(top)

    def _load(self, count: int) -> torch.Tensor:
        """Take the `count` with the highest bounds in hand, in the order of their ties, and note
        the next bound.
        """
        size = len(self._bounds)
        count = min(count, size)
        looked_at = min(count + 1, size)
        highest, positions = self._bounds.topk(looked_at)
        self._highest_outside = -np.inf
        if looked_at > count:
            self._highest_outside = float(highest[count])
        kept = positions[:count]
        ties = self._ties[kept]
        by_ties = ties.argsort()
        ids = kept[by_ties]
        bounds = self._bounds[ids]
        self._ids = ids
        self._gone = bounds.isneginf()
        values = self._values.load(ids)
        return values.masked_fill(self._gone, float("-inf"))
