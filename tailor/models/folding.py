"""Batch norms as part of the convolutions before them: the same numbers to rounding, in less
time.
"""

from __future__ import annotations

import copy
from typing import ClassVar

import torch
from torch import nn


class Normed(nn.Module):
    """A module that says which of its convolutions has which batch norm right behind it.

    That is said for the class itself alone: one derived from it may put something between the two,
    and keeps its batch norms unless it says `normed` again.
    """

    #: (convolution, batch norm), by name; where the module has no such convolution, the pair is
    #: passed over
    normed: ClassVar[tuple[tuple[str, str], ...]] = ()


def folded(net: nn.Module) -> nn.Module:
    """A copy that can only predict; the network itself where it says nothing of its batch norms."""
    if not any(_pairs(module) for module in net.modules()):
        return net
    alone = copy.deepcopy(net).eval().requires_grad_(False)
    for module in alone.modules():
        for pair in _pairs(module):
            if getattr(module, pair[0].partition(".")[0]) is not None:
                conv, norm = map(module.get_submodule, pair)
                if _fold(conv, norm):
                    parent, _, name = pair[1].rpartition(".")
                    setattr(module.get_submodule(parent), name, nn.Identity())
    return alone


def _pairs(module: nn.Module) -> tuple[tuple[str, str], ...]:
    return vars(type(module)).get("normed", ()) if isinstance(module, Normed) else ()


def _fold(conv: nn.Module, norm: nn.Module) -> bool:
    """Whether they are still the two that can be made one: somebody may have put others in their
    places.
    """
    if not isinstance(conv, nn.Conv2d) or type(norm) is not nn.BatchNorm2d:
        return False
    if (
        conv.bias is not None or "weight" not in conv._parameters
    ):  # as where the weight is computed for every batch
        return False
    if not norm.affine or norm.running_mean is None or norm.running_var is None:
        return False
    if (
        conv._forward_hooks or norm._forward_hooks or norm._forward_pre_hooks
    ):  # somebody wants what comes in between
        return False
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    conv.weight.mul_(scale.view(-1, 1, 1, 1))
    conv.bias = nn.Parameter(norm.bias - norm.running_mean * scale, requires_grad=False)
    return True
