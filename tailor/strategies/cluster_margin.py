"""cluster-margin: small margins, spread over clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import MULTI_CLASS, Arm, Cursor, Strategy
from tailor.strategies.margin import Margin


class ClusterMargin(Strategy):
    """Cluster-Margin: of the `factor` x pulls examples of smallest margin p_(1) - p_(2), go round
    their clusters from the smallest up and take a random one from each.

    Clusters come from average linkage on the features, `members` examples to a cluster on average.
    Linkage costs the square of its input, so it sees at most `sample` of the candidates; the others
    join the nearest cluster's mean. When the candidates are used up, the next ones are clustered.

    Citovsky et al., "Batch Active Learning at Scale", 2021. Multi-class; needs probabilities and
    features. Opening costs O(NK), and O(sample^2 d) for the clusters.

    Formula: candidates: the `factor` × pulls examples of smallest p₍₁₎ − p₍₂₎; from their clusters,
    smallest first, one each in turn.

    Cost: one pass for the margins, and average linkage, which grows with the square of `sample`.

    When to use: very large batches in multi-class tasks, where plain margin would take many
    near-copies.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> probs = np.array([[0.9, 0.1], [0.6, 0.4], [0.5, 0.5]])
    >>> view = ArrayView(task, probs, np.array([[0.0], [1.0], [1.0]]))
    >>> ClusterMargin(factor=1).arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    2
    """

    name = "cluster-margin"
    tasks = MULTI_CLASS
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})

    def __init__(self, *, factor: int = 10, members: int = 10, sample: int = 4000) -> None:
        for option, value, least in (
            ("factor", factor, 1),
            ("members", members, 1),
            ("sample", sample, 2),
        ):
            if value < least:
                raise InputError(f"{option} is {value}: at least {least} is needed")
        self.factor = factor
        self.members = members
        self.sample = sample

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        cursors: list[Cursor] = []
        for count, rng in zip(pulls, rngs, strict=True):
            cursors.append(ClusterMarginCursor(view, self, count, rng))
        return cursors

    def cluster(self, features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """features (n, d) -> (n,) cluster numbers."""
        from scipy.cluster.hierarchy import fcluster, linkage

        count = len(features)
        if count < 2:
            return np.zeros(count, np.int64)
        features = features.astype(np.float64)
        features -= features.mean(0)  # an offset that all share would drown their differences below
        shuffled = rng.permutation(count)
        sampled = np.sort(shuffled[: self.sample])
        tree = linkage(features[sampled], method="average")
        most_clusters = max(1, len(sampled) // self.members)
        numbers = fcluster(tree, most_clusters, criterion="maxclust")
        # 0, 1, ... without gaps
        _, sampled_clusters = np.unique(numbers, return_inverse=True)
        if len(sampled) == count:
            return sampled_clusters
        means = _cluster_means(features, sampled, sampled_clusters)
        # |x - m|^2 without |x|^2, which is the same for all means.
        squared_means = (means**2).sum(1)
        distances = squared_means - 2 * features @ means.T
        clusters = np.argmin(distances, axis=1)
        clusters[sampled] = sampled_clusters
        return clusters


def _cluster_means(
    features: np.ndarray,
    rows: np.ndarray,
    clusters: np.ndarray,
) -> np.ndarray:
    """(c, d) the mean of each cluster.

    features  (n, d)
    rows      (s,) the rows of features that are clustered
    clusters  (s,) the cluster of each, 0 to c - 1
    """
    means = []
    for cluster in range(clusters.max() + 1):
        members = rows[clusters == cluster]
        means.append(features[members].mean(0))
    return np.stack(means)


class ClusterMarginCursor(Cursor):
    """Holds a queue of candidates in the order of the round robin, the next one last."""

    def __init__(
        self,
        view: PoolView,
        strategy: ClusterMargin,
        pulls: int,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(view)
        self._strategy = strategy
        self._rng = rng
        self._used = 0
        self._count = strategy.factor * max(1, pulls)
        self._ranked = Margin().ranked(view, None, self._count)
        self._queue: list[int] = []
        if len(self._ranked):
            self._fill()

    def take(self) -> int:
        while True:
            while self._queue:
                candidate = self._queue[-1]
                if self.ledger.free[candidate]:
                    return candidate
                self._queue.pop()
            self._fill()

    def _fill(self) -> None:
        """Cluster the next candidates and queue them."""
        end = self._used + self._count
        if self._used == len(self._ranked):
            self._ranked = Margin().ranked(self.view, None, end)
        candidates = self._ranked[self._used : end]
        if len(candidates) == 0:
            raise Exhausted("every example has been taken")
        self._used += len(candidates)
        positions = self.view.to_device(candidates.copy())
        rows = self.view.feature_rows(positions)
        features = rows.cpu().numpy()
        clusters = self._strategy.cluster(features, self._rng)
        in_order = round_robin(candidates, clusters, self._rng)
        self._queue = in_order[::-1]


def round_robin(
    candidates: np.ndarray,
    clusters: np.ndarray,
    rng: np.random.Generator,
) -> list[int]:
    """One random member of each cluster in turn, smallest cluster first, until all are used.

    candidates (n,) positions, clusters (n,) the number of each one's cluster.
    """
    shuffled = rng.permutation(len(candidates))
    # A stable sort keeps the members of a cluster in random order.
    within_shuffled = np.argsort(clusters[shuffled], kind="stable")
    by_cluster = shuffled[within_shuffled]
    numbers = clusters[by_cluster]
    # Its place within its cluster is the turn in which a candidate is taken.
    cluster_starts = np.searchsorted(numbers, numbers)
    turns = np.arange(len(numbers)) - cluster_starts
    cluster_sizes = np.bincount(clusters)
    sizes = cluster_sizes[numbers]
    order = np.lexsort((numbers, sizes, turns))
    in_order = candidates[by_cluster[order]]
    return in_order.tolist()
