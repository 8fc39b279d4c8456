"""Entropies of predictions, which several families score by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.task import MultiClass, Task

if TYPE_CHECKING:
    import torch


def binary_entropy(p: torch.Tensor) -> torch.Tensor:
    """Entropy of a coin in nats, element by element; exactly 0 at p = 0 and p = 1."""
    import torch

    heads = torch.xlogy(p, p)
    q = 1 - p
    tails = torch.xlogy(q, q)
    return -(heads + tails)


def label_entropy(probs: torch.Tensor, task: Task) -> torch.Tensor:
    """(n, K) -> (n,) entropy in nats of a row's class, or the sum of its classes' coins."""
    import torch

    if isinstance(task, MultiClass):
        terms = torch.xlogy(probs, probs)
        return -terms.sum(1)
    # Just beyond 0 or 1 the entropy of a coin is not a number.
    class_entropies = binary_entropy(probs.clamp(0, 1))
    return class_entropies.sum(1)
