"""coreset: the example farthest from everything labelled or taken."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tailor.errors import Exhausted
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Cursor, Idea, SeparateArms, random_free
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.lazy_maximum import SLACK, LazyLargest

if TYPE_CHECKING:
    import torch

#: centres that every example is measured against at the start, for a first bound
FIRST = 64
#: centres that examples are measured against together, which bounds the memory
TOGETHER = 4096


class Coreset(SeparateArms):
    """Greedy k-centre: the largest Euclidean distance, in features, to the nearest example that is
    labelled, pending or taken: max over i of min over centres c of |h_i - h_c|. With none of those,
    a random one.

    Sener and Savarese, "Active Learning for Convolutional Neural Networks: A Core-Set Approach",
    2018. Both kinds of task; needs features. Opening costs O(N d) for each of up to 64 centres; a
    take brings a few hundred distances up to date, and not all N.

    Formula: s(x) = min_c |h(x) − h(c)| over the centres c, in features h, largest first.

    Cost: distances of every example to the first 64 centres; later ones only where a bound does not
    decide.

    When to use: early rounds with good (pretrained) features: it covers the pool and needs no trust
    in the model's predictions. Outliers attract it.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> features = np.array([[0.0], [1.0], [5.0]])
    >>> view = ArrayView(task, np.full((3, 2), 0.5), features, labelled=[0], labels=[[1, 0]])
    >>> Coreset().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    2
    """

    name = "coreset"
    idea = Idea.REPRESENTATIVE
    needs = frozenset({Need.FEATURES})
    bytes_per_example = 48

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        return CoresetCursor(view, rng)

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        return OpeningWork(bytes_read=shape.feature_bytes)


class Farthest(Coreset):
    """FF-Active, farthest-first traversal in features: `coreset` by its other name.

    The two were proposed apart from each other and take the same examples. Use one of them in a
    set of families, not both.

    Geifman and El-Yaniv, "Deep Active Learning over the Long Tail", 2017. Both kinds of task; needs
    features.

    Formula: s(x) = min_c |h(x) − h(c)| over the centres c, in features h, largest first.

    Cost: that of `coreset`.

    When to use: where `coreset` is meant and your readers know it as farthest-first.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> features = np.array([[0.0], [1.0], [5.0]])
    >>> view = ArrayView(task, np.full((3, 2), 0.5), features, labelled=[0], labels=[[1, 0]])
    >>> Farthest().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    2
    """

    name = "farthest"


class CoresetCursor(Cursor):
    """Distances only fall as centres come, so few have to be brought up to date for each pick."""

    def __init__(self, view: PoolView, rng: np.random.Generator) -> None:
        super().__init__(view)
        self._rng = rng
        self._distances = CentreDistances(view)
        self._search: LazyLargest | None = None

    def take(self) -> int:
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        self._add_new_centres()
        if self._distances.count == 0:
            return random_free(self.ledger.free, self.view.free_ids, self._rng)
        if self._search is None:
            bounds = self._distances.first_bounds()
            self._search = LazyLargest(bounds, values=self._distances, ties=self.view.ties)
        index, _ = self._search.largest()
        return index

    def _add_new_centres(self) -> None:
        """What any arm took since the last call is a centre."""
        taken = self.unseen().copy()
        if len(taken) == 0:
            return
        positions = self.view.to_device(taken)
        self._distances.add_centres(positions)
        if self._search is not None:
            self._search.remove(positions)


class CentreDistances:
    """Squared distances to the nearest centre, and how many centres each knows of.

    |x - c|^2 is computed as |x|^2 + |c|^2 - 2 x.c, so that the work is a matrix product. What all
    features have in common, such as the 2,000 of a column of years, would make these terms large
    and their difference mere rounding. So everything is measured from an origin amid the first
    centres, and what decides in double precision.
    """

    def __init__(self, view: PoolView) -> None:
        self._view = view
        first_centres = np.concatenate([view.labelled, view.pending])
        positions = view.to_device(first_centres)
        self._centres = view.feature_rows(positions)  # (c, d)
        # Of every example, (N,): the squared distance to the nearest centre that it was measured
        # against, and how many those are.
        nearest = np.full(view.size, np.inf)
        self._nearest = view.to_device(nearest)
        centres_measured = np.zeros(view.size, np.int64)
        self._centres_measured = view.to_device(centres_measured)

    @property
    def count(self) -> int:
        """How many centres there are."""
        return len(self._centres)

    def add_centres(self, positions: torch.Tensor) -> None:
        import torch

        new_centres = self._view.feature_rows(positions)
        self._centres = torch.cat([self._centres, new_centres])

    def first_bounds(self) -> torch.Tensor:
        """(N,) float64: no squared distance is larger.

        Settles the origin: to be called once, when there is a centre and before anything is loaded.
        """
        import torch

        view = self._view
        first = self._centres[:FIRST]
        self._origin = first.double().mean(0)
        bounds_of = partial(_bounds, first, self._origin)
        bounds = view.per_row(bounds_of)
        bounds.masked_fill_(view.closed, -torch.inf)
        taken = view.ledger.taken.copy()
        positions = view.to_device(taken)
        bounds[positions] = -torch.inf
        return bounds

    def load(self, ids: torch.Tensor) -> torch.Tensor:
        self._ids = ids
        features = self._view.feature_rows(ids)
        self._points = Points(features.double(), self._origin)
        # From the fewest on: to measure some against a centre twice does no harm.
        counts = self._centres_measured[ids]
        fewest = counts.amin()
        return self._measure(int(fewest))

    def renew(self) -> torch.Tensor:
        # Those at hand are always measured together, so the first speaks for all.
        first = self._ids[0]
        count = self._centres_measured[first]
        return self._measure(int(count))

    def _measure(self, start: int) -> torch.Tensor:
        """(n,) of those at hand, which were measured against all centres before `start`."""
        import torch

        ids = self._ids
        nearest = self._nearest[ids]
        for first in range(start, self.count, TOGETHER):
            end = first + TOGETHER
            features = self._centres[first:end]
            centres = Points(features.double(), self._origin)
            distances = self._points.squared_distances_to(centres)
            nearest_of_these = distances.amin(1)
            nearest = torch.minimum(nearest, nearest_of_these)
        self._nearest[ids] = nearest
        self._centres_measured[ids] = self.count
        return nearest


class Points:
    """The features (n, d) of some examples, measured from an origin (d,), and their squared norms
    (n,).
    """

    def __init__(self, features: torch.Tensor, origin: torch.Tensor) -> None:
        origin = origin.to(features.dtype)
        self.rows = features - origin
        self.norms = self.rows.square().sum(1)

    def squared_distances_to(self, centres: Points) -> torch.Tensor:
        """(n, c), in the precision of these points; 0 where it could be mere rounding."""
        import torch

        sums = self.norms[:, None] + centres.norms
        products = self.rows @ centres.rows.T
        squared = sums - 2 * products
        # Rounding must not tell a copy from its original.
        epsilon = torch.finfo(sums.dtype).eps
        rounding = 16 * epsilon * sums
        return squared.masked_fill_(squared <= rounding, 0)


def _bounds(
    centres: torch.Tensor,
    origin: torch.Tensor,
    view: PoolView,
    part: slice,
) -> torch.Tensor:
    """(n,) float64: no squared distance to the nearest of centres (c, d) is larger."""
    features = view.feature_rows(part)
    points = Points(features, origin)
    centre_points = Points(centres, origin)
    distances = points.squared_distances_to(centre_points)
    squared, nearest = distances.min(1)
    # Rounding grows with the terms that went into the distance, not with the distance itself.
    nearest_norms = centre_points.norms[nearest]
    terms = points.norms + nearest_norms
    bounds = squared + SLACK * terms
    return bounds.double()
