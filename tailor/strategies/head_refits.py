"""Linear heads trained again, each on another sample of the labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailor.selection.pool_view import PoolView
from tailor.task import MultiClass

if TYPE_CHECKING:
    import torch

#: iterations of each training
STEPS = 25


def refit_head(view: PoolView, sample: np.ndarray, ridge: float) -> torch.Tensor:
    """(d + 1, K) the weights, and the bias last, of a linear head that was trained on a sample of
    the labels: the cross-entropy (multi-label: its binary form) summed over the sample, plus
    ridge / 2 times the sum of squared weights, at its minimum. 0 where the sample is empty.

    sample  (m,) places in view.labelled; those that are there twice count twice
    """
    import torch

    from tailor.common.stacked_solver import StackedProblem, solve_stacked

    places, counts = np.unique(sample, return_counts=True)
    positions = view.to_device(view.labelled[places])
    rows = view.feature_rows(positions)
    width = rows.shape[1]
    start = rows.new_zeros(1, width + 1, view.task.size)
    if len(places) == 0:
        return start[0]
    # Measured from their mean: an offset that all share would only make the search longer.
    exact = rows.double()
    centre = exact.mean(0)
    centred = (exact - centre).to(rows.dtype)
    ones = rows.new_ones(len(rows), 1)
    # The sum over the sample, divided by its size: the search stops by the size of the gradient.
    size = len(sample)
    labels = view.to_device(view.labels[places])
    row_weights = view.to_device(counts / size).to(rows.dtype)
    problem = StackedProblem(
        features=torch.cat([centred, ones], 1),
        targets=labels.to(rows.dtype),
        row_weights=row_weights[None],
        strengths=rows.new_tensor([ridge / size]),
        positive_weights=None,
        multi_class=isinstance(view.task, MultiClass),
    )
    (weights,) = solve_stacked(problem, start, STEPS)
    bias_shift = centre @ weights[:-1].double()
    weights[-1] -= bias_shift.to(weights.dtype)
    return weights


def draw_sample(
    labelled: int,
    most: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """(m,) places among so many labelled examples, drawn with replacement: as many, up to
    `most`.
    """
    if labelled == 0:
        return np.empty(0, np.int64)
    size = min(labelled, most)
    return rng.integers(labelled, size=size)
