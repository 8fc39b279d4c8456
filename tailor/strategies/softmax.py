"""confidence, margin, entropy: three readings of how unsure a softmax is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.strategies.base import MULTI_CLASS, ScoreStrategy
from tailor.view import RoundView

if TYPE_CHECKING:
    import torch


class Confidence(ScoreStrategy):
    """Least confidence (Settles 2009): smallest top probability first."""

    name = "confidence"
    tasks = MULTI_CLASS

    def score(self, view: RoundView) -> torch.Tensor:
        return view.row_max


class Margin(ScoreStrategy):
    """Smallest gap between the two most probable classes first (Scheffer et al. 2001)."""

    name = "margin"
    tasks = MULTI_CLASS

    def score(self, view: RoundView) -> torch.Tensor:
        import torch

        tops = (view.rows(part).topk(2, dim=1).values for part in view.chunks())
        return torch.cat([top[:, 0] - top[:, 1] for top in tops])


class Entropy(ScoreStrategy):
    """Largest predictive entropy first (Shannon 1948; Settles 2009)."""

    name = "entropy"
    tasks = MULTI_CLASS

    def score(self, view: RoundView) -> torch.Tensor:
        import torch

        return torch.cat([torch.xlogy(p, p).sum(1) for p in (view.rows(part).double() for part in view.chunks())])
