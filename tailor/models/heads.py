"""What stands on frozen features, what turns raw rows into a network's input, and the loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tailor.errors import InputError
from tailor.task import MultiClass, Task

#: a class that is rare among the labels counts at most this much more
HEAVIEST = 100.0


class Split(nn.Module, ABC):
    """A network in two parts, features and logits, with dropout between them."""

    width: int

    @abstractmethod
    def embed(self, x: Tensor) -> Tensor:
        """-> features (n, width)."""

    @abstractmethod
    def classify(self, features: Tensor) -> Tensor:
        """-> logits (n, K)."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x as the source gives it, mask (n, width) -> logits (n, K), features (n, width)."""
        features = self.embed(x).float()
        with torch.autocast(
            x.device.type, enabled=False
        ):  # the last layer is cheap, and its precision is seen
            return self.classify(features if mask is None else features * mask), features


class Head(Split):
    """A linear layer on standardised features, or one hidden layer before it.

    mean, deviation  (d,) of the features; part of the weights
    """

    single = True  # no bf16

    def __init__(self, inputs: int, hidden: int | None, classes: int) -> None:
        super().__init__()
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))
        self.hidden = nn.Linear(inputs, hidden) if hidden else None
        self.out = nn.Linear(hidden or inputs, classes)
        self.width = hidden or inputs

    def standardise(self, mean: np.ndarray, deviation: np.ndarray) -> None:
        self.mean.copy_(torch.from_numpy(mean))
        self.scale.copy_(torch.from_numpy(1 / deviation))

    def embed(self, x: Tensor) -> Tensor:
        """x (n, d) any precision -> (n, d) standardised, or the hidden layer's activations (n,
        hidden).
        """
        x = (x.float() - self.mean) * self.scale
        return x if self.hidden is None else F.relu(self.hidden(x))

    def classify(self, features: Tensor) -> Tensor:
        return torch.as_tensor(self.out(features))


class PixelNet(Split):
    """A network for normalised pictures, fed with bytes."""

    convolutions_cast = True  # all of them run under autocast

    def __init__(self, net: nn.Module, mean: Any, deviation: Any) -> None:
        super().__init__()
        self.net = net
        self.width = int(net.width)  # type: ignore[arg-type]
        scale = 1 / torch.tensor(deviation, dtype=torch.float32).view(1, 3, 1, 1)
        self.scale: Tensor
        self.shift: Tensor
        self.register_buffer("scale", scale)
        self.register_buffer(
            "shift", -torch.tensor(mean, dtype=torch.float32).view(1, 3, 1, 1) * scale
        )

    def embed(self, x: Tensor) -> Tensor:
        """x (n, 3, H, W) uint8 -> (n, width)."""
        return self.net.embed(torch.addcmul(self.shift, x.float(), self.scale))  # type: ignore[operator]

    def classify(self, features: Tensor) -> Tensor:
        return self.net.classify(features)  # type: ignore[operator]


def activate(task: Task, logits: Tensor) -> Tensor:
    """logits (n, K) -> probabilities (n, K) float32: softmax or sigmoid by task."""
    return logits.float().softmax(1) if isinstance(task, MultiClass) else logits.float().sigmoid()


def uniform(task: Task) -> float:
    """What is said of an example that can't be read."""
    return 1 / task.size if isinstance(task, MultiClass) else 0.5


def make_loss(task: Task, weights: Tensor | None) -> Callable[[Tensor, Tensor], Tensor]:
    """(logits (n, K), targets (n, K) in [0, 1]) -> the mean loss. weights (K,): of a class, or of
    its positives.
    """
    if not isinstance(task, MultiClass):
        return lambda logits, targets: F.binary_cross_entropy_with_logits(
            logits, targets, pos_weight=weights
        )

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        weighted = targets if weights is None else targets * weights
        return -(weighted * logits.log_softmax(1)).sum() / weighted.sum().clamp_min(1e-12)

    return loss


def class_weights(task: Task, given: Any, targets: Any) -> np.ndarray | None:
    """(K,) float32 or None.

    given    None, an array (K,), or "balanced": multi-class, all classes that have a label count
             the same in total; multi-label, a class's positives count as much as its negatives. At
             most 100 to 1; 1 without a label.
    targets  (n, K), an array or Targets
    """
    if given is None:
        return None
    if isinstance(given, str):
        if given != "balanced":
            raise InputError(
                f"class_weights is {given!r}: 'balanced', {task.size} numbers, or nothing"
            )
        counts = targets.sum(0, dtype=np.float64)
        there = counts > 0
        total = float(len(targets))
        safe = np.where(there, counts, 1)
        if isinstance(task, MultiClass):
            weights = np.where(there, total / (max(1, there.sum()) * safe), 1)
        else:
            weights = np.where(there & (counts < total), (total - counts) / safe, 1)
        return np.clip(weights, 1 / HEAVIEST, HEAVIEST).astype(np.float32)
    weights = np.asarray(given, np.float32)
    if weights.shape != (task.size,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError(f"class_weights must be {task.size} numbers of at least 0, got {given!r}")
    return weights
