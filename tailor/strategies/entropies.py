"""Entropies of predictions, which several families score by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.task import MultiClass, Task

if TYPE_CHECKING:
    import torch


def binary_entropy(p: torch.Tensor) -> torch.Tensor:
    """Entropy of a coin in nats, element by element; exactly 0 at p = 0 and p = 1."""
    import torch

    return -(torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p))


def label_entropy(probs: torch.Tensor, task: Task) -> torch.Tensor:
    """(n, K) -> (n,) entropy in nats of a row's class, or the sum of its classes' coins."""
    import torch

    if isinstance(task, MultiClass):
        return -torch.xlogy(probs, probs).sum(1)
    return binary_entropy(probs.clamp(0, 1)).sum(1)
