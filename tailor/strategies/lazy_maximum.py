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
        self._ids = torch.empty(0, dtype=torch.int64, device=bounds.device)  # at hand, by ties
        self._gone = torch.empty(0, dtype=torch.bool, device=bounds.device)  # of those, taken
        self._highest_outside = np.inf  # the highest bound of what is not at hand

    def remove(self, positions: torch.Tensor) -> None:
        """These are taken: never offer them again."""
        import torch

        self._bounds[positions] = -torch.inf
        self._gone |= torch.isin(self._ids, positions)

    def largest(self) -> tuple[int, float]:
        """(position, value); value -inf where nothing is worth anything."""
        import torch

        if len(self._ids):
            values = self._values.renew().masked_fill(self._gone, -torch.inf)
        else:
            values = self._load(BUFFER)
        size = BUFFER
        while True:
            # max() gives the first of equal values, and those at hand stand in the order of ties.
            top, place = values.max(0)
            best = float(top)
            if best > self._highest_outside or self._highest_outside == -np.inf:
                break
            self._bounds[self._ids] = values
            size *= 4
            if size > MOST:
                return self._search_all(best)
            values = self._load(size)
        position = int(self._ids[place])
        if size > BUFFER:
            self._bounds[self._ids] = values
            self._load(BUFFER)
        return position, best

    def _search_all(self, best: float) -> tuple[int, float]:
        """Bring every value up to date whose bound reaches the best one known."""
        rivals = (self._bounds >= best).nonzero().squeeze(1)
        offered = rivals[~self._bounds[rivals].isneginf()]
        for ids in offered.split(BUFFER):
            self._bounds[ids] = self._values.load(ids)
        top = self._bounds.amax()
        winners = (self._bounds == top).nonzero().squeeze(1)
        position = int(winners[self._ties[winners].argmin()])
        self._load(BUFFER)
        return position, float(top)

    def _load(self, count: int) -> torch.Tensor:
        """Take the `count` with the highest bounds in hand, in the order of their ties, and note
        the next bound.
        """
        count = min(count, len(self._bounds))
        looked_at = min(count + 1, len(self._bounds))
        highest, ids = self._bounds.topk(looked_at)
        self._highest_outside = float(highest[count]) if looked_at > count else -np.inf
        kept = ids[:count]
        self._ids = kept[self._ties[kept].argsort()]
        self._gone = self._bounds[self._ids].isneginf()
        return self._values.load(self._ids).masked_fill(self._gone, float("-inf"))
