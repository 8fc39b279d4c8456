"""Batch norms as part of the convolutions before them: the same numbers to rounding, in less time."""

from __future__ import annotations

import copy
from typing import ClassVar

import torch
from torch import nn


class Normed(nn.Module):
    """A module that says which of its convolutions has which batch norm right behind it."""

    #: (convolution, batch norm), by name; where the module has no such convolution, the pair is passed over
    normed: ClassVar[tuple[tuple[str, str], ...]] = ()


def folded(net: nn.Module) -> nn.Module:
    """A copy that can only predict; the network itself where it says nothing of its batch norms."""
    if not any(isinstance(module, Normed) for module in net.modules()):
        return net
    alone = copy.deepcopy(net).eval().requires_grad_(False)
    for module in alone.modules():
        for pair in module.normed if isinstance(module, Normed) else ():
            if getattr(module, pair[0].partition(".")[0]) is not None:
                conv, norm = map(module.get_submodule, pair)
                if conv._forward_hooks or norm._forward_hooks:  # somebody wants what comes between the two
                    continue
                _fold(conv, norm)
                parent, _, name = pair[1].rpartition(".")
                setattr(module.get_submodule(parent), name, nn.Identity())
    return alone


def _fold(conv: nn.Module, norm: nn.Module) -> None:
    assert isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d) and conv.bias is None  # noqa: PT018
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    conv.weight.mul_(scale.view(-1, 1, 1, 1))
    conv.bias = nn.Parameter(norm.bias - norm.running_mean * scale, requires_grad=False)
