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

    def __init__(self, bounds: torch.Tensor, values: FallingValues, ties: np.ndarray) -> None:
        import torch

        self._bounds = bounds
        self._values = values
        self._ties = torch.from_numpy(ties).to(bounds.device)
        # At hand, in the order of ties, and which of those are taken:
        self._ids = torch.empty(0, dtype=torch.int64, device=bounds.device)
        self._gone = torch.empty(0, dtype=torch.bool, device=bounds.device)
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
            nothing_outside = self._highest_outside == -np.inf
            if best > self._highest_outside or nothing_outside:
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
        is_rival = self._bounds >= best
        rivals = is_rival.nonzero().squeeze(1)
        is_gone = self._bounds[rivals].isneginf()
        offered = rivals[~is_gone]
        for ids in offered.split(BUFFER):
            self._bounds[ids] = self._values.load(ids)
        top = self._bounds.amax()
        is_winner = self._bounds == top
        winners = is_winner.nonzero().squeeze(1)
        first_by_ties = self._ties[winners].argmin()
        position = int(winners[first_by_ties])
        self._load(BUFFER)
        return position, float(top)

    def _load(self, count: int) -> torch.Tensor:
        """Take the `count` with the highest bounds in hand, in the order of their ties, and note
        the next bound.
        """
        count = min(count, len(self._bounds))
        looked_at = min(count + 1, len(self._bounds))
        highest, ids = self._bounds.topk(looked_at)
        self._highest_outside = -np.inf
        if looked_at > count:
            self._highest_outside = float(highest[count])
        kept = ids[:count]
        by_ties = self._ties[kept].argsort()
        self._ids = kept[by_ties]
        self._gone = self._bounds[self._ids].isneginf()
        values = self._values.load(self._ids)
        return values.masked_fill(self._gone, float("-inf"))
