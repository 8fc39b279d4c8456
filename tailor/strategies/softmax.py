"""confidence, margin, entropy: three readings of how unsure a softmax is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.selection.pool_view import PoolView
from tailor.strategies.base import MULTI_CLASS, ScoreStrategy

if TYPE_CHECKING:
    import torch


class Confidence(ScoreStrategy):
    """Least confidence (Settles 2009): smallest top probability first."""

    name = "confidence"
    tasks = MULTI_CLASS

    def score(self, view: PoolView) -> torch.Tensor:
        return view.row_max


class Margin(ScoreStrategy):
    """Smallest gap between the two most probable classes first (Scheffer et al. 2001)."""

    name = "margin"
    tasks = MULTI_CLASS

    def score(self, view: PoolView) -> torch.Tensor:
        return view.per_row(margins)


class Entropy(ScoreStrategy):
    """Largest predictive entropy first (Shannon 1948; Settles 2009)."""

    name = "entropy"
    tasks = MULTI_CLASS

    def score(self, view: PoolView) -> torch.Tensor:
        return view.per_row(negative_entropies)


def margins(view: PoolView, part: slice) -> torch.Tensor:
    top = view.rows(part).topk(2, dim=1).values
    return top[:, 0] - top[:, 1]


def negative_entropies(view: PoolView, part: slice) -> torch.Tensor:
    import torch

    p = view.rows(part).double()
    return torch.xlogy(p, p).sum(1)
