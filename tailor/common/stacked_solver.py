"""Many regularised logistic regressions on the same features, solved side by side with L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

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
            of_logits = self._cross_entropy
        else:
            of_logits = self._binary_cross_entropy
        losses, slopes = of_logits(logits)
        value = self._weighted(losses).sum((1, 2))
        gradient = self.features.T @ self._weighted(slopes)
        # The last row is the bias, which nothing holds back.
        penalised = weights[:, :-1]
        value = value + self._penalty(penalised)
        penalty_slope = self._penalty_slope(penalised)
        gradient[:, :-1] += penalty_slope
        return value, gradient

    def _weighted(self, of_rows: Tensor) -> Tensor:
        """Numbers (fits, n, K) times the weight of each row in each fit."""
        row_weights = self.row_weights.unsqueeze(2)
        return row_weights * of_rows

    def _penalty(self, penalised: Tensor) -> Tensor:
        """(fits,) of weights (fits, d, K)."""
        squares = penalised.square().sum((1, 2))
        return 0.5 * self.strengths * squares

    def _penalty_slope(self, penalised: Tensor) -> Tensor:
        """(fits, d, K): the gradient of the penalty."""
        strengths = _over_weights(self.strengths)
        return strengths * penalised

    def _cross_entropy(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Losses and their slopes, each (fits, n, K), at logits (fits, n, K)."""
        log_probs = logits.log_softmax(2)
        # Only the true class of a row has a target that is not 0, and with it a loss.
        losses = -(self.targets * log_probs)
        slopes = log_probs.exp() - self.targets
        return losses, slopes

    def _binary_cross_entropy(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """As _cross_entropy()."""
        positives = self._weighted_positives()
        negatives = 1 - self.targets
        both = positives + negatives
        # softplus() stays finite where the logarithm of a sigmoid would not.
        losses = F.softplus(logits) * both
        losses = losses - positives * logits
        slopes = logits.sigmoid() * both
        slopes = slopes - positives
        return losses, slopes

    def _weighted_positives(self) -> Tensor:
        """(n, K): the weight of each positive, 0 for a negative."""
        if self.positive_weights is None:
            return self.targets
        return self.targets * self.positive_weights

    def inverse_curvature(self) -> Tensor:
        """(fits, d + 1, 1): the inverse of the Hessian's diagonal at weights 0. With features along
        their principal axes it is nearly the inverse Hessian itself.
        """
        probability = self._first_probability()
        variance = probability * (1 - probability)
        squares = self.row_weights @ self.features.square()
        curvature = variance * squares
        curvature[:, :-1] += self.strengths[:, None]
        # A feature that is 0 in all rows of a fit has none.
        curvature = curvature.clamp_min(SMALLEST_CURVATURE)
        inverse = 1 / curvature
        return inverse.unsqueeze(2)

    def _first_probability(self) -> float:
        """What weights of 0 say of every class."""
        if not self.multi_class:
            return 0.5
        _, classes = self.targets.shape
        return 1 / classes


def solve_stacked(problem: StackedProblem, start: Tensor, steps: int) -> Tensor:
    """The minima (fits, d + 1, K) of all problems, from `start` of the same shape.

    steps  the most iterations. Every fit has step lengths and curvature of its own, so that it goes
           as if it were alone.
    """
    search = _Search(
        evaluate=problem.evaluate, inverse_curvature=problem.inverse_curvature(), start=start
    )
    for _ in range(steps):
        if search.largest_gradient() <= SMALLEST_GRADIENT:
            break
        search.step()
    return search.weights


class _Point(NamedTuple):
    """Weights (fits, d + 1, K) with the value (fits,) and the gradient (fits, d + 1, K) there."""

    weights: Tensor
    value: Tensor
    gradient: Tensor


class _Change(NamedTuple):
    """What one step did: changes (fits, d + 1, K), and 1 over their product (fits,)."""

    weights: Tensor
    gradient: Tensor
    inverse_product: Tensor


class _Search:
    """L-BFGS with backtracking, for many problems at once."""

    def __init__(
        self,
        evaluate: Objective,
        inverse_curvature: Tensor,
        start: Tensor,
    ) -> None:
        self.evaluate = evaluate
        self.inverse_curvature = inverse_curvature
        self.weights = start
        value, gradient = evaluate(start)
        self.value = value
        self.gradient = gradient
        #: the last steps, oldest first
        self.changes: list[_Change] = []

    def largest_gradient(self) -> float:
        sizes = self.gradient.abs()
        return float(sizes.max())

    def step(self) -> None:
        """One iteration of every fit."""
        direction = -self._newton_like(self.gradient)
        point, is_lower = self._backtrack(direction)
        # A fit that found nothing lower is at its minimum, as far as rounding lets it see.
        moved = is_lower.to(point.value)
        moved = _over_weights(moved)
        weights_step = point.weights - self.weights
        gradient_step = point.gradient - self.gradient
        weights_change = moved * weights_step
        gradient_change = moved * gradient_step
        self._remember(weights_change, gradient_change)
        self.weights = self.weights + weights_change
        self.gradient = self.gradient + gradient_change
        self.value = torch.where(is_lower, point.value, self.value)

    def _backtrack(self, direction: Tensor) -> tuple[_Point, Tensor]:
        """The last point that was tried along a direction, and (fits,) bool: where it is lower."""
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
            # Only the fits that went too far go back: the others stay where they are.
            length = torch.where(is_lower, length, 0.5 * length)
        point = _Point(weights=weights, value=value, gradient=gradient)
        return point, is_lower

    def _remember(self, weights_change: Tensor, gradient_change: Tensor) -> None:
        product = _dot(weights_change, gradient_change)
        divisor = product.clamp_min(SMALLEST_PRODUCT)
        # 0 makes the change do nothing, for a fit that did not move.
        inverse_product = torch.where(product > SMALLEST_PRODUCT, 1 / divisor, 0.0)
        change = _Change(
            weights=weights_change, gradient=gradient_change, inverse_product=inverse_product
        )
        self.changes.append(change)
        del self.changes[:-HISTORY]

    def _newton_like(self, gradient: Tensor) -> Tensor:
        """The gradient times an estimate of the inverse Hessian: the two loops of L-BFGS."""
        result = gradient.clone()
        factors = []
        for change in reversed(self.changes):
            product = _dot(change.weights, result)
            factor = change.inverse_product * product
            result -= _over_weights(factor) * change.gradient
            factors.append(factor)
        result = self.inverse_curvature * result
        if self.changes:
            # The curvature at weights 0 has the right shape, and the last step the right size.
            scale = _over_weights(self._scale())
            result = scale * result
        # They were appended from the newest change on, and the second loop goes the other way.
        factors.reverse()
        for change, factor in zip(self.changes, factors):
            product = _dot(change.gradient, result)
            second_factor = change.inverse_product * product
            correction = factor - second_factor
            result += _over_weights(correction) * change.weights
        return result

    def _scale(self) -> Tensor:
        """(fits,): the length of the last change of weights, over the length that the inverse
        curvature expects of it.
        """
        last = self.changes[-1]
        expected_change = self.inverse_curvature * last.gradient
        product = _dot(last.gradient, expected_change)
        product = last.inverse_product * product
        divisor = product.clamp_min(SMALLEST_PRODUCT)
        return torch.where(product > 0, 1 / divisor, 1.0)


def _dot(first: Tensor, second: Tensor) -> Tensor:
    """(fits, d + 1, K) twice -> (fits,)."""
    products = first * second
    return products.sum((1, 2))


def _over_weights(numbers: Tensor) -> Tensor:
    """(fits,) -> (fits, 1, 1)."""
    return numbers[:, None, None]
