"""typiclust: the most typical example of every cluster that holds no label."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailor.common.checks import check_whole
from tailor.common.kmeans import Clusters, assign, kmeans
from tailor.errors import Exhausted
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Cursor, Idea, SeparateArms
from tailor.strategies.costs import STORED, OpeningWork, PoolShape
from tailor.strategies.feature_kernel import block_slices, blocks, squared_distances
from tailor.strategies.feature_sample import FeatureSample

if TYPE_CHECKING:
    import torch

#: Squared distances of unit rows below this are rounding: copies are at distance 0.
SAME = 1e-12
#: Mean distances are compared in these units, so that rounding does not order copies.
DISTANCE_UNITS = 2**32


class Typiclust(SeparateArms):
    """TypiClust: k-means with as many clusters as there are labels and picks, then from clusters
    that hold no label, the largest first, the most typical example.

    Typical is what has the smallest mean distance to its nearest neighbours within its cluster, in
    unit features (taken from the mean, divided by the length). What is labelled, pending or taken,
    by whichever arm, counts as a label of its cluster. When every cluster holds one, clusters with
    the fewest come first.

    A large pool is clustered by a random sample of what is free, from which all picks come; when
    all of it is taken, the next sample is drawn and clustered.

    Hacohen, Dekel and Weinshall, "Active Learning on a Budget: Opposite Strategies Suit High and
    Low Budgets", 2022. Both kinds of task; needs features.

    clusters    at most so many
    neighbours  nearest neighbours whose mean distance counts
    sample      examples that are clustered

    Formula: s(x) = mean of |x − y| over the nearest `neighbours` y of the cluster, smallest first.

    Cost: k-means on the sample, at most 25 passes of `sample` × `clusters` distances; then the
    distances within each cluster that a pick comes from.

    When to use: the first few labels, when the model is not worth asking and features are good.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> features = np.array([[0.0, 1.0], [0.0, 2.0], [3.0, 0.1], [3.0, 0.0], [3.0, -0.1]])
    >>> view = ArrayView(task, np.full((5, 2), 0.5), features, labelled=[0], labels=[[1, 0]])
    >>> Typiclust().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    3
    """

    name = "typiclust"
    idea = Idea.REPRESENTATIVE
    needs = frozenset({Need.FEATURES})
    bytes_per_example = 8

    def __init__(
        self,
        *,
        clusters: int = 500,
        neighbours: int = 20,
        sample: int = 32768,
    ) -> None:
        self.clusters = check_whole(clusters, "clusters")
        self.neighbours = check_whole(neighbours, "neighbours")
        self.sample = check_whole(sample, "sample")

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        return TypiclustCursor(
            view,
            self,
            pulls,
            rng,
        )

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        sample = min(self.sample, shape.examples)
        measured = sample + shape.labelled
        return OpeningWork(
            bytes_read=STORED * measured * shape.features,
            # One pass at the least: how many it takes depends on the features.
            flops=2.0 * measured * self.clusters * shape.features,
        )


class TypiclustCursor(Cursor):
    """Clusters a sample when it is opened, and ranks a cluster when a pick first comes from it."""

    def __init__(
        self,
        view: PoolView,
        strategy: Typiclust,
        pulls: int,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(view)
        self._strategy = strategy
        self._pulls = pulls
        self._rng = rng
        if self.ledger.left:
            self._draw()

    def take(self) -> int:
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        new_takes = self.unseen()
        self._count_labels(new_takes)
        while True:
            for cluster in self._in_order():
                position = self._most_typical(cluster)
                if position is not None:
                    return position
                self._has_free[cluster] = False
            # Something is free and none of it is in this sample: the next one holds some.
            self._draw()

    def _draw(self) -> None:
        self.unseen()  # all that is taken is counted below
        strategy = self._strategy
        sample = FeatureSample(self.view, strategy.sample, self._rng)
        self.sample = sample
        covering = sample.covering
        # A cluster for each label and each pick: so many have none to begin with.
        picks = max(1, self._pulls)
        wanted = len(covering) + picks
        clusters = kmeans(sample.rows.float(), min(strategy.clusters, wanted), self._rng)
        self._clusters = clusters
        #: (s,) the cluster of each example of the sample
        numbers = clusters.numbers
        self.numbers = numbers.cpu().numpy()
        sizes = clusters.sizes
        self._sizes = sizes
        self._has_free = sizes > 0
        self._labels = np.zeros(len(sizes), np.int64)
        self._count_labels(covering)
        self._queues: dict[int, list[int]] = {}

    def _count_labels(self, positions: np.ndarray) -> None:
        """Positions (n,) count as labels of their clusters."""
        places = self.sample.find(positions)
        is_sampled = places >= 0
        sampled = places[is_sampled]
        numbers = self.numbers[sampled]
        self._add_labels(numbers)
        others = positions[~is_sampled]
        for block in blocks(others):
            rows = self.sample.unit_rows(block)
            # In single precision, as the clusters were made.
            rough_rows = rows.float()
            numbers = nearest_clusters(rough_rows, self._clusters)
            self._add_labels(numbers)

    def _add_labels(self, numbers: np.ndarray) -> None:
        """A label more for each of the clusters (n,), which may repeat."""
        labels = self._labels
        labels += np.bincount(numbers, minlength=len(labels))

    def _in_order(self) -> list[int]:
        """Clusters that may have a free example: with the fewest labels first, of those the
        largest.
        """
        clusters = np.flatnonzero(self._has_free)
        sizes = self._sizes[clusters]
        # The last key counts most.
        keys = (
            clusters,
            -sizes,
            self._labels[clusters],
        )
        order = np.lexsort(keys)
        ordered = clusters[order]
        return ordered.tolist()

    def _most_typical(self, cluster: int) -> int | None:
        """The position of the cluster's most typical free example; None where none is free."""
        if cluster not in self._queues:
            members = np.flatnonzero(self.numbers == cluster)
            self._queues[cluster] = self._ranked(members)
        queue = self._queues[cluster]
        while queue:
            position = queue[-1]
            if self.ledger.free[position]:
                return position
            queue.pop()
        return None

    def _ranked(self, members: np.ndarray) -> list[int]:
        """Positions of the free ones among a cluster's members (m,), the most typical last."""
        sample = self.sample
        indices = self.view.to_device(members)
        rows = sample.rows[indices]
        distances = neighbour_distances(rows, self._strategy.neighbours)
        in_units = distances * DISTANCE_UNITS
        positions = sample.positions[members]
        keys = (
            self.view.ties[positions],
            np.round(in_units),
        )
        order = np.lexsort(keys)
        ranked = positions[order]
        is_free = self.ledger.free[ranked]
        free = ranked[is_free]
        # The end of a list is where taking one away is cheap.
        backwards = free[::-1]
        return backwards.tolist()


def nearest_clusters(rows: torch.Tensor, clusters: Clusters) -> np.ndarray:
    """(n,) the number of the cluster whose centre is nearest to each of rows (n, d)."""
    assigned = assign(rows, clusters.centres)
    numbers: np.ndarray = assigned.numbers.cpu().numpy()
    return numbers


def neighbour_distances(rows: torch.Tensor, neighbours: int) -> np.ndarray:
    """(m,) float64: the mean distance of each of rows (m, d) to the nearest others, so many of
    them or all; 0 for a row that is alone.
    """
    import torch

    count = min(neighbours, len(rows) - 1)
    if count == 0:
        return np.zeros(len(rows))
    means = []
    for part in block_slices(len(rows)):
        block = rows[part]
        squared = squared_distances(block, rows)
        is_copy = squared < SAME
        squared.masked_fill_(is_copy, 0)
        # No row is a neighbour of its own.
        places = torch.arange(len(block), device=rows.device)
        own_columns = part.start + places
        squared[places, own_columns] = torch.inf
        smallest = squared.topk(count, dim=1, largest=False)
        nearest = smallest.values.sqrt()
        means.append(nearest.mean(1))
    distances = torch.cat(means)
    on_host: np.ndarray = distances.cpu().numpy()
    return on_host
