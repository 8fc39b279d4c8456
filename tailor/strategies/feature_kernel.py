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
        import torch

        sums = []
        for positions in blocks(sample):
            rows = view.feature_rows(view.to_device(positions))
            sums.append(rows.double().sum(0))
        centre = torch.stack(sums).sum(0) / len(sample)
        kernel = cls(view, centre, LEAST_RADIUS)
        if len(view.labelled) >= 2:
            distances = kernel._labelled_distances(rng)
            radius = np.quantile(distances, quantile)
        elif len(sample) >= 2:
            distances = kernel._sample_distances(sample[:FEW])
            radius = np.median(distances)
        else:
            radius = LEAST_RADIUS
        kernel.radius = max(float(radius), LEAST_RADIUS)
        return kernel

    def unit_rows(self, positions: np.ndarray) -> torch.Tensor:
        """(n, d) float64 unit features of positions (n,)."""
        features = self.view.feature_rows(self.view.to_device(positions))
        return unit_features(features, self.centre)

    def values(self, squared: torch.Tensor) -> torch.Tensor:
        """Squared distances (n,) -> the kernel's values (n,) int64, in units."""
        exact = (-squared / self.radius**2).exp()
        return (exact * KERNEL_UNITS).round().long()

    def squared_reach(self, values: np.ndarray) -> np.ndarray:
        """Values (n,) in units -> (n,) float64: squared distances from which on no value is
        larger.
        """
        highest = np.maximum(values, 0.5)  # what is below half a unit counts as 0
        return -(self.radius**2) * np.log(highest / KERNEL_UNITS)

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
            is_itself = query_positions[:, None] == self.view.to_device(positions)
            squared.masked_fill_(is_itself, torch.inf)
            nearest = torch.minimum(nearest, squared.amin(1))
        return np.sqrt(nearest.cpu().numpy())

    def _sample_distances(self, sample: np.ndarray) -> np.ndarray:
        """Of every pair among a few."""
        rows = self.unit_rows(sample)
        squared = squared_distances(rows, rows).cpu().numpy()
        pairs = np.triu_indices(len(sample), k=1)
        return np.sqrt(squared[pairs])


def blocks(positions: np.ndarray) -> Iterator[np.ndarray]:
    """The positions (n,), up to BLOCK at a time."""
    for start in range(0, len(positions), BLOCK):
        yield positions[start : start + BLOCK]


def squared_distances(points: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """(n, c) of points (n, d) from centres (c, d), none below 0."""
    point_norms = points.square().sum(1)
    centre_norms = centres.square().sum(1)
    sums = point_norms[:, None] + centre_norms
    products = points @ centres.T
    return (sums - 2 * products).clamp_(min=0)


def pair_distances(
    points: torch.Tensor,
    centres: torch.Tensor,
    rows: torch.Tensor,
    columns: torch.Tensor,
) -> torch.Tensor:
    """(p,) squared distances of some pairs: points[rows] from centres[columns]."""
    import torch

    # A product of matrices costs less for each pair than fetching its two rows.
    is_dense = 64 * len(rows) > len(points) * len(centres)
    if is_dense:
        return squared_distances(points, centres)[rows, columns]
    squared = [points.new_empty(0)]
    for some_rows, some_columns in zip(rows.split(BLOCK), columns.split(BLOCK), strict=True):
        differences = points[some_rows] - centres[some_columns]
        squared.append(differences.square().sum(1))
    return torch.cat(squared)
