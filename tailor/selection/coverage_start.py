"""The first batch of a run: examples that cover the pool, before there is a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tailor.common.kmeans import Clusters, kmeans
from tailor.common.unit_features import unit_features

if TYPE_CHECKING:
    import torch

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
    wanted = max(SAMPLE, SAMPLE_EACH * n)
    sample_size = min(wanted, len(free))
    sampled = rng.choice(free, sample_size, replace=False)
    in_sequence = np.concatenate([sampled, around])
    # k-means draws its first centres from the first rows, so these have to be random ones.
    positions = rng.permutation(in_sequence)
    unit_rows = _unit_rows(rows, positions)
    clusters = kmeans(unit_rows.to(device), n + len(around), rng)
    is_around = np.isin(positions, around)
    nearest = _nearest_to_centres(clusters, is_around)
    chosen = positions[nearest[:n]]
    missing = n - len(chosen)
    if missing == 0:
        return chosen
    others = np.setdiff1d(free, chosen)
    random_others = rng.choice(others, missing, replace=False)
    return np.concatenate([chosen, random_others])


def _unit_rows(rows: FeatureRows, positions: np.ndarray) -> torch.Tensor:
    """(s, d) float32: unit features of positions (s,), measured from their mean."""
    import torch

    # Read in the order in which they lie, which is what files are fast at.
    order = np.argsort(positions)
    size = len(positions)
    parts = []
    blocks = []
    sums = []
    for start in range(0, size, BLOCK):
        end = start + BLOCK
        part = order[start:end]
        features = rows(positions[part])
        array = np.asarray(features)
        block = torch.from_numpy(array)
        block_sum = block.double().sum(0)
        parts.append(part)
        blocks.append(block)
        sums.append(block_sum)
    total = torch.stack(sums).sum(0)
    centre = total / size
    unit_rows = torch.empty(size, len(centre))
    for part, block in zip(parts, blocks, strict=True):
        # A block at a time, since unit features are made in double precision.
        unit_block = unit_features(block, centre)
        unit_rows[part] = unit_block.float()
    return unit_rows


def _nearest_to_centres(clusters: Clusters, is_around: np.ndarray) -> np.ndarray:
    """(c,) of each cluster with none of those, the largest first, the row nearest to its centre.

    is_around  (s,) bool: rows of examples that are labelled or asked for already
    """
    numbers = clusters.numbers.cpu().numpy()
    squared = clusters.squared.cpu().numpy()
    # By cluster, and within each by the distance from its centre: the first of each is nearest.
    order = np.lexsort((squared, numbers))
    ordered_numbers = numbers[order]
    cluster_numbers, firsts = np.unique(ordered_numbers, return_index=True)
    nearest = order[firsts]
    is_open = np.isin(cluster_numbers, numbers[is_around], invert=True)
    open_numbers = cluster_numbers[is_open]
    open_nearest = nearest[is_open]
    sizes = clusters.sizes[open_numbers]
    largest_first = np.argsort(-sizes, kind="stable")
    return open_nearest[largest_first]
