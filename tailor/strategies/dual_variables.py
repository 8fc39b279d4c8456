"""How hard each labelled example is to fit: the dual variables of a constrained fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tailor.strategies.feature_kernel import LEAST_RADIUS, squared_distances

if TYPE_CHECKING:
    import torch

#: what is added to the diagonal of the regression's matrix
JITTER = 1e-6


def dual_variables(
    rows: torch.Tensor,
    labels: torch.Tensor,
    penalties: torch.Tensor,
    *,
    multi_class: bool,
    eps: float,
    eta: float,
    steps: int,
) -> torch.Tensor:
    """(n,) float64: u of a linear head whose loss shall be at most eps on every example.

    Head and variables move in turn: u <- max(0, u + eta * (loss - eps)), and the head by one step
    down on sum_i (1 + u_i) * loss_i + sum_j penalties_j * |w_j|^2 / 2. That step goes to the
    minimum of a parabola that lies above it everywhere (Böhning and Lindsay, "Monotonicity of
    Quadratic-Approximation Algorithms", 1988), so that no learning rate has to be chosen.

    rows       (n, d) float64
    labels     (n, K) float64 of 0 and 1
    penalties  (d,) float64
    eps        of the mean over classes, in a multi-label task
    """
    import torch

    _, classes = labels.shape
    weights = rows.new_zeros(rows.shape[1], classes)
    variables = rows.new_zeros(len(rows))
    if len(rows) == 0:
        return variables
    # The curvature of cross-entropy is at most 1/2, that of binary cross-entropy at most 1/4.
    if multi_class:
        most_curvature = 0.5
    else:
        most_curvature = 0.25
    for _ in range(steps):
        losses, slopes = _losses(rows @ weights, labels, multi_class)
        pressure = 1 + variables
        variables = (variables + eta * (losses - eps)).clamp_(min=0)
        gradient = rows.T @ (pressure[:, None] * slopes)
        gradient += penalties[:, None] * weights
        bound = rows.T @ (rows * (most_curvature * pressure)[:, None])
        bound.diagonal().add_(penalties)
        factor = torch.linalg.cholesky(bound)
        weights = weights - torch.cholesky_solve(gradient, factor)
    return variables


def _losses(
    logits: torch.Tensor, labels: torch.Tensor, multi_class: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss of each row (n,), and slopes of what the head descends on (n, K)."""
    from torch.nn.functional import softplus

    if multi_class:
        log_probs = logits.log_softmax(1)
        losses = -(labels * log_probs).sum(1)
        return losses, log_probs.exp() - labels
    by_class = softplus(logits) - labels * logits
    return by_class.mean(1), logits.sigmoid() - labels


@dataclass(frozen=True)
class PredictedDuals:
    """Dual variables of examples without a label, by regression on a Gaussian kernel of unit
    features: what is near examples that are hard to fit should be hard, too.
    """

    references: torch.Tensor  # (r, d) float64 unit features of labelled examples
    radius: float
    weights: torch.Tensor  # (r,) float64
    mean: float  # what is predicted far from all references

    @classmethod
    def fit(
        cls,
        units: torch.Tensor,
        variables: torch.Tensor,
        references: int,
    ) -> PredictedDuals:
        """Ridge regression of variables (n,) on the kernel with the first so many examples.

        units  (n, d) float64 unit features, in random order
        """
        import torch

        chosen = units[:references]
        radius = _median_distance(chosen)
        mean = 0.0
        if len(variables):
            mean = float(variables.mean())
        kernels = _kernels(units, chosen, radius)
        products = kernels.T @ kernels + kernels[:references]
        # Copies among the references leave nothing else on the diagonal.
        products.diagonal().add_(JITTER)
        factor = torch.linalg.cholesky(products)
        moments = kernels.T @ (variables - mean)[:, None]
        weights = torch.cholesky_solve(moments, factor)
        return cls(
            references=chosen,
            radius=radius,
            weights=weights[:, 0],
            mean=mean,
        )

    def predict(self, units: torch.Tensor) -> torch.Tensor:
        """(n,) float64 of unit features (n, d)."""
        kernels = _kernels(units, self.references, self.radius)
        return kernels @ self.weights + self.mean


def _kernels(rows: torch.Tensor, references: torch.Tensor, radius: float) -> torch.Tensor:
    """(n, r) exp(-|x - r|^2 / radius^2)."""
    squared = squared_distances(rows, references)
    # In place: this is the largest array of a pass.
    return squared.mul_(-1 / radius**2).exp_()


def _median_distance(rows: torch.Tensor) -> float:
    """Between two of rows (n, d), LEAST_RADIUS at the least."""
    squared = squared_distances(rows, rows)
    on_host = squared.cpu().numpy()
    pairs = np.triu_indices(len(rows), k=1)
    distances = np.sqrt(on_host[pairs])
    if len(distances) == 0:
        return LEAST_RADIUS
    return max(LEAST_RADIUS, float(np.median(distances)))
