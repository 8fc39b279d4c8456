"""The first batch of a run: examples that cover the pool, before there is a model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tailor.common.kmeans import Clusters, kmeans
from tailor.common.unit_features import unit_features

#: examples that are clustered, at least; all of a smaller pool
SAMPLE = 65_536
#: examples that are clustered for each one that is asked for, at least
SAMPLE_EACH = 4
#: rows that are read together
BLOCK = 8192

#: positions (n,) -> features (n, d)
FeatureRows = Callable[[np.ndarray], np.ndarray]


def coverage_start(
    rows: FeatureRows,
    free: np.ndarray,
    n: int,
    *,
    around: np.ndarray,
    seed: int,
    device: str = "cpu",
) -> np.ndarray:
    """(n,) positions of examples that stand for the pool, largest cluster first; all that are free
    where there are no more.

    k-means with a cluster for each of n examples and each of `around`, on unit features (measured
    from their mean, divided by their length), of a random sample: 65,536 examples or four for each
    that is asked for, whichever is more, and all of a smaller pool. From each cluster that holds
    none of `around` comes the free example nearest to its centre. Where there are fewer such
    clusters, since many examples are copies of others, the rest are random.

    Only the sample's rows are read, so that a pool in shards gives the same answer. Costs at most
    25 passes of sample * (n + around) distances.

    rows    positions (n,) int64 -> features (n, d), finite
    free    (f,) positions of what may be chosen, each once
    around  (m,) positions that are labelled or asked for already

    >>> import numpy as np
    >>> features = np.array([[0, 1], [0, 1.1], [0, 1.2], [3, 0], [3.1, 0], [3.2, 0]])
    >>> coverage_start(features.__getitem__, np.arange(1, 6), 1, around=np.array([0]), seed=0)
    array([4])
    """
    rng = np.random.default_rng(seed)
    if len(free) <= n:
        return rng.permutation(free)
    count = max(SAMPLE, SAMPLE_EACH * n)
    sampled = rng.choice(free, min(count, len(free)), replace=False)
    positions = rng.permutation(np.concatenate([sampled, around]))
    clusters = _cluster(rows, positions, n + len(around), rng, device)
    is_around = np.isin(positions, around)
    chosen = positions[_nearest_to_centres(clusters, is_around)][:n]
    missing = n - len(chosen)
    if missing == 0:
        return chosen
    others = np.setdiff1d(free, chosen)
    return np.concatenate([chosen, rng.choice(others, missing, replace=False)])


def _cluster(
    rows: FeatureRows,
    positions: np.ndarray,
    count: int,
    rng: np.random.Generator,
    device: str,
) -> Clusters:
    """The clusters of positions (s,), in that order."""
    import torch

    # Read in the order in which they lie, which is what files are fast at.
    order = np.argsort(positions)
    blocks = []
    for start in range(0, len(order), BLOCK):
        places = order[start : start + BLOCK]
        blocks.append(torch.from_numpy(np.asarray(rows(positions[places]))))
    sums = [block.double().sum(0) for block in blocks]
    centre = torch.stack(sums).sum(0) / len(positions)
    unit = torch.empty(len(positions), len(centre))
    for start, block in zip(range(0, len(order), BLOCK), blocks, strict=True):
        unit[order[start : start + BLOCK]] = unit_features(block, centre).float()
    return kmeans(unit.to(device), count, rng)


def _nearest_to_centres(clusters: Clusters, is_around: np.ndarray) -> np.ndarray:
    """(c,) of each cluster with none of those, the largest first, the row nearest to its centre.

    is_around  (s,) bool: rows of examples that are labelled or asked for already
    """
    numbers = clusters.numbers.cpu().numpy()
    squared = clusters.squared.cpu().numpy()
    taken = np.unique(numbers[is_around])
    by_distance = np.lexsort((squared, numbers))
    clusters_there, firsts = np.unique(numbers[by_distance], return_index=True)
    nearest = by_distance[firsts]
    is_open = ~np.isin(clusters_there, taken)
    sizes = clusters.sizes[clusters_there]
    largest_first = np.argsort(-sizes[is_open], kind="stable")
    return nearest[is_open][largest_first]
