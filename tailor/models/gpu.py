"""What training and predicting do differently on a GPU: bf16, quick convolutions, fewer kernels a
step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import nn

#: algorithms that cuDNN tries for a convolution: the fewer, the sooner a network of many layers
#: starts
TRIED = 4


def precision(device: str, net: nn.Module) -> AbstractContextManager[None]:
    """bf16 on a GPU, unless the network wants single precision; single precision on a CPU."""
    cuda = device.startswith("cuda")
    return torch.autocast(
        "cuda" if cuda else "cpu",
        torch.bfloat16,
        enabled=cuda and not getattr(net, "single", False),
    )


@contextmanager
def fast_convolutions() -> Iterator[None]:
    """cuDNN tries its most promising algorithms once for each shape. Without effect on a CPU."""
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark
    limit = cudnn.benchmark_limit
    cudnn.benchmark = True
    if cudnn.is_available():
        cudnn.benchmark_limit = TRIED
    try:
        yield
    finally:
        cudnn.benchmark = before
        if cudnn.is_available():
            cudnn.benchmark_limit = limit


class Halves:
    """bf16 copies of the convolutions' weights: one kernel makes all and one gives gradients back,
    not one each.

    The numbers are autocast's.
    """

    def __init__(self, net: nn.Module) -> None:
        layers = {
            name: layer for name, layer in net.named_modules() if isinstance(layer, nn.Conv2d)
        }
        named = {
            f"{name}.weight": layer.weight
            for name, layer in layers.items()
            if layer.weight.requires_grad
        }
        self.full = list(named.values())
        self.half = {name: p.detach().bfloat16().requires_grad_() for name, p in named.items()}
        self.grads = [torch.zeros_like(p) for p in self.full]

    @torch.no_grad()
    def refresh(self) -> None:
        for half in self.half.values():
            half.grad = None
        torch._foreach_copy_(list(self.half.values()), self.full)

    @torch.no_grad()
    def give_back(self) -> None:
        """The gradients, to the network's own matrices. One that took no part has none."""
        pairs = [
            (p, g, h.grad)
            for p, g, h in zip(self.full, self.grads, self.half.values())
            if h.grad is not None
        ]
        torch._foreach_copy_([g for _, g, _ in pairs], [found for _, _, found in pairs])
        for p, g, _ in pairs:
            p.grad = g


@contextmanager
def no_counting(net: nn.Module) -> Iterator[None]:
    """Batch norms don't count their batches, which costs a kernel each; only one without momentum
    needs the count.
    """
    norms = [
        m for m in net.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d)
    ]
    counts = {m: m.num_batches_tracked for m in norms if m.momentum is not None}
    for norm in counts:
        norm.num_batches_tracked = None
    try:
        yield
    finally:
        for norm, count in counts.items():
            norm.num_batches_tracked = count
