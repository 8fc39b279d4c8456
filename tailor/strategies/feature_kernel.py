"""How near two examples are in features: a Gaussian kernel whose radius shrinks as labels come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tailor.common.unit_features import unit_features
from tailor.selection.pool_view import PoolView

if TYPE_CHECKING:
    import torch

#: Values of the kernel are whole multiples of 1 / KERNEL_UNITS. Sums of whole numbers are exact in
#: any order, so that copies of an example stay equal and gains fall to exactly 0.
KERNEL_UNITS = 2**28
#: no radius is smaller
LEAST_RADIUS = 0.05
#: labelled examples whose nearest labelled neighbour is looked for
QUERIES = 1024
#: examples whose distances from each other give the radius where nothing is labelled
FEW = 64
#: rows that are measured together
BLOCK = 1024
#: One pair of so many is measured by itself; where there are more, a product of matrices, which
#: measures all of them, takes less time.
PRODUCT_SHARE = 2
#: the same on a GPU, which fetches both rows of a pair from memory
DEVICE_PRODUCT_SHARE = 64


class FeatureKernel:
    """k(x, r) = exp(-|x - r|^2 / radius^2), x and r unit features.

    Unit features are what is left of an example's features when `centre` is taken away, divided by
    its length. So an offset that all examples share tells nothing, and neither does the features'
    scale. An example that lies on the centre keeps the vector 0, at distance 1 from all others.

    centre  (d,) float64 on the view's device
    radius  above 0
    """

    def __init__(
        self,
        view: PoolView,
        centre: torch.Tensor,
        radius: float,
    ) -> None:
        self.view = view
        self.centre = centre
        self.radius = radius

    @classmethod
    def fit(
        cls,
        view: PoolView,
        sample: np.ndarray,
        rng: np.random.Generator,
        quantile: float = 0.05,
    ) -> FeatureKernel:
        """The kernel of a round.

        The centre is the sample's mean. The radius is a quantile of the distances from labelled
        examples to their nearest labelled neighbour (of 1,024 random ones where more are labelled),
        at least 0.05. Where fewer than two are labelled it is the median distance between the first
        64 of the sample, which is what two random labels would give.

        sample  (n,) positions of random examples, one at least
        """
        centre = mean_features_of(view, sample)
        # Distances are measured by the kernel itself, which has its centre before its radius.
        kernel = cls(view, centre, radius=LEAST_RADIUS)
        if len(view.labelled) >= 2:
            distances = kernel._labelled_distances(rng)
            radius = np.quantile(distances, quantile)
        elif len(sample) >= 2:
            # The sample is random, and so are its first.
            first_few = sample[:FEW]
            distances = kernel._sample_distances(first_few)
            radius = np.median(distances)
        else:
            radius = LEAST_RADIUS
        kernel.radius = max(float(radius), LEAST_RADIUS)
        return kernel

    def unit_rows(self, positions: np.ndarray) -> torch.Tensor:
        """(n, d) float64 unit features of positions (n,)."""
        indices = self.view.to_device(positions)
        features = self.view.feature_rows(indices)
        return unit_features(features, self.centre)

    def values(self, squared: torch.Tensor) -> torch.Tensor:
        """Squared distances (n,) -> the kernel's values (n,) int64, in units."""
        exponents = -squared / self.radius**2
        in_units = exponents.exp() * KERNEL_UNITS
        return in_units.round().long()

    def squared_reach(self, values: np.ndarray) -> np.ndarray:
        """Values (n,) in units -> (n,) float64: squared distances from which on no value is
        larger.
        """
        highest = np.maximum(values, 0.5)  # what is below half a unit counts as 0
        exponents = np.log(highest / KERNEL_UNITS)
        return -(self.radius**2) * exponents

    def _labelled_distances(self, rng: np.random.Generator) -> np.ndarray:
        """(n,) of up to QUERIES labelled examples, to the nearest other one."""
        import torch

        labelled = self.view.labelled
        queries = labelled
        if len(labelled) > QUERIES:
            queries = rng.choice(labelled, QUERIES, replace=False)
        query_rows = self.unit_rows(queries)
        query_positions = self.view.to_device(queries)
        nearest = torch.full_like(query_rows[:, 0], torch.inf)
        for positions in blocks(labelled):
            squared = squared_distances(query_rows, self.unit_rows(positions))
            # By position and not by distance: a copy of an example is a neighbour at distance 0.
            block_positions = self.view.to_device(positions)
            is_itself = query_positions[:, None] == block_positions
            squared.masked_fill_(is_itself, torch.inf)
            nearest = torch.minimum(nearest, squared.amin(1))
        on_host = nearest.cpu().numpy()
        return np.sqrt(on_host)

    def _sample_distances(self, sample: np.ndarray) -> np.ndarray:
        """Of every pair among a few."""
        rows = self.unit_rows(sample)
        squared = squared_distances(rows, rows)
        on_host = squared.cpu().numpy()
        pairs = np.triu_indices(len(sample), k=1)
        return np.sqrt(on_host[pairs])


def mean_features_of(view: PoolView, positions: np.ndarray) -> torch.Tensor:
    """(d,) float64: the mean features of positions (n,)."""
    import torch

    sums = []
    for block in blocks(positions):
        # In double precision: unit features are what is left when this mean is taken away, which
        # may be little.
        indices = view.to_device(block)
        features = view.feature_rows(indices)
        block_sum = features.double().sum(0)
        sums.append(block_sum)
    total = torch.stack(sums).sum(0)
    return total / len(positions)


def block_slices(count: int) -> Iterator[slice]:
    """Slices that follow each other, of up to BLOCK rows each and `count` rows in all."""
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        yield slice(start, stop)


def blocks(positions: np.ndarray) -> Iterator[np.ndarray]:
    """The positions (n,), up to BLOCK at a time."""
    for part in block_slices(len(positions)):
        yield positions[part]


def squared_distances(points: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """(n, c) of points (n, d) from centres (c, d), none below 0."""
    point_norms = points.square().sum(1)
    centre_norms = centres.square().sum(1)
    sums = point_norms[:, None] + centre_norms
    products = points @ centres.T
    squared = sums - 2 * products
    # Rounding can leave a little less than 0 between rows that are alike.
    return squared.clamp_(min=0)


def pair_distances(
    points: torch.Tensor,
    centres: torch.Tensor,
    rows: torch.Tensor,
    columns: torch.Tensor,
) -> torch.Tensor:
    """(p,) squared distances of some pairs: points[rows] from centres[columns]."""
    is_on_host = points.device.type == "cpu"
    if is_on_host:
        share = PRODUCT_SHARE
    else:
        share = DEVICE_PRODUCT_SHARE
    all_pairs = len(points) * len(centres)
    if share * len(rows) > all_pairs:
        all_squared = squared_distances(points, centres)
        return all_squared[rows, columns]
    if is_on_host:
        measure = _pairs_on_host
    else:
        measure = _pairs_on_device
    return measure(points, centres, rows, columns)


def _pairs_on_host(
    points: torch.Tensor,
    centres: torch.Tensor,
    rows: torch.Tensor,
    columns: torch.Tensor,
) -> torch.Tensor:
    """pair_distances() in a compiled loop."""
    import torch

    from tailor.strategies.pair_loops import squared_pair_distances

    squared = squared_pair_distances(
        points.contiguous().numpy(),
        centres.contiguous().numpy(),
        rows.numpy(),
        columns.numpy(),
    )
    return torch.from_numpy(squared)


def _pairs_on_device(
    points: torch.Tensor,
    centres: torch.Tensor,
    rows: torch.Tensor,
    columns: torch.Tensor,
) -> torch.Tensor:
    """pair_distances(), both rows of every pair fetched."""
    import torch

    squared = [points.new_empty(0)]
    for part in block_slices(len(rows)):
        # A block at a time bounds the memory.
        differences = points[rows[part]] - centres[columns[part]]
        block_squared = differences.square().sum(1)
        squared.append(block_squared)
    return torch.cat(squared)
