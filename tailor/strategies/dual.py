"""dual: doubt weighted by density while labels are few, plain doubt later."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tailor.common.checks import check_number, check_whole
from tailor.common.unit_features import unit_features
from tailor.errors import InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Cursor, Idea, SeparateArms
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.feature_kernel import LEAST_RADIUS, squared_distances
from tailor.strategies.kernel_cover import draw_free
from tailor.strategies.ranking import RankedCursor, first_depth, lowest
from tailor.strategies.standard_features import in_units
from tailor.task import MultiClass, Task

if TYPE_CHECKING:
    import torch


class Dual(SeparateArms):
    """DUAL: the model's doubt about an example, weighted by how many others are like it while
    labels are few, and plain doubt later.

    Doubt u is the error that the model expects of itself: 1 − max p, or in a multi-label task the
    mean over classes of min(p, 1 − p). Density is the mean of a Gaussian kernel between an
    example's unit features (taken from the mean, divided by the length) and those of random free
    examples, divided by the mean density of these. The share of plain doubt rises as the expected
    error's fall levels off: draw the learning curve E(n) = E₀ (1 + n / K)^−b through the error E₀
    of a model that knows nothing and the error today, after n labels. The share is 1 less its slope
    today over its slope at the first label, in which b cancels. So it follows from the round's
    predictions and labels alone, and a round that is replayed has the same.

    Donmez, Carbonell and Bennett, "Dual Strategy Active Learning", 2007. Theirs fits the density by
    a mixture of Gaussians and takes one example at a time. Both kinds of task; needs probabilities
    and features. The examples of a batch are ranked once and may be alike.

    share       of plain doubt, in [0, 1]; none: as the expected error says
    references  random free examples that the density is measured from
    quantile    of the distances between references: the kernel's radius, never below 0.05

    Formula: s(x) = share · u(x) + (1 − share) · density(x) · u(x), largest first, with
    share = 1 − (E / E₀) · K / (K + n), E the mean of u over what is free, E₀ = 1 − 1 / K
    (multi-label: 1 / 2).

    Cost: N × `references` distances, and one pass over the probabilities.

    When to use: few labels and outliers that plain uncertainty would waste them on.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> features = np.array([[0.0, 1.0], [0.1, 1.0], [-0.1, 1.0], [-1.0, -1.0]])
    >>> probs = np.array([[0.6, 0.4], [0.7, 0.3], [0.7, 0.3], [0.5, 0.5]])
    >>> view = ArrayView(task, probs, features)
    >>> [Dual(share=share).arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    ...  for share in (0.0, 1.0)]
    [0, 3]
    """

    name = "dual"
    idea = Idea.BOTH
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})
    bytes_per_example = 8

    def __init__(
        self,
        *,
        share: float | None = None,
        references: int = 512,
        quantile: float = 0.05,
    ) -> None:
        self.share = share
        if share is not None:
            self.share = _check_fraction(share, "share")
        self.references = check_whole(references, "references")
        self.quantile = _check_fraction(quantile, "quantile")

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        scores = self.scores(view, rng)
        rank = partial(_lowest_first, scores, view)
        return RankedCursor(
            view,
            ranked=rank(first_depth(pulls)),
            pulls=pulls,
            rank=rank,
        )

    def scores(self, view: PoolView, rng: np.random.Generator) -> torch.Tensor:
        """(N,) float64, smallest first."""
        doubts = view.per_row(_expected_errors)
        references = draw_free(view, self.references, rng)
        if len(references) == 0:
            return doubts
        share = self.share
        if share is None:
            share = moving_share(view, doubts)
        density = Density.fit(view, references, self.quantile)
        densities = view.per_row(density.of_rows)
        weights = share + (1 - share) * densities
        return -in_units(doubts * weights)

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        references = min(self.references, shape.examples)
        bytes_read = shape.probability_bytes + shape.feature_bytes
        # A multiplication and an addition for each feature of each pair.
        flops = 2.0 * shape.examples * references * shape.features
        return OpeningWork(bytes_read=bytes_read, flops=flops)


def moving_share(view: PoolView, doubts: torch.Tensor) -> float:
    """How much plain doubt counts in this round, in [0, 1]. doubts (N,) float64."""
    free = view.to_device(view.free_ids)
    expected_error = float(doubts[free].mean())
    uninformed = uninformed_error(view.task)
    # Expected errors are at most those of a model that knows nothing, but for rounding.
    remaining = min(1.0, expected_error / uninformed)
    classes = view.task.size
    slope = remaining * classes / (classes + len(view.labelled))
    return 1 - slope


def uninformed_error(task: Task) -> float:
    """The error that a model which knows nothing expects of itself."""
    if isinstance(task, MultiClass):
        return 1 - 1 / task.size
    return 0.5


@dataclass(frozen=True)
class Density:
    """How many others are like an example, as a multiple of what is usual in the pool."""

    centre: torch.Tensor  # (d,) float64, what features are measured from
    references: torch.Tensor  # (r, d) float64 unit features
    radius: float
    usual: float  # the mean kernel between two references

    @classmethod
    def fit(
        cls,
        view: PoolView,
        positions: np.ndarray,
        quantile: float,
    ) -> Density:
        """From references at positions (r,), one at least."""
        indices = view.to_device(positions)
        features = view.feature_rows(indices).double()
        centre = features.mean(0)
        references = unit_features(features, centre)
        squared = squared_distances(references, references)
        on_host = squared.cpu().numpy()
        pairs = np.triu_indices(len(positions), k=1)
        between = on_host[pairs]
        radius = LEAST_RADIUS
        usual = 1.0
        if len(between):
            distance = np.quantile(np.sqrt(between), quantile)
            radius = max(LEAST_RADIUS, float(distance))
            kernels = np.exp(-between / radius**2)
            usual = float(kernels.mean())
        if usual == 0:
            usual = 1.0  # nothing is near anything
        return cls(
            centre=centre,
            references=references,
            radius=radius,
            usual=usual,
        )

    def of_rows(self, view: PoolView, part: slice) -> torch.Tensor:
        """(n,) float64: the densities of a part's rows."""
        features = view.feature_rows(part)
        rows = unit_features(features, self.centre)
        squared = squared_distances(rows, self.references)
        # In place: this is the largest array of the pass.
        kernels = squared.mul_(-1 / self.radius**2).exp_()
        return kernels.mean(1) / self.usual


def _expected_errors(view: PoolView, part: slice) -> torch.Tensor:
    """(n,) float64: the error that the model expects of itself, row by row."""
    import torch

    probs = view.rows(part).double()
    if isinstance(view.task, MultiClass):
        return 1 - probs.amax(1)
    return torch.minimum(probs, 1 - probs).mean(1)


def _lowest_first(scores: torch.Tensor, view: PoolView, count: int) -> np.ndarray:
    return lowest(scores, count, view)


def _check_fraction(value: float, name: str) -> float:
    number = check_number(value, name, "a number in [0, 1] is needed")
    if not 0 <= number <= 1:
        raise InputError(f"{name} is {value}: a number in [0, 1] is needed")
    return number
