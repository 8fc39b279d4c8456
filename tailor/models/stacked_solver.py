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
#: where a curvature is smaller, it is taken for this
SMALLEST_CURVATURE = 1e-12
#: a change of the weights times that of the gradient that is smaller says nothing
SMALLEST_PRODUCT = 1e-20
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
        if self.multi_class:
            losses, slopes = self._cross_entropy(logits)
        else:
            losses, slopes = self._binary_cross_entropy(logits)
        row_weights = self.row_weights[:, :, None]
        weighted_losses = row_weights * losses
        weighted_slopes = row_weights * slopes
        penalised = weights[:, :-1]
        squares = penalised.square().sum((1, 2))
        penalty = 0.5 * self.strengths * squares
        value = weighted_losses.sum((1, 2)) + penalty
        gradient = self.features.T @ weighted_slopes
        gradient[:, :-1] += _over_weights(self.strengths) * penalised
        return value, gradient

    def _cross_entropy(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Losses and their slopes, each (fits, n, K), at logits (fits, n, K)."""
        log_probs = logits.log_softmax(2)
        losses = -(self.targets * log_probs)
        slopes = log_probs.exp() - self.targets
        return losses, slopes

    def _binary_cross_entropy(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        positives = self.targets
        if self.positive_weights is not None:
            positives = positives * self.positive_weights
        negatives = 1 - self.targets
        both = positives + negatives
        losses = F.softplus(logits) * both
        losses = losses - positives * logits
        slopes = logits.sigmoid() * both
        slopes = slopes - positives
        return losses, slopes

    def inverse_curvature(self) -> Tensor:
        """(fits, d + 1, 1): the inverse of the Hessian's diagonal at weights 0. With features along
        their principal axes it is nearly the inverse Hessian itself.
        """
        # What weights of 0 say of every class.
        probability = 0.5
        if self.multi_class:
            probability = 1 / self.targets.shape[1]
        variance = probability * (1 - probability)
        squares = self.row_weights @ self.features.square()
        curvature = variance * squares
        curvature[:, :-1] += self.strengths[:, None]
        inverse = 1 / curvature.clamp_min(SMALLEST_CURVATURE)
        return inverse[:, :, None]


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
            step = _over_weights(length) * direction
            weights = self.weights + step
            value, gradient = self.evaluate(weights)
            decrease = SUFFICIENT_DECREASE * length * slope
            is_lower = value <= self.value + decrease
            if is_lower.all():
                break
            half = 0.5 * length
            length = torch.where(is_lower, length, half)
        # A fit that found nothing lower is at its minimum, as far as rounding lets it see.
        moved = _over_weights(is_lower.to(length))
        step = weights - self.weights
        change = moved * step
        gradient_step = gradient - self.gradient
        gradient_change = moved * gradient_step
        self._remember(change, gradient_change)
        self.weights = self.weights + change
        self.gradient = self.gradient + gradient_change
        self.value = torch.where(is_lower, value, self.value)

    def _remember(self, change: Tensor, gradient_change: Tensor) -> None:
        product = _dot(change, gradient_change)
        inverse = 1 / product.clamp_min(SMALLEST_PRODUCT)
        # 0 makes the pair do nothing, for a fit that did not move.
        has_moved = product > SMALLEST_PRODUCT
        inverse = torch.where(has_moved, inverse, 0.0)
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
            result = _over_weights(self._scale()) * result
        oldest_first = reversed(factors)
        for pair, factor in zip(self.pairs, oldest_first):
            change, gradient_change, inverse = pair
            second_factor = inverse * _dot(gradient_change, result)
            correction = factor - second_factor
            result += _over_weights(correction) * change
        return result

    def _scale(self) -> Tensor:
        """(fits,): the length of the last change of weights, over the length that the inverse
        curvature expects of it.
        """
        _, gradient_change, inverse = self.pairs[-1]
        expected_change = self.inverse_curvature * gradient_change
        product = inverse * _dot(gradient_change, expected_change)
        scale = 1 / product.clamp_min(SMALLEST_PRODUCT)
        is_known = product > 0
        return torch.where(is_known, scale, 1.0)


def _dot(first: Tensor, second: Tensor) -> Tensor:
    """(fits, d + 1, K) twice -> (fits,)."""
    products = first * second
    return products.sum((1, 2))


def _over_weights(numbers: Tensor) -> Tensor:
    """(fits,) -> (fits, 1, 1)."""
    return numbers[:, None, None]
