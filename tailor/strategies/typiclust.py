"""typiclust: the most typical example of every cluster that holds no label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tailor.common.checks import check_whole
from tailor.common.kmeans import Clusters, assign, kmeans
from tailor.errors import Exhausted
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Arm, Cursor, Strategy
from tailor.strategies.costs import STORED, OpeningWork, PoolShape
from tailor.strategies.feature_kernel import BLOCK, blocks, squared_distances
from tailor.strategies.feature_sample import FeatureSample

if TYPE_CHECKING:
    import torch

#: Squared distances of unit rows below this are rounding: copies are at distance 0.
SAME = 1e-12
#: Mean distances are compared in these units, so that rounding does not order copies.
DISTANCE_UNITS = 2**32


class Typiclust(Strategy):
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

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        cursors: list[Cursor] = []
        for count, rng in zip(pulls, rngs, strict=True):
            cursors.append(TypiclustCursor(view, self, count, rng))
        return cursors

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        sample = min(self.sample, shape.examples)
        bytes_read = STORED * (sample + shape.labelled) * shape.features
        # One pass at the least: how many it takes depends on the features.
        flops = 2.0 * (sample + shape.labelled) * self.clusters * shape.features
        return OpeningWork(bytes_read=bytes_read, flops=flops)


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
        self._count_labels(self.unseen())
        while True:
            for cluster in self._in_order():
                position = self._most_typical(cluster)
                if position is not None:
                    return position
                self._has_free[cluster] = False
            self._draw()

    def _draw(self) -> None:
        self.unseen()  # all that is taken is counted below
        self.sample = FeatureSample(self.view, self._strategy.sample, self._rng)
        covering = self.sample.covering
        count = min(self._strategy.clusters, len(covering) + max(1, self._pulls))
        self._clusters = kmeans(self.sample.rows.float(), count, self._rng)
        #: (s,) the cluster of each example of the sample
        self.numbers = self._clusters.numbers.cpu().numpy()
        self._sizes = self._clusters.sizes
        self._has_free = self._sizes > 0
        self._labels = np.zeros(len(self._sizes), np.int64)
        self._count_labels(covering)
        self._queues: dict[int, list[int]] = {}

    def _count_labels(self, positions: np.ndarray) -> None:
        """Positions (n,) count as labels of their clusters."""
        places = self.sample.find(positions)
        sampled = places[places >= 0]
        self._labels += np.bincount(self.numbers[sampled], minlength=len(self._labels))
        for block in blocks(positions[places < 0]):
            rows = self.sample.unit_rows(block).float()
            numbers = nearest_clusters(rows, self._clusters)
            self._labels += np.bincount(numbers, minlength=len(self._labels))

    def _in_order(self) -> list[int]:
        """Clusters that may have a free example: with the fewest labels first, of those the
        largest.
        """
        clusters = np.flatnonzero(self._has_free)
        order = np.lexsort((clusters, -self._sizes[clusters], self._labels[clusters]))
        return clusters[order].tolist()

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
        rows = self.sample.rows[self.view.to_device(members)]
        distances = neighbour_distances(rows, self._strategy.neighbours)
        rounded = np.round(distances * DISTANCE_UNITS)
        positions = self.sample.positions[members]
        order = np.lexsort((self.view.ties[positions], rounded))
        ranked = positions[order]
        free = ranked[self.ledger.free[ranked]]
        return free[::-1].tolist()


def nearest_clusters(rows: torch.Tensor, clusters: Clusters) -> np.ndarray:
    """(n,) the number of the cluster whose centre is nearest to each of rows (n, d)."""
    numbers: np.ndarray = assign(rows, clusters.centres).numbers.cpu().numpy()
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
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        squared = squared_distances(block, rows)
        squared.masked_fill_(squared < SAME, 0)
        places = torch.arange(len(block), device=rows.device)
        squared[places, start + places] = torch.inf  # itself
        nearest = squared.topk(count, dim=1, largest=False).values
        means.append(nearest.sqrt().mean(1))
    distances: np.ndarray = torch.cat(means).cpu().numpy()
    return distances
