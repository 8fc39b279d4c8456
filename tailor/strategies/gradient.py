"""Gradient embeddings without building them.

The embedding of an example is the outer product of a = p - (the model's own label) and its features h, K*d numbers.
Inner products factor: <a h, a' h'> = (a.a')(h.h'), so norms, distances and cosines need only the two small parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailor.view import RoundView

if TYPE_CHECKING:
    import torch


def parts(view: RoundView, which: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """(a (n, K), h (n, d)) of a slice or an index tensor."""
    probs = view.rows(which)
    return probs - view.task.predicted(probs).to(probs.dtype), view.feature_rows(which)


def squared_norms(view: RoundView) -> torch.Tensor:
    """(N,) |a|^2 |h|^2."""
    return view.per_row(_squared_norms)


def _squared_norms(view: RoundView, part: slice) -> torch.Tensor:
    a, h = parts(view, part)
    return a.square().sum(1) * h.square().sum(1)


class Centres:
    """A growing list of examples, their parts kept together for matrix products."""

    def __init__(self, view: RoundView) -> None:
        self.view, self.count = view, 0
        self._store: tuple[torch.Tensor, ...] = ()

    def add(self, positions: torch.Tensor) -> None:
        new = parts(self.view, positions)
        needed = self.count + len(positions)
        if not self._store or needed > len(self._store[0]):
            room = max(64, 2 * needed)
            grown = tuple(part.new_empty(room, part.shape[1]) for part in new)
            for larger, old in zip(grown, self._store):
                larger[: self.count] = old[: self.count]
            self._store = grown
        for kept, part in zip(self._store, new):
            kept[self.count : needed] = part
        self.count = needed

    def products(self, rows: tuple[torch.Tensor, torch.Tensor], start: int) -> torch.Tensor:
        """(n, count - start): inner products of embeddings, given by their parts, with the centres from `start` on."""
        a, h = rows
        centre_a, centre_h = (kept[start : self.count] for kept in self._store)
        return (a @ centre_a.T).mul_(h @ centre_h.T)
