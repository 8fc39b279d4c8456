"""Regularised logistic regression for two classes, by Newton's method."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

#: Newton's steps at most: from 0 it takes about six
STEPS = 50
#: it stops where no part of the gradient is larger, as a share of the rows' weights
SMALLEST_GRADIENT = 1e-8
#: how often a step is halved before the weights stay where they are
HALVINGS = 30
#: what is added to the curvature of a weight that nothing holds back, as a share of the rows'
#: weights: where both classes are apart, it has no curvature of its own
LEAST_CURVATURE = 1e-9


def fit_logistic(
    rows: torch.Tensor,
    targets: torch.Tensor,
    row_weights: torch.Tensor,
    penalties: torch.Tensor,
    start: torch.Tensor,
) -> torch.Tensor:
    """(d,) float64: the weights w of least
    sum_i row_weights_i * log(1 + exp(-sign_i * w.x_i)) + sum_j penalties_j * w_j^2 / 2.

    The minimum is unique, so that no seed plays a part.

    rows         (n, d) float64
    targets      (n,) float64 of 0 and 1
    row_weights  (n,) float64, at least 0
    penalties    (d,) float64, at least 0
    start        (d,) float64: where the search begins
    """
    weights = start
    total = float(row_weights.sum())
    value, gradient, curvature = _expand(rows, targets, row_weights, penalties, weights)
    for _ in range(STEPS):
        if float(gradient.abs().amax()) <= SMALLEST_GRADIENT * total:
            break
        direction = _newton_direction(gradient, curvature, LEAST_CURVATURE * total)
        slope = float(gradient @ direction)
        length = 1.0
        for _ in range(HALVINGS):
            tried = weights + length * direction
            tried_value = _value(rows, targets, row_weights, penalties, tried)
            if tried_value <= value + 1e-4 * length * slope:
                break
            length /= 2
        else:
            break  # nothing lower, as far as rounding lets it see
        weights = tried
        value, gradient, curvature = _expand(rows, targets, row_weights, penalties, weights)
    return weights


def _value(
    rows: torch.Tensor,
    targets: torch.Tensor,
    row_weights: torch.Tensor,
    penalties: torch.Tensor,
    weights: torch.Tensor,
) -> float:
    logits = rows @ weights
    return _value_of(logits, targets, row_weights, penalties, weights)


def _value_of(
    logits: torch.Tensor,
    targets: torch.Tensor,
    row_weights: torch.Tensor,
    penalties: torch.Tensor,
    weights: torch.Tensor,
) -> float:
    from torch.nn.functional import softplus

    losses = softplus(logits) - targets * logits
    penalty = penalties @ weights.square() / 2
    return float(row_weights @ losses + penalty)


def _expand(
    rows: torch.Tensor,
    targets: torch.Tensor,
    row_weights: torch.Tensor,
    penalties: torch.Tensor,
    weights: torch.Tensor,
) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Value, gradient (d,) and curvature (d, d) at weights (d,)."""
    logits = rows @ weights
    probabilities = logits.sigmoid()
    residuals = row_weights * (probabilities - targets)
    gradient = rows.T @ residuals + penalties * weights
    variances = row_weights * probabilities * (1 - probabilities)
    curvature = rows.T @ (rows * variances[:, None])
    curvature.diagonal().add_(penalties)
    value = _value_of(logits, targets, row_weights, penalties, weights)
    return value, gradient, curvature


def _newton_direction(
    gradient: torch.Tensor, curvature: torch.Tensor, least: float
) -> torch.Tensor:
    import torch

    curvature.diagonal().add_(least)
    factor = torch.linalg.cholesky(curvature)
    step = torch.cholesky_solve(gradient[:, None], factor)
    return -step[:, 0]
