"""A linear head to its optimum: regularised logistic regression, solved with L-BFGS on all examples
at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from tailor.models.optimizers import LBFGS

if TYPE_CHECKING:
    from torch import nn

    from tailor.models.losses import Loss

#: L-BFGS stops where no part of the gradient of the mean loss is larger
SMALLEST_GRADIENT = 1e-5
#: or where neither the loss nor a weight changes more
SMALLEST_CHANGE = 1e-9
#: steps that L-BFGS estimates the curvature from
HISTORY = 10


def shrinkage(width: int, terms: int, variance: float) -> float:
    """What half the sum of squared weights counts beside a loss that is the mean of so many terms.

    It is the Gaussian prior under which a logit on standardised features has this variance, however
    wide they are.
    """
    return width / (variance * max(1, terms))


def solve(
    layer: nn.Linear,
    features: Tensor,
    targets: Tensor,
    loss: Loss,
    *,
    strength: float,
    steps: int,
) -> int:
    """Set a layer to the minimum of loss + strength / 2 * squared weights.

    The minimum is unique, so that no seed plays a part.

    features  (n, d)
    targets   (n, K) in [0, 1]
    steps     the most iterations

    Returns how often the loss was computed.
    """
    optimizer = LBFGS(
        layer.parameters(),
        max_iter=steps,
        max_eval=2 * steps,
        history_size=HISTORY,
        tolerance_grad=SMALLEST_GRADIENT,
        tolerance_change=SMALLEST_CHANGE,
        line_search_fn="strong_wolfe",
    )
    evaluations = 0

    def closure() -> Tensor:
        nonlocal evaluations
        evaluations += 1
        optimizer.zero_grad()
        penalty = 0.5 * strength * layer.weight.square().sum()
        total = loss(layer(features), targets) + penalty
        total.backward()
        return total

    optimizer.step(closure)
    optimizer.zero_grad(set_to_none=True)
    return evaluations
