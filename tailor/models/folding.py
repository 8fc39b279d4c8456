"""Batch norms as part of the convolutions before them: the same numbers to rounding, in less
time.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar, TypeVar

import torch
from torch import nn

AnyModule = TypeVar("AnyModule", bound=nn.Module)


class FoldableModule(nn.Module):
    """A module that says which of its convolutions has which batch norm right behind it.

    A derived class may put something between the two, so the pairs are not inherited: it keeps its
    batch norms unless it names the pairs again.
    """

    #: (convolution, batch norm), by name within the module; a pair whose convolution the module
    #: lacks is passed over
    conv_norm_pairs: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "conv_norm_pairs" not in vars(cls):
            cls.conv_norm_pairs = ()


def fold_batch_norms(net: AnyModule) -> AnyModule:
    """A copy of a network for predicting alone, its batch norms folded into its convolutions.

    The network itself where it has no FoldableModule with pairs.
    """
    if not any(_pairs(module) for module in net.modules()):
        return net
    copied = copy.deepcopy(net)
    copied.eval()
    copied.requires_grad_(False)
    for module in copied.modules():
        if _pairs(module):
            _fold_pairs(module)
    return copied


def _fold_pairs(module: nn.Module) -> None:
    """Fold all pairs of a module that can be folded, in place."""
    # Under all its names: a layer may have several.
    layers = dict(module.named_modules(remove_duplicate=False))
    for conv_name, norm_name in _pairs(module):
        conv = layers.get(conv_name)
        norm = layers.get(norm_name)
        if not isinstance(conv, nn.Conv2d):
            continue
        if _can_fold(conv, norm):
            _fold(conv, norm)
            module.set_submodule(norm_name, nn.Identity())


def _pairs(module: nn.Module) -> tuple[tuple[str, str], ...]:
    if isinstance(module, FoldableModule):
        return module.conv_norm_pairs
    return ()


def _can_fold(conv: nn.Conv2d, norm: nn.Module | None) -> bool:
    """Whether both layers are as they were written: somebody may have put others in their places,
    or look at what comes in between.
    """
    # A subclass of the batch norm may compute something else.
    if type(norm) is not nn.BatchNorm2d or not norm.affine:
        return False
    if norm.running_mean is None or norm.running_var is None:
        return False
    weight_is_computed = "weight" not in conv._parameters
    if conv.bias is not None or weight_is_computed:
        return False
    between = (
        conv._forward_hooks,
        norm._forward_pre_hooks,
        norm._forward_hooks,
    )
    return not any(between)


def _fold(conv: nn.Conv2d, norm: Any) -> None:
    # torch.nn.utils.fusion rounds the bias in another order: cached features, computed before, and
    # new ones would differ in their last bits.
    variance = norm.running_var + norm.eps
    inverse_deviation = torch.rsqrt(variance)
    scale = norm.weight * inverse_deviation
    by_channel = scale.view(-1, 1, 1, 1)
    conv.weight.mul_(by_channel)
    shift = norm.running_mean * scale
    bias = norm.bias - shift
    conv.bias = nn.Parameter(bias, requires_grad=False)
