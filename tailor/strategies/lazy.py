"""The largest of many values that only fall, by looking at few of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

#: candidates kept at hand, so that the whole pool is scanned seldom
BUFFER = 2048
#: rows re-evaluated at first in a search; doubled while it goes on
BLOCK = 16


class LazyLargest:
    """Greedy choice with stale values as upper bounds (Minoux 1978).

    Values fall as the batch grows (a distance to the nearest centre, a submodular gain), so an old value is a bound
    on the new one. Only the candidates whose bound beats the best value known are evaluated again.

    bounds   (N,) float64: no value is above its bound
    refresh  positions (n,) tensor -> their values now, (n,) float64
    ties     (N,) int64: of equal values the smallest
    """

    def __init__(
        self, bounds: torch.Tensor, refresh: Callable[[torch.Tensor], torch.Tensor], ties: np.ndarray
    ) -> None:
        import torch

        self._bounds, self._refresh, self._ties = bounds, refresh, torch.from_numpy(ties).to(bounds.device)
        self._evaluated = torch.full((len(bounds),), -1, device=bounds.device)  # the epoch of each value
        self._epoch = 0
        self._gather(BUFFER)

    def remove(self, positions: torch.Tensor) -> None:
        """These are taken: never offer them again, and trust no value that was computed without them."""
        import torch

        self._bounds[positions] = -torch.inf
        self._near[torch.isin(self._ids, positions)] = -torch.inf
        self._epoch += 1

    def largest(self) -> tuple[int, float]:
        """(position, value), of equal values the one with the smallest tie; value -inf where nothing is left."""
        import torch

        block, buffer = BLOCK, BUFFER
        while True:
            top = float(self._near.amax())
            if self._beyond > -np.inf and top <= self._beyond:  # something outside the buffer may be as good
                self._bounds[self._ids] = self._near
                self._gather(buffer)
                buffer *= 4
                continue
            stale = (self._evaluated[self._ids] < self._epoch) & (self._near > -torch.inf)
            best = self._near == top
            if top == -np.inf or not bool((stale & best).any()):
                ids = self._ids[best]
                return int(ids[self._ties[ids].argmin()]), top
            next_up = torch.where(stale, self._near, -torch.inf).topk(min(block, len(self._near))).indices
            next_up = next_up[stale[next_up]]
            ids = self._ids[next_up]
            self._near[next_up] = self._refresh(ids)
            self._evaluated[ids] = self._epoch
            block *= 2

    def _gather(self, count: int) -> None:
        """Put the `count` candidates with the highest bounds into the buffer, and note the highest outside it."""
        count = min(count, len(self._bounds))
        more = min(count + 1, len(self._bounds))
        values, ids = self._bounds.topk(more)
        self._near, self._ids = values[:count].clone(), ids[:count].clone()
        self._beyond = float(values[count]) if more > count else -np.inf
