"""cluster-margin: small margins, spread over clusters."""

from __future__ import annotations

import numpy as np

from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import MULTI_CLASS, Cursor, Idea, SeparateArms
from tailor.strategies.margin import Margin


class ClusterMargin(SeparateArms):
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
    idea = Idea.BOTH
    tasks = MULTI_CLASS
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})

    def __init__(
        self,
        *,
        factor: int = 10,
        members: int = 10,
        sample: int = 4000,
    ) -> None:
        _check_at_least(1, "factor", factor)
        _check_at_least(1, "members", members)
        _check_at_least(2, "sample", sample)
        self.factor = factor
        self.members = members
        self.sample = sample

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        return ClusterMarginCursor(
            view,
            self,
            pulls,
            rng,
        )

    def cluster(self, features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """features (n, d) -> (n,) cluster numbers."""
        from scipy.cluster.hierarchy import fcluster, linkage

        count = len(features)
        if count < 2:
            return np.zeros(count, np.int64)
        # A copy, and centred: an offset that all share would drown their differences below.
        features = features.astype(np.float64)
        features -= features.mean(0)
        shuffled = rng.permutation(count)
        sampled = shuffled[: self.sample]
        sampled.sort()
        tree = linkage(features[sampled], method="average")
        clusters_wanted = len(sampled) // self.members
        most_clusters = max(1, clusters_wanted)
        numbers = fcluster(tree, most_clusters, criterion="maxclust")
        # 0, 1, ... without gaps
        _, sampled_clusters = np.unique(numbers, return_inverse=True)
        if len(sampled) == count:
            return sampled_clusters
        means = _cluster_means(features, sampled, sampled_clusters)
        clusters = _nearest_means(features, means)
        # Linkage has the last word on those that it saw.
        clusters[sampled] = sampled_clusters
        return clusters


def _check_at_least(least: int, option: str, value: int) -> None:
    if value < least:
        raise InputError(f"{option} is {value}: at least {least} is needed")


def _cluster_means(features: np.ndarray, rows: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """(c, d) the mean of each cluster.

    features  (n, d)
    rows      (s,) the rows of features that are clustered
    clusters  (s,) the cluster of each, 0 to c - 1
    """
    means = []
    count = clusters.max() + 1
    for cluster in range(count):
        members = rows[clusters == cluster]
        mean = features[members].mean(0)
        means.append(mean)
    return np.stack(means)


def _nearest_means(features: np.ndarray, means: np.ndarray) -> np.ndarray:
    """(n,) the number of the nearest of the means (c, d) to each row of features (n, d)."""
    # |x - m|^2 without |x|^2, which is the same for all means.
    squared_means = (means**2).sum(1)
    products = 2 * features @ means.T
    distances = squared_means - products
    return np.argmin(distances, axis=1)


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
        picks = max(1, pulls)
        self._count = strategy.factor * picks
        self._ranked = Margin().ranked(view, None, self._count)
        self._queue: list[int] = []
        if len(self._ranked):
            self._fill()

    def take(self) -> int:
        while True:
            while self._queue:
                # It stays in the queue: whether it is taken, the ledger says the next time.
                candidate = self._queue[-1]
                if self.ledger.free[candidate]:
                    return candidate
                self._queue.pop()
            self._fill()

    def _fill(self) -> None:
        """Cluster the next candidates and queue them."""
        view = self.view
        start = self._used
        end = start + self._count
        if start == len(self._ranked):
            self._ranked = Margin().ranked(view, None, end)
        candidates = self._ranked[start:end]
        if len(candidates) == 0:
            raise Exhausted("every example has been taken")
        self._used += len(candidates)
        positions = view.to_device(candidates.copy())
        rows = view.feature_rows(positions)
        features = rows.cpu().numpy()
        clusters = self._strategy.cluster(features, self._rng)
        in_order = round_robin(candidates, clusters, self._rng)
        self._queue = in_order[::-1]


def round_robin(
    candidates: np.ndarray, clusters: np.ndarray, rng: np.random.Generator
) -> list[int]:
    """One random member of each cluster in turn, smallest cluster first, until all are used.

    candidates (n,) positions, clusters (n,) the number of each one's cluster.
    """
    shuffled = rng.permutation(len(candidates))
    # A stable sort keeps the members of a cluster in random order.
    shuffled_clusters = clusters[shuffled]
    within_shuffled = np.argsort(shuffled_clusters, kind="stable")
    by_cluster = shuffled[within_shuffled]
    numbers = clusters[by_cluster]
    # Its place within its cluster is the turn in which a candidate is taken.
    cluster_starts = np.searchsorted(numbers, numbers)
    places = np.arange(len(numbers))
    turns = places - cluster_starts
    cluster_sizes = np.bincount(clusters)
    sizes = cluster_sizes[numbers]
    # lexsort's last key counts most.
    order = np.lexsort((numbers, sizes, turns))
    ordered_rows = by_cluster[order]
    in_order = candidates[ordered_rows]
    return in_order.tolist()
