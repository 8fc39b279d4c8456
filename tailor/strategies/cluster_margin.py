"""cluster-margin: small margins, spread over clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import MULTI_CLASS, Arm, Cursor, Strategy
from tailor.strategies.softmax import Margin


class ClusterMargin(Strategy):
    """Cluster-Margin (Citovsky et al. 2021): of the `factor` x pulls examples of smallest margin,
    go round their clusters from the smallest up and take a random one from each.

    Clusters come from average linkage on the features, `members` examples to a cluster on average.
    Linkage costs the square of its input, so it sees at most `sample` of the candidates; the others
    join the nearest cluster's mean. When the candidates are used up, the next ones are clustered.
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
        return [ClusterMarginCursor(view, self, n, rng) for n, rng in zip(pulls, rngs, strict=True)]

    def cluster(self, features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """features (n, d) -> (n,) cluster numbers."""
        from scipy.cluster.hierarchy import fcluster, linkage

        count = len(features)
        if count < 2:
            return np.zeros(count, np.int64)
        features = features.astype(np.float64)
        features -= features.mean(0)  # an offset that all share would drown their differences below
        seen = np.sort(rng.permutation(count)[: self.sample])
        tree = linkage(features[seen], method="average")
        groups = max(1, len(seen) // self.members)
        found = np.unique(fcluster(tree, groups, criterion="maxclust"), return_inverse=True)[1]
        if len(seen) == count:
            return found
        means = np.stack([features[seen[found == g]].mean(0) for g in range(found.max() + 1)])
        clusters = np.argmin((means**2).sum(1) - 2 * features @ means.T, axis=1)
        clusters[seen] = found
        return clusters


class ClusterMarginCursor(Cursor):
    def __init__(
        self, view: PoolView, strategy: ClusterMargin, pulls: int, rng: np.random.Generator
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
                if self.ledger.free[self._queue[-1]]:
                    return self._queue[-1]
                self._queue.pop()
            self._fill()

    def _fill(self) -> None:
        """Cluster the next candidates and lay them out in the order of the round robin, first one
        last.
        """
        import torch

        if self._used == len(self._ranked):
            self._ranked = Margin().ranked(self.view, None, self._used + self._count)
        candidates = self._ranked[self._used : self._used + self._count]
        if len(candidates) == 0:
            raise Exhausted("every example has been taken")
        self._used += len(candidates)
        rows = self.view.feature_rows(torch.from_numpy(candidates.copy()).to(self.view.device))
        clusters = self._strategy.cluster(rows.cpu().numpy(), self._rng)
        self._queue = round_robin(candidates, clusters, self._rng)[::-1]


def round_robin(
    candidates: np.ndarray, clusters: np.ndarray, rng: np.random.Generator
) -> list[int]:
    """One random member of each cluster in turn, smallest cluster first, until all are used."""
    shuffled = rng.permutation(len(candidates))
    by_cluster = shuffled[np.argsort(clusters[shuffled], kind="stable")]
    numbers = clusters[by_cluster]
    turn = np.arange(len(numbers)) - np.searchsorted(numbers, numbers)  # which round takes each
    size = np.bincount(clusters)[numbers]
    return candidates[by_cluster[np.lexsort((numbers, size, turn))]].tolist()
