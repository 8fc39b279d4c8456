"""Gradient embeddings without building them.

The embedding of an example is the outer product of a = p - (the model's own label) and its features
h, K*d numbers. Inner products factor: <a h, a' h'> = (a.a')(h.h'), so norms, distances and cosines
need only the two small parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.selection.pool_view import PoolView

if TYPE_CHECKING:
    import torch


#: the two parts of some embeddings: a (n, K) and h (n, d)
Parts = tuple["torch.Tensor", "torch.Tensor"]


def parts(view: PoolView, which: slice | torch.Tensor) -> Parts:
    """Those of a slice or an index tensor, float64.

    Where features have an offset or probabilities are alike, embeddings differ by little beside
    their norms, which single precision would lose.
    """
    probs = view.rows(which)
    predicted = view.task.predicted(probs)
    residuals = probs.double() - predicted.double()
    features = view.feature_rows(which)
    return residuals, features.double()


def parts_with_labels(view: PoolView, which: torch.Tensor, labels: torch.Tensor) -> Parts:
    """As parts(), with true labels (n, K) in place of the model's own."""
    residuals = view.rows(which).double() - labels.double()
    features = view.feature_rows(which)
    return residuals, features.double()


def rough_parts(view: PoolView, which: slice | torch.Tensor) -> Parts:
    """As parts(), in the precision that the view has: for passes over the whole pool."""
    probs = view.rows(which)
    predicted = view.task.predicted(probs)
    labels = predicted.to(probs.dtype)
    residuals = probs - labels
    features = view.feature_rows(which)
    return residuals, features


def squared_norms(embeddings: Parts) -> torch.Tensor:
    """(n,) |a|^2 |h|^2."""
    a, h = embeddings
    squared_a = a.square().sum(1)
    squared_h = h.square().sum(1)
    return squared_a * squared_h


def rough_squared_norms(view: PoolView) -> torch.Tensor:
    """(N,) right to within lazy_maximum.SLACK of each."""
    return view.per_row(_rough_squared_norms)


def _rough_squared_norms(view: PoolView, part: slice) -> torch.Tensor:
    embeddings = rough_parts(view, part)
    return squared_norms(embeddings)


def unit_parts(embeddings: Parts) -> Parts:
    """The two parts, each row of length 1, or 0 where it vanishes."""
    from torch.nn.functional import normalize

    a, h = embeddings
    unit_a = normalize(a, dim=1, eps=1e-30)
    unit_h = normalize(h, dim=1, eps=1e-30)
    return unit_a, unit_h


def cosines(rows: Parts, others: Parts) -> torch.Tensor:
    """(n, m) cosines of embeddings with others, both given by unit_parts()."""
    return _inner_products(rows, others)


def _inner_products(rows: Parts, others: Parts) -> torch.Tensor:
    """(n, m) of embeddings with others."""
    a, h = rows
    other_a, other_h = others
    products = a @ other_a.T
    feature_products = h @ other_h.T
    # In place: these are the largest arrays of a pass.
    return products.mul_(feature_products)


class Centres:
    """A growing list of examples, their parts kept together for matrix products.

    count  how many there are
    norms  (count,) their squared norms
    """

    def __init__(self, view: PoolView) -> None:
        import torch

        self.view = view
        self.count = 0
        self.norms = torch.empty(0, dtype=torch.float64, device=view.device)
        # Both parts, with room for more than `count`. How wide they are, the first ones say.
        self._a = self.norms.new_empty(0, 0)
        self._h = self.norms.new_empty(0, 0)

    def add(self, positions: torch.Tensor) -> None:
        """positions (n,) int64."""
        import torch

        first = self.count
        end = first + len(positions)
        new_a, new_h = parts(self.view, positions)
        new_norms = squared_norms((new_a, new_h))
        self.norms = torch.cat([self.norms, new_norms])
        self._a = _with_room(self._a, new_a, end)
        self._h = _with_room(self._h, new_h, end)
        self._a[first:end] = new_a
        self._h[first:end] = new_h
        self.count = end

    def products(self, rows: Parts, start: int) -> torch.Tensor:
        """(n, count - start): inner products of embeddings, given by their parts, with the centres
        from `start` on.
        """
        end = self.count
        centre_a = self._a[start:end]
        centre_h = self._h[start:end]
        return _inner_products(rows, (centre_a, centre_h))


def _with_room(stored: torch.Tensor, new: torch.Tensor, needed: int) -> torch.Tensor:
    """stored (s, w), moved to a larger tensor where it has fewer rows than are needed; new (n, w)
    says of which width and type.
    """
    if needed <= len(stored):
        return stored
    # Twice what is needed: adding costs O(1) on average.
    room = max(64, 2 * needed)
    _, width = new.shape
    larger = new.new_empty(room, width)
    if len(stored):
        larger[: len(stored)] = stored
    return larger
