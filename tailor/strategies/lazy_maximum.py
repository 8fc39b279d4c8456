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


class Rows(Protocol):
    """Values of some examples, which fall as the batch grows."""

    def load(self, ids: torch.Tensor) -> torch.Tensor:
        """These (n,) are at hand from now on, instead of those before -> their values today, (n,)
        float64.
        """

    def renew(self) -> torch.Tensor:
        """Today's values of those at hand, (n,) float64."""


class LazyLargest:
    """Greedy choice with old values as upper bounds (Minoux 1978).

    Values fall as the batch grows (a distance to the nearest centre, a submodular gain), so an old
    value bounds the new one. A few candidates with the highest bounds are kept at hand and up to
    date; as long as the best of them beats every bound outside, nothing else has to be computed.
    When none does, more are loaded.

    bounds  (N,) float64: no value is above its bound; -inf for what is not on offer
    ties    (N,) int64: of equal values the smallest wins
    """

    def __init__(self, bounds: torch.Tensor, rows: Rows, ties: np.ndarray) -> None:
        import torch

        self._bounds = bounds
        self._rows = rows
        self._ties = torch.from_numpy(ties).to(bounds.device)
        self._ids = torch.empty(0, dtype=torch.int64, device=bounds.device)
        self._gone = torch.empty(0, dtype=torch.bool, device=bounds.device)
        self._beyond = np.inf  # the highest bound outside

    def remove(self, positions: torch.Tensor) -> None:
        """These are taken: never offer them again."""
        import torch

        self._bounds[positions] = -torch.inf
        self._gone |= torch.isin(self._ids, positions)

    def largest(self) -> tuple[int, float]:
        """(position, value); value -inf where nothing is worth anything."""
        import torch

        if len(self._ids):
            values = self._rows.renew().masked_fill(self._gone, -torch.inf)
        else:
            values = self._load(BUFFER)
        size = BUFFER
        while True:
            top, at = values.max(0)
            best = float(top)
            if best > self._beyond or self._beyond == -np.inf:
                break
            self._bounds[self._ids] = values
            size *= 4
            if size > MOST:
                return self._search_all(best)
            values = self._load(size)
        found = int(self._ids[at])
        if size > BUFFER:
            self._bounds[self._ids] = values
            self._load(BUFFER)
        return found, best

    def _search_all(self, best: float) -> tuple[int, float]:
        """Bring every value up to date whose bound reaches the best one known."""
        rivals = (self._bounds >= best).nonzero().squeeze(1)
        for ids in rivals[~self._bounds[rivals].isneginf()].split(BUFFER):
            self._bounds[ids] = self._rows.load(ids)
        top = self._bounds.amax()
        winners = (self._bounds == top).nonzero().squeeze(1)
        found = int(winners[self._ties[winners].argmin()])
        self._load(BUFFER)
        return found, float(top)

    def _load(self, count: int) -> torch.Tensor:
        """Take the `count` with the highest bounds in hand, in the order of their ties, and note
        the next bound.
        """
        count = min(count, len(self._bounds))
        more = min(count + 1, len(self._bounds))
        highest, ids = self._bounds.topk(more)
        self._beyond = float(highest[count]) if more > count else -np.inf
        kept = ids[:count]
        self._ids = kept[self._ties[kept].argsort()]
        self._gone = self._bounds[self._ids].isneginf()
        return self._rows.load(self._ids).masked_fill(self._gone, float("-inf"))
