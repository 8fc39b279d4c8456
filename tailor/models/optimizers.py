"""torch's Adam and L-BFGS without torch's compiler.

The methods of torch.optim that are overridden here import torch._dynamo when they are first called.
Nothing in this package is compiled by it, and the import takes longer than a small training.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam


class _WithoutCompiler(torch.optim.Optimizer):
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        parameters = list(param_group["params"])
        self.param_groups.append(self.defaults | param_group | {"params": parameters})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients.

        set_to_none  must be true: nothing here keeps the memory of a gradient
        """
        assert set_to_none
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None


class Adam(_WithoutCompiler, torch.optim.Adam):
    """torch.optim.Adam, its steps equal bit by bit.

    >>> weight = torch.nn.Parameter(torch.tensor([2.0]))
    >>> optimizer = Adam([weight], lr=0.5, fused=True)
    >>> weight.square().backward()
    >>> optimizer.step()
    >>> weight.tolist()
    [1.5]
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            parameters: list[Tensor] = []
            gradients: list[Tensor] = []
            averages: list[Tensor] = []
            square_averages: list[Tensor] = []
            steps: list[Tensor] = []
            # It fills the lists, and makes the averages where this is the first step.
            has_complex = self._init_group(
                group,
                parameters,
                gradients,
                averages,
                square_averages,
                [],
                steps,
            )
            beta1, beta2 = group["betas"]
            adam(
                parameters,
                gradients,
                averages,
                square_averages,
                [],
                steps,
                foreach=group["foreach"],
                capturable=group["capturable"],
                fused=group["fused"],
                has_complex=has_complex,
                amsgrad=False,
                beta1=beta1,
                beta2=beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=False,
            )


class LBFGS(_WithoutCompiler, torch.optim.LBFGS):
    """torch.optim.LBFGS, its steps equal bit by bit."""
