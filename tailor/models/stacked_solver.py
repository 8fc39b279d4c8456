"""Many regularised logistic regressions on the same features, solved side by side with L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

#: (weights (fits, d + 1, K)) -> (value (fits,), gradient (fits, d + 1, K))
Objective = Callable[[Tensor], tuple[Tensor, Tensor]]

#: steps that L-BFGS estimates the curvature from
HISTORY = 10
#: a solution is good enough for a choice where no part of any gradient is larger
SMALLEST_GRADIENT = 1e-5
#: share of the decrease that the gradient promises, which a step has to reach
SUFFICIENT_DECREASE = 1e-4
#: how often a step is halved before a fit is left where it is
HALVINGS = 12


@dataclass(frozen=True)
class StackedProblem:
    """`fits` problems that differ in which rows count, and how strongly weights are held back.

    Each is: minimise sum_i row_weights_i * loss_i + strength / 2 * squared weights, the bias free.

    features          (n, d + 1), the last column 1
    targets           (n, K) of 0 and 1
    row_weights       (fits, n), 0 for a row that a fit doesn't see
    strengths         (fits,)
    positive_weights  (K,) of a class's positives; None: 1 (multi-label)
    multi_class       cross-entropy; otherwise binary cross-entropy, summed over classes
    """

    features: Tensor
    targets: Tensor
    row_weights: Tensor
    strengths: Tensor
    positive_weights: Tensor | None
    multi_class: bool

    def evaluate(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Value (fits,) and gradient (fits, d + 1, K) at weights (fits, d + 1, K)."""
        logits = self.features @ weights
        row_weights = self.row_weights[:, :, None]
        if self.multi_class:
            log_probs = logits.log_softmax(2)
            losses = -(self.targets * log_probs)
            slopes = log_probs.exp() - self.targets
        else:
            positives = self.targets
            if self.positive_weights is not None:
                positives = positives * self.positive_weights
            both = positives + 1 - self.targets
            losses = F.softplus(logits) * both - positives * logits
            slopes = logits.sigmoid() * both - positives
        penalised = weights[:, :-1]
        squares = penalised.square().sum((1, 2))
        value = (row_weights * losses).sum((1, 2)) + 0.5 * self.strengths * squares
        gradient = self.features.T @ (row_weights * slopes)
        gradient[:, :-1] += self.strengths[:, None, None] * penalised
        return value, gradient

    def inverse_curvature(self) -> Tensor:
        """(fits, d + 1, 1): the inverse of the Hessian's diagonal at weights 0. With features along
        their principal axes it is nearly the inverse Hessian itself.
        """
        classes = self.targets.shape[1]
        probability = 1 / classes if self.multi_class else 0.5
        squares = self.row_weights @ self.features.square()
        curvature = probability * (1 - probability) * squares
        curvature[:, :-1] += self.strengths[:, None]
        return 1 / curvature.clamp_min(1e-12)[:, :, None]


def solve_stacked(problem: StackedProblem, start: Tensor, steps: int) -> Tensor:
    """The minima (fits, d + 1, K) of all problems, from `start` of the same shape.

    steps  the most iterations. Every fit has step lengths and curvature of its own, so that it goes
           as if it were alone.
    """
    search = _Search(problem.evaluate, problem.inverse_curvature(), start)
    for _ in range(steps):
        if search.largest_gradient() <= SMALLEST_GRADIENT:
            break
        search.step()
    return search.weights


class _Search:
    """L-BFGS with backtracking, for many problems at once."""

    def __init__(self, evaluate: Objective, inverse_curvature: Tensor, start: Tensor) -> None:
        self.evaluate = evaluate
        self.inverse_curvature = inverse_curvature
        self.weights = start
        value, gradient = evaluate(start)
        self.value = value
        self.gradient = gradient
        #: (change of weights, change of gradient, 1 / their product (fits,)), oldest first
        self.pairs: list[tuple[Tensor, Tensor, Tensor]] = []

    def largest_gradient(self) -> float:
        return float(self.gradient.abs().max())

    def step(self) -> None:
        direction = -self._newton_like(self.gradient)
        slope = _dot(self.gradient, direction)
        length = torch.ones_like(self.value)
        for _ in range(HALVINGS):
            weights = self.weights + _over_weights(length) * direction
            value, gradient = self.evaluate(weights)
            is_lower = value <= self.value + SUFFICIENT_DECREASE * length * slope
            if is_lower.all():
                break
            length = torch.where(is_lower, length, 0.5 * length)
        # A fit that found nothing lower is at its minimum, as far as rounding lets it see.
        moved = _over_weights(is_lower.to(length))
        change = moved * (weights - self.weights)
        gradient_change = moved * (gradient - self.gradient)
        self._remember(change, gradient_change)
        self.weights = self.weights + change
        self.gradient = self.gradient + gradient_change
        self.value = torch.where(is_lower, value, self.value)

    def _remember(self, change: Tensor, gradient_change: Tensor) -> None:
        product = _dot(change, gradient_change)
        # 0 makes the pair do nothing, for a fit that did not move.
        inverse = torch.where(product > 1e-20, 1 / product.clamp_min(1e-20), 0.0)
        self.pairs.append((change, gradient_change, inverse))
        del self.pairs[:-HISTORY]

    def _newton_like(self, gradient: Tensor) -> Tensor:
        """The gradient times an estimate of the inverse Hessian: the two loops of L-BFGS."""
        result = gradient.clone()
        factors = []
        for change, gradient_change, inverse in reversed(self.pairs):
            factor = inverse * _dot(change, result)
            result -= _over_weights(factor) * gradient_change
            factors.append(factor)
        result = self.inverse_curvature * result
        if self.pairs:
            _, gradient_change, inverse = self.pairs[-1]
            scaled = _dot(gradient_change, self.inverse_curvature * gradient_change)
            is_known = (inverse > 0) & (scaled > 0)
            scale = torch.where(is_known, 1 / (inverse * scaled).clamp_min(1e-20), 1.0)
            result = _over_weights(scale) * result
        for (change, gradient_change, inverse), factor in zip(self.pairs, reversed(factors)):
            correction = factor - inverse * _dot(gradient_change, result)
            result += _over_weights(correction) * change
        return result


def _dot(first: Tensor, second: Tensor) -> Tensor:
    """(fits, d + 1, K) twice -> (fits,)."""
    return (first * second).sum((1, 2))


def _over_weights(numbers: Tensor) -> Tensor:
    """(fits,) -> (fits, 1, 1)."""
    return numbers[:, None, None]
