"""How well a pool is covered by what is labelled, pending or taken, weighted by the model's doubt.

"herding" picks by it alone; a round that covers what its arms propose picks among proposals by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tailor.selection.pool_view import PoolView
from tailor.strategies.feature_kernel import (
    KERNEL_UNITS,
    FeatureKernel,
    blocks,
    pair_distances,
)
from tailor.task import MultiClass

if TYPE_CHECKING:
    import torch

#: Weights of references are whole multiples of 1 / WEIGHT_UNITS, and at least one such unit.
WEIGHT_UNITS = 2**20
#: a weight times a value of the kernel, both in units, is in units of 1 / GAIN_UNITS
GAIN_UNITS = KERNEL_UNITS * WEIGHT_UNITS
#: More references could make a gain too large for 64 bits.
MOST_REFERENCES = 2**14
#: Products of rows in single precision decide which pairs are measured exactly: this is more than
#: their rounding takes away from a squared distance between unit rows.
SLACK = 1e-4


@dataclass(frozen=True)
class CoverPairs:
    """Examples and the references that they would cover better than anything does so far."""

    rows: np.ndarray  # (p,) int64, ascending: which of the examples
    references: np.ndarray  # (p,) int64: which of the references
    values: np.ndarray  # (p,) int64: the kernel's value between the two, in units


class KernelCover:
    """The cover of some references r: cov_r = max of k(x, r) over x labelled, pending or taken.

    What x would add is sum over r of U_r * max(0, k(x, r) - cov_r), where U_r is the model's doubt
    about r: one minus the margin between its two largest probabilities, or in a multi-label task
    the mean over classes of 1 - |2 p - 1|.

    kernel      how near examples are to each other
    references  (R,) positions, each once

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> features = np.array([[0.0, 1.0], [0.0, 2.0], [3.0, 0.0], [-3.0, -3.0]])
    >>> view = ArrayView(MultiClass(2), np.full((4, 2), 0.5), features,
    ...                  labelled=[0], labels=[[1, 0]])
    >>> cover = KernelCover.draw(view, np.random.default_rng(0))
    >>> int(cover.gains(np.array([1, 2, 3])).argmin())
    0
    """

    def __init__(self, kernel: FeatureKernel, references: np.ndarray) -> None:
        view = kernel.view
        self.kernel = kernel
        self.references = references
        #: (R,) int64: U_r, in units
        self.weights = doubt(view, references)
        #: (R,) int64: cov_r, in units
        self.covered = np.zeros(len(references), np.int64)
        rows = kernel.unit_rows(references)
        squared_norms = rows.square().sum(1)
        self._rows = rows
        self._rough_rows = rows.float()
        self._half_norms = squared_norms.float() / 2
        covering = [
            view.labelled,
            view.pending,
            view.ledger.taken,
        ]
        self.add(np.concatenate(covering))

    @classmethod
    def draw(
        cls,
        view: PoolView,
        rng: np.random.Generator,
        *,
        references: int = 4096,
        quantile: float = 0.05,
    ) -> KernelCover:
        """With random references, of what is free now (all of it where that is no more), and a
        kernel that fits this round. One example at least must be free.
        """
        order = draw_free(view, references, rng)
        kernel = FeatureKernel.fit(
            view,
            order,
            rng,
            quantile,
        )
        return cls(kernel, order)

    def add(self, positions: np.ndarray) -> None:
        """These (n,) are labelled, pending or taken now."""
        for block in blocks(positions):
            pairs = self.pairs(block)
            # A reference can stand in several pairs: each of them counts.
            np.maximum.at(self.covered, pairs.references, pairs.values)

    def gains(self, positions: np.ndarray) -> np.ndarray:
        """(n,) float64: what each of positions (n,) would add to the cover."""
        gains = [np.empty(0)]
        for block in blocks(positions):
            pairs = self.pairs(block)
            totals = np.zeros(len(block), np.int64)
            improvements = self.improvements(pairs)
            np.add.at(totals, pairs.rows, improvements)
            gains.append(totals / GAIN_UNITS)
        return np.concatenate(gains)

    def improvements(self, pairs: CoverPairs) -> np.ndarray:
        """(p,) int64: what each pair adds to the cover, in units of both kinds."""
        references = pairs.references
        covered = self.covered[references]
        rises = pairs.values - covered
        weights = self.weights[references]
        return weights * rises

    def pairs(self, positions: np.ndarray) -> CoverPairs:
        """Each of positions (n,) with the references that it is nearer to than what covers them.

        Memory grows with n * R: hand in a block at a time.
        """
        points = self.kernel.unit_rows(positions)
        rows, columns = self._near(points)
        squared = pair_distances(
            points,
            self._rows,
            rows,
            columns,
        )
        values = self.kernel.values(squared)
        values_on_host = values.cpu().numpy()
        rows_on_host = rows.cpu().numpy()
        references = columns.cpu().numpy()
        # The rough search lets some through that raise nothing.
        covered = self.covered[references]
        rises = values_on_host > covered
        return CoverPairs(
            rows=rows_on_host[rises], references=references[rises], values=values_on_host[rises]
        )

    def _near(self, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(rows, references) of all pairs that might raise a cover.

        |x - r|^2 < limit_r  <=>  x.r > (|x|^2 + |r|^2 - limit_r) / 2: one product of matrices.
        """
        import torch

        kernel = self.kernel
        covered = self.covered
        limits = kernel.squared_reach(covered) + SLACK
        is_full = covered == KERNEL_UNITS
        limits[is_full] = -np.inf  # nothing can be nearer
        half_limits = kernel.view.to_device(limits / 2)
        offsets = half_limits.float() - self._half_norms
        rough_points = points.float()
        norms = points.norm(dim=1, keepdim=True)
        squared_norms = norms.square()
        half_norms = squared_norms.float() / 2
        excess = torch.addmm(offsets, rough_points, self._rough_rows.T)
        is_near = excess > half_norms
        rows, columns = is_near.nonzero(as_tuple=True)
        return rows, columns


def draw_free(view: PoolView, count: int, rng: np.random.Generator) -> np.ndarray:
    """(n,) positions of up to `count` of what is free now, in random order.

    Only positions are drawn, so that a pool in shards gives the same ones.
    """
    free = np.flatnonzero(view.ledger.free)
    size = min(count, len(free))
    return rng.choice(free, size, replace=False)


def doubt(view: PoolView, positions: np.ndarray) -> np.ndarray:
    """(n,) int64: how unsure the model is of positions (n,), in units, and one unit at least: where
    it is sure of everything, a plain cover is left.
    """
    is_multi_class = isinstance(view.task, MultiClass)
    units = [np.empty(0, np.int64)]
    for block in blocks(positions):
        indices = view.to_device(block)
        rows = view.rows(indices)
        probs = rows.double()
        if is_multi_class:
            two_largest = probs.topk(2, dim=1).values
            first, second = two_largest.unbind(1)
            sureness = first - second
        else:
            signs = 2 * probs - 1
            sureness = signs.abs().mean(1)
        in_units = (1 - sureness) * WEIGHT_UNITS
        rounded = in_units.round().long()
        rounded.clamp_(min=1)
        on_host = rounded.cpu().numpy()
        units.append(on_host)
    return np.concatenate(units)
