"""How far an example lies from the boundaries between its predicted class and the others.

Of a linear head the distance, in features, to the boundary with class c is (z_y - z_c) divided by
|W_y - W_c|, with z the logits, W the head's rows and y the predicted class. Logits are taken from
the probabilities, as log p: of a softmax the differences are the same. Where no head is known,
every length |W_y - W_c| counts as 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.selection.pool_view import PoolView

if TYPE_CHECKING:
    import torch

#: two rows of a head that differ by less have no boundary that an example could lie near
SMALLEST_DIFFERENCE = 1e-12


def log_probabilities(probs: torch.Tensor) -> torch.Tensor:
    """As probs, finite: a probability of 0 counts as the smallest of its precision."""
    import torch

    smallest = torch.finfo(probs.dtype).tiny
    positive = probs.clamp(min=smallest)
    return positive.log()


def row_distances(view: PoolView, dtype: torch.dtype) -> torch.Tensor | None:
    """(K, K) on the view's device: the length of W_y - W_c; None where no head is known."""
    if view.head is None:
        return None
    table = view.to_device(view.head.row_distances)
    bounded = table.clamp(min=SMALLEST_DIFFERENCE)
    return bounded.to(dtype)


def leaders(view: PoolView, part: slice) -> torch.Tensor:
    """(n, 3) of each row of a part: its predicted class, that class's logit, and the distance to
    the nearest boundary.
    """
    import torch

    probs = view.rows(part)
    logits = log_probabilities(probs)
    top, predicted = logits.max(1)
    distances = top[:, None] - logits
    table = row_distances(view, logits.dtype)
    if table is not None:
        distances /= table[predicted]
    # With itself a class has no boundary.
    distances.scatter_(1, predicted[:, None], torch.inf)
    nearest = distances.amin(1)
    classes = predicted.to(logits.dtype)
    return torch.stack([classes, top, nearest], 1)


def nearest_boundary(view: PoolView, part: slice) -> torch.Tensor:
    """(n,) the distance of each row of a part to the nearest boundary."""
    of_rows = leaders(view, part)
    return of_rows[:, 2]
