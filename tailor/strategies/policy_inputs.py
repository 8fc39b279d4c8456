"""What the learned family goes by: eleven numbers of an example that any model gives."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from tailor.selection.pool_view import PoolView
from tailor.strategies.entropies import label_entropy
from tailor.strategies.feature_kernel import (
    FeatureKernel,
    blocks,
    mean_features_of,
    squared_distances,
)
from tailor.task import MultiClass

if TYPE_CHECKING:
    import torch

#: The numbers, in the order of the network's columns.
INPUTS = (
    "largest probability",
    "second largest",
    "third largest",
    "margin",
    "entropy",
    "distance",
    "density",
    "share of the class",
    "difficulty of the class",
    "budget spent",
    "multi-label",
)
DISTANCE = INPUTS.index("distance")
#: labelled examples that distances are measured from, and examples whose nearness is density
REFERENCES = 1024
#: Distance and density are divided by their means over the candidates, and are at most this.
LARGEST_RATIO = 3.0
#: no radius of the density's kernel is smaller
LEAST_RADIUS = 0.05


class PolicyInputs:
    """The inputs (c, 11) of some candidates. Takes change the distances alone.

    Probabilities are the three largest, 0 where there are fewer classes. The margin is the gap
    between the two largest, in a multi-label task the smallest |2 p_k - 1|. Entropy is a share of
    the largest possible, in a multi-label task on average over the classes. The distance is from
    the nearest example that is labelled, pending or taken, in unit features, and the density the
    mean of a Gaussian kernel over random examples, its radius their median distance; both as
    multiples of the candidates' mean. The class is the one of the largest probability: its share
    of the labels is r / (1 + r), r being K times the share, and its difficulty the mean of 1 -
    margin over the candidates in that class. The budget's spent share is at most 1.

    view        the pool
    candidates  (c,) positions
    budget      labels that are to be collected in all
    """

    def __init__(
        self,
        view: PoolView,
        candidates: np.ndarray,
        budget: int,
        rng: np.random.Generator,
    ) -> None:
        import torch

        self._candidates = candidates
        sample = candidates
        if len(sample) > REFERENCES:
            sample = rng.choice(candidates, REFERENCES, replace=False)
        centre = mean_features_of(view, sample)
        #: Gives unit rows; its radius is not used.
        self._kernel = FeatureKernel(view, centre, LEAST_RADIUS)
        rows = [self._kernel.unit_rows(block) for block in blocks(candidates)]
        self._rows = torch.cat(rows)
        self._row_norms = self._rows.square().sum(1)
        known = np.concatenate([view.labelled, view.pending, view.ledger.taken])
        spent = min(1.0, len(known) / budget)
        if len(known) > REFERENCES:
            known = rng.choice(known, REFERENCES, replace=False)
        #: (c,) squared distances from the nearest known example
        self._nearest = torch.full_like(self._rows[:, 0], torch.inf)
        self._approach(known)
        #: of the distances when the candidates were drawn; 0 where nothing is known yet
        self._mean_distance = 0.0
        if len(known):
            distances = self._nearest.sqrt()
            self._mean_distance = float(distances.mean())
        is_multi_label = not isinstance(view.task, MultiClass)
        columns = [
            *probability_columns(view, candidates),
            self._distance_column(),
            self._density_column(sample),
            *class_columns(view, candidates),
            torch.full_like(self._nearest, spent),
            torch.full_like(self._nearest, float(is_multi_label)),
        ]
        #: (c, 11) float64
        self.matrix = torch.stack(columns, dim=1)

    def take(self, positions: np.ndarray) -> None:
        """Positions (n,) are taken: what lies near them is nearer now."""
        if len(positions) == 0:
            return
        self._approach(positions)
        self.matrix[:, DISTANCE] = self._distance_column()

    def copy(self) -> PolicyInputs:
        """The same inputs, of which takes change only one."""
        twin = copy(self)
        twin.matrix = self.matrix.clone()
        return twin

    def _approach(self, positions: np.ndarray) -> None:
        import torch

        for block in blocks(positions):
            rows = self._kernel.unit_rows(block)
            # The candidates' own lengths are known: a take costs one product with their rows.
            norms = rows.square().sum(1)
            products = self._rows @ rows.T
            partial = norms - 2 * products
            squared = partial.amin(1) + self._row_norms
            # Rounding may take a square below 0.
            squared = squared.clamp(min=0)
            self._nearest = torch.minimum(self._nearest, squared)

    def _distance_column(self) -> torch.Tensor:
        import torch

        if self._mean_distance == 0:
            return torch.ones_like(self._nearest)
        ratios = self._nearest.sqrt() / self._mean_distance
        return ratios.clamp(max=LARGEST_RATIO)

    def _density_column(self, sample: np.ndarray) -> torch.Tensor:
        import torch

        references = self._kernel.unit_rows(sample)
        among = squared_distances(references, references).sqrt()
        median = float(among.median())
        radius = max(median, LEAST_RADIUS)
        densities = []
        for rows in self._rows.split(REFERENCES):
            squared = squared_distances(rows, references)
            nearness = torch.exp(-squared / radius**2)
            densities.append(nearness.mean(1))
        density = torch.cat(densities)
        ratios = density / density.mean()
        return ratios.clamp(max=LARGEST_RATIO)

    def bytes_held(self) -> int:
        numbers = self._rows.numel() + self.matrix.numel()
        return 8 * numbers


def probability_columns(view: PoolView, positions: np.ndarray) -> list[torch.Tensor]:
    """Five columns (c,) float64: the three largest probabilities, margin and entropy."""
    import torch

    parts = []
    for block in blocks(positions):
        probs = view.rows(view.to_device(block)).double()
        largest = probs.new_zeros((len(probs), 3))
        count = min(3, probs.shape[1])
        top = probs.topk(count, dim=1)
        largest[:, :count] = top.values
        margins = margins_of(probs, view)
        most = np.log(2) * view.task.size
        if isinstance(view.task, MultiClass):
            most = np.log(view.task.size)
        entropies = label_entropy(probs, view.task) / most
        numbers = torch.stack([margins, entropies], dim=1)
        part = torch.cat([largest, numbers], dim=1)
        parts.append(part)
    joined = torch.cat(parts)
    return list(joined.unbind(1))


def margins_of(probs: torch.Tensor, view: PoolView) -> torch.Tensor:
    """(n,) of probs (n, K): the gap between the two largest; in a multi-label task the smallest
    |2 p_k - 1|.
    """
    if isinstance(view.task, MultiClass):
        top = probs.topk(2, dim=1).values
        first, second = top.unbind(1)
        return first - second
    from_even = 2 * probs - 1
    return from_even.abs().amin(1)


def class_columns(view: PoolView, positions: np.ndarray) -> list[torch.Tensor]:
    """Two columns (c,) float64: share and difficulty of each example's likeliest class."""
    import torch

    classes = []
    margins = []
    for block in blocks(positions):
        probs = view.rows(view.to_device(block)).double()
        classes.append(probs.argmax(1))
        margins.append(margins_of(probs, view))
    likeliest = torch.cat(classes)
    doubt = 1 - torch.cat(margins)
    counts = view.labels.sum(0)
    shares = counts / max(1, counts.sum())
    exact_shares = np.asarray(shares, np.float64)
    ratio = view.to_device(exact_shares) * view.task.size
    balance = ratio / (1 + ratio)
    total = torch.zeros(view.task.size, dtype=torch.float64, device=view.device)
    total.index_add_(0, likeliest, doubt)
    members = torch.bincount(likeliest, minlength=view.task.size)
    difficulty = total / members.clamp(min=1)
    return [balance[likeliest], difficulty[likeliest]]
