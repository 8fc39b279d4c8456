"""What training and predicting do differently on a GPU: bf16, quick convolutions, fewer kernels a
step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import nn

from tailor.models.networks import Network

#: algorithms that cuDNN tries for a convolution: the fewer, the sooner a network of many layers
#: starts
CUDNN_TRIALS = 4


def precision(device: str, net: Network) -> AbstractContextManager[None]:
    """bf16 on a GPU, unless the network wants single precision; single precision on a CPU."""
    if not device.startswith("cuda"):
        return torch.autocast("cpu", torch.bfloat16, enabled=False)
    return torch.autocast("cuda", torch.bfloat16, enabled=not net.single_precision)


@contextmanager
def fast_convolutions() -> Iterator[None]:
    """cuDNN tries its most promising algorithms once for each shape. Without effect on a CPU."""
    cudnn = torch.backends.cudnn
    benchmark_before = cudnn.benchmark
    limit_before = cudnn.benchmark_limit
    cudnn.benchmark = True
    # Where cuDNN is not there, torch refuses to set its limit.
    if cudnn.is_available():
        cudnn.benchmark_limit = CUDNN_TRIALS
    try:
        yield
    finally:
        cudnn.benchmark = benchmark_before
        if cudnn.is_available():
            cudnn.benchmark_limit = limit_before


class HalfPrecisionWeights:
    """bf16 copies of the convolutions' weights, for training under autocast.

    One kernel makes all copies and one gives all gradients back, where autocast launches one each.
    The numbers are autocast's.

    full       the network's own weights, float32
    half       their copies, by the name of the parameter
    gradients  float32, one for each of `full`, in memory that stays in place
    """

    def __init__(self, net: nn.Module) -> None:
        trained: dict[str, torch.Tensor] = {}
        for name, layer in net.named_modules():
            if not isinstance(layer, nn.Conv2d):
                continue
            if layer.weight.requires_grad:
                trained[f"{name}.weight"] = layer.weight
        self.full = list(trained.values())
        self.half: dict[str, torch.Tensor] = {}
        for name, weight in trained.items():
            copied = weight.detach().bfloat16()
            self.half[name] = copied.requires_grad_()
        self.gradients = [torch.zeros_like(weight) for weight in self.full]

    @torch.no_grad()
    def refresh(self) -> None:
        """Copy the network's weights again, and forget the copies' gradients."""
        for half in self.half.values():
            half.grad = None
        torch._foreach_copy_(list(self.half.values()), self.full)

    @torch.no_grad()
    def give_back(self) -> None:
        """Copy the gradients to the network's own weights. A weight that took no part has none."""
        weights = []
        targets = []
        sources = []
        for weight, gradient, half in zip(self.full, self.gradients, self.half.values()):
            if half.grad is None:
                continue
            weights.append(weight)
            targets.append(gradient)
            sources.append(half.grad)
        # Into memory that stays in place: a graph is captured with these addresses.
        torch._foreach_copy_(targets, sources)
        for weight, gradient in zip(weights, targets):
            weight.grad = gradient


@contextmanager
def no_counting(net: nn.Module) -> Iterator[None]:
    """Batch norms don't count their batches, which costs a kernel each; only one without momentum
    needs the count.
    """
    kinds = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    counts = {}
    for module in net.modules():
        if isinstance(module, kinds) and module.momentum is not None:
            counts[module] = module.num_batches_tracked
    for norm in counts:
        norm.num_batches_tracked = None
    try:
        yield
    finally:
        for norm, count in counts.items():
            norm.num_batches_tracked = count
