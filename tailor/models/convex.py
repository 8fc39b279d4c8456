"""A linear head to its optimum: regularised logistic regression, solved with L-BFGS on all examples
at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch import nn

#: L-BFGS stops where no part of the gradient of the mean loss is larger
SMALL = 1e-5
REMEMBERED = 10


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
    loss: Callable[[Tensor, Tensor], Tensor],
    *,
    strength: float,
    steps: int,
) -> int:
    """Set `layer` to the minimum of loss + strength / 2 * squared weights -> how often the loss was
    computed.

    features (n, d), targets (n, K) in [0, 1]. The minimum is unique, so that no seed plays a part.
    """
    optimizer = torch.optim.LBFGS(
        layer.parameters(),
        max_iter=steps,
        max_eval=2 * steps,
        history_size=REMEMBERED,
        tolerance_grad=SMALL,
        tolerance_change=1e-9,
        line_search_fn="strong_wolfe",
    )
    evaluations = 0

    def closure() -> Tensor:
        nonlocal evaluations
        evaluations += 1
        optimizer.zero_grad()
        total = loss(layer(features), targets) + 0.5 * strength * layer.weight.square().sum()
        total.backward()
        return total

    optimizer.step(closure)
    optimizer.zero_grad(set_to_none=True)
    return evaluations
