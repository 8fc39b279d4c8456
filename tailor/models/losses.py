"""From logits to probabilities and to a loss, by kind of task; and the weights of the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from tailor.errors import InputError
from tailor.models.targets import Targets
from tailor.task import MultiClass, Task

#: (logits (n, K), targets (n, K) in [0, 1]) -> the mean loss
Loss = Callable[[Tensor, Tensor], Tensor]

#: the most that a rare class counts more than another
LARGEST_WEIGHT = 100.0


def activate(task: Task, logits: Tensor) -> Tensor:
    """Logits (n, K) -> probabilities (n, K) float32: softmax (multi-class) or sigmoid."""
    if isinstance(task, MultiClass):
        return logits.float().softmax(1)
    return logits.float().sigmoid()


def make_loss(task: Task, weights: Tensor | None) -> Loss:
    """Cross-entropy (multi-class) or binary cross-entropy, the mean over a batch.

    weights  (K,) of each class (multi-class) or of its positives; None: all count the same
    """
    if not isinstance(task, MultiClass):
        return lambda logits, targets: F.binary_cross_entropy_with_logits(
            logits, targets, pos_weight=weights
        )

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        if weights is None:
            weighted = targets
        else:
            weighted = targets * weights
        log_probs = logits.log_softmax(1)
        total = (weighted * log_probs).sum()
        # A batch may hold classes of weight 0 alone.
        total_weight = weighted.sum().clamp_min(1e-12)
        return -total / total_weight

    return loss


def loss_weights(task: Task, option: Any, targets: np.ndarray | Targets) -> np.ndarray | None:
    """The weight of each class in the loss, (K,) float32, or None.

    option   None, an array (K,), or "balanced": multi-class, all classes that have a label count
             the same in total; multi-label, a class's positives count as much as its negatives. At
             most 100 to 1; 1 without a label.
    targets  (n, K)

    Raises InputError for another text, a wrong number of weights, or one that is negative or not
    finite.
    """
    if option is None:
        return None
    if isinstance(option, str):
        if option != "balanced":
            raise InputError(
                f"class_weights is {option!r}: 'balanced', {task.size} numbers, or nothing"
            )
        return _balanced(task, targets)
    weights = np.asarray(option, np.float32)
    if not _are_weights(weights, task.size):
        raise InputError(f"class_weights must be {task.size} numbers of at least 0, got {option!r}")
    return weights


def _are_weights(weights: np.ndarray, size: int) -> bool:
    if weights.shape != (size,):
        return False
    if not np.isfinite(weights).all():
        return False
    return bool((weights >= 0).all())


def _balanced(task: Task, targets: np.ndarray | Targets) -> np.ndarray:
    """(K,) float32: as loss_weights() says of "balanced"."""
    counts = targets.sum(0, dtype=np.float64)
    total = float(len(targets))
    has_label = counts > 0
    # 1 where there is no label, whose weight is set below: nothing is divided by 0.
    divisor = np.where(has_label, counts, 1)
    if isinstance(task, MultiClass):
        labelled_classes = max(1, has_label.sum())
        balanced = total / (labelled_classes * divisor)
        weights = np.where(has_label, balanced, 1)
    else:
        has_both = has_label & (counts < total)
        negatives = total - counts
        balanced = negatives / divisor
        weights = np.where(has_both, balanced, 1)
    limited = np.clip(weights, 1 / LARGEST_WEIGHT, LARGEST_WEIGHT)
    return limited.astype(np.float32)
