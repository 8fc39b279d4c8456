"""k-means on a device, the same each time for the same seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

#: rows whose distances from the centres are held at once
BLOCK = 8192
#: the first centres are drawn from so many rows for each of them, and from SEED_ROWS at least
SEED_ROWS_EACH = 4
SEED_ROWS = 8192
#: A squared distance below this share of the terms it is made of is rounding: a copy of a centre.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Clusters:
    """Rows in clusters."""

    centres: torch.Tensor  # (c, d)
    numbers: torch.Tensor  # (n,) int64: the cluster of each row
    squared: torch.Tensor  # (n,) squared distance of each row from its centre

    @property
    def sizes(self) -> np.ndarray:
        """(c,) int64, on the host; 0 where no row is nearest to a centre."""
        sizes = self.numbers.bincount(minlength=len(self.centres))
        on_host: np.ndarray = sizes.cpu().numpy()
        return on_host


def kmeans(
    rows: torch.Tensor,
    count: int,
    rng: np.random.Generator,
    iterations: int = 25,
) -> Clusters:
    """Rows (n, d), in random order, in up to `count` clusters.

    The first centres are drawn by k-means++ from the first rows; then Lloyd's iterations until no
    row changes its cluster, or so many of them. There are fewer clusters where fewer of the first
    rows differ.

    Arthur and Vassilvitskii, "k-means++: The Advantages of Careful Seeding", 2007.
    """
    seed_count = max(SEED_ROWS, SEED_ROWS_EACH * count)
    seed_rows = rows[:seed_count]
    centres = _first_centres(seed_rows, count, rng)
    clusters = assign(rows, centres)
    for _ in range(iterations):
        centres = _means(rows, clusters)
        moved = assign(rows, centres)
        is_same = moved.numbers == clusters.numbers
        clusters = moved
        if is_same.all():
            break
    return clusters


def assign(rows: torch.Tensor, centres: torch.Tensor) -> Clusters:
    """Each of rows (n, d) to the nearest of centres (c, d), the first of equals."""
    import torch

    centre_norms = centres.square().sum(1)
    numbers = []
    squared = []
    for block in rows.split(BLOCK):
        # |x|^2 is the same for all centres of a row, and is added to the smallest alone.
        partial = torch.addmm(
            centre_norms,
            block,
            centres.T,
            alpha=-2,
        )
        nearest = partial.min(1)
        row_norms = block.square().sum(1)
        distances = nearest.values + row_norms
        distances.clamp_(min=0)
        numbers.append(nearest.indices)
        squared.append(distances)
    return Clusters(centres, torch.cat(numbers), torch.cat(squared))


def _first_centres(rows: torch.Tensor, count: int, rng: np.random.Generator) -> torch.Tensor:
    """(c, d): the first row, then each drawn in proportion to its squared distance from the
    nearest centre so far.
    """
    import torch

    norms = rows.square().sum(1)
    nearest = torch.full_like(norms, torch.inf)
    last = 0
    chosen = [last]
    most = min(count, len(rows))
    while len(chosen) < most:
        sums = norms + norms[last]
        products = rows @ rows[last]
        squared = sums - 2 * products
        is_copy = squared <= ROUNDING * sums
        squared.masked_fill_(is_copy, 0)
        nearest = torch.minimum(nearest, squared)
        # Drawn by NumPy, so that devices differ by no more than rounding.
        on_host = nearest.double().cpu().numpy()
        totals = np.cumsum(on_host)
        total = totals[-1]
        if total == 0:
            break  # all others are copies of centres
        drawn = rng.random() * total
        # The right side, so that no row of weight 0 is drawn.
        place = np.searchsorted(totals, drawn, side="right")
        last = int(place)
        chosen.append(last)
    return rows[chosen]


def _means(rows: torch.Tensor, clusters: Clusters) -> torch.Tensor:
    """(c, d) the mean of each cluster; the old centre where a cluster is empty."""
    import torch

    count = len(clusters.centres)
    sizes = clusters.numbers.bincount(minlength=count)
    # Sorted by cluster and not added up in place, which on a GPU comes out otherwise each time.
    by_cluster = clusters.numbers.argsort(stable=True)
    sums = torch.segment_reduce(
        rows[by_cluster],
        "sum",
        lengths=sizes,
        axis=0,
        initial=0,
    )
    divisors = sizes.clamp(min=1)
    means = sums / divisors[:, None]
    is_empty = sizes == 0
    return torch.where(is_empty[:, None], clusters.centres, means)
