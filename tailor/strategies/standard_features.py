"""Features with mean 0 and variance 1, for families that fit something linear to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailor.selection.pool_view import PoolView
from tailor.strategies.feature_kernel import blocks

if TYPE_CHECKING:
    import torch

#: A feature whose standard deviation is a smaller share of its mean is constant but for rounding.
CONSTANT = 1e-7


class StandardFeatures:
    """x = (h - mean) / standard deviation, and a 1 at the end of every row.

    A feature that is the same everywhere becomes 0. So neither an offset nor a scale of the
    features changes what is fitted to them.

    mean   (d,) float64
    scale  (d,) float64: one over the standard deviation, 0 where that vanishes
    """

    def __init__(self, mean: torch.Tensor, scale: torch.Tensor) -> None:
        self.mean = mean
        self.scale = scale

    @classmethod
    def fit(cls, view: PoolView, positions: np.ndarray) -> StandardFeatures:
        """Mean and deviation of positions (n,), one at least."""
        import torch

        sums = []
        squares = []
        first = view.to_device(positions[:1])
        # Measured from an example: large offsets would leave nothing of the squares but rounding.
        origin = view.feature_rows(first).double()[0]
        for block in blocks(positions):
            indices = view.to_device(block)
            features = view.feature_rows(indices).double()
            rows = features - origin
            sums.append(rows.sum(0))
            squares.append(rows.square().sum(0))
        count = len(positions)
        offset = torch.stack(sums).sum(0) / count
        mean_square = torch.stack(squares).sum(0) / count
        variance = mean_square - offset.square()
        deviation = variance.clamp_(min=0).sqrt()
        mean = origin + offset
        least = CONSTANT * mean.abs()
        reciprocal = 1 / deviation
        scale = torch.where(deviation > least, reciprocal, 0)
        return cls(mean, scale)

    @property
    def width(self) -> int:
        """d + 1"""
        return len(self.mean) + 1

    def rows(self, view: PoolView, which: slice | torch.Tensor) -> torch.Tensor:
        """(n, d + 1) float64 of a slice or an index tensor."""
        from torch.nn.functional import pad

        features = view.feature_rows(which)
        rows = features.double() - self.mean
        rows *= self.scale
        return pad(rows, (0, 1), value=1.0)

    def rows_at(self, view: PoolView, positions: np.ndarray) -> torch.Tensor:
        """(n, d + 1) float64 of positions (n,)."""
        indices = view.to_device(positions)
        return self.rows(view, indices)

    def penalties(self, variance: float) -> torch.Tensor:
        """(d + 1,) what half the square of each weight costs, under the Gaussian prior that gives a
        linear function of these rows this variance; the last weight is free.
        """
        penalty = len(self.mean) / variance
        penalties = self.mean.new_full((self.width,), penalty)
        penalties[-1] = 0
        return penalties


def linear_values(
    features: StandardFeatures,
    weights: torch.Tensor,
    view: PoolView,
    part: slice,
) -> torch.Tensor:
    """(n,) float64: weights (d + 1,) times the rows of a part; a function for view.per_row."""
    rows = features.rows(view, part)
    return in_units(rows @ weights)


#: Numbers that rank examples are compared in these units, so that rounding does not order copies.
UNITS = 2.0**32


def in_units(numbers: torch.Tensor) -> torch.Tensor:
    """float64 -> whole numbers of units, float64."""
    scaled = numbers * UNITS
    return scaled.round_()
