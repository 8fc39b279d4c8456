"""emal: smallest binary margin on average over the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.selection.pool_view import PoolView
from tailor.strategies.base import MULTI_LABEL, ScoreStrategy

if TYPE_CHECKING:
    import torch


class Emal(ScoreStrategy):
    """Example-based multi-label uncertainty (Wu et al. 2014): the mean over classes of |p -
    1/2|.
    """

    name = "emal"
    tasks = MULTI_LABEL

    def score(self, view: PoolView) -> torch.Tensor:
        return view.per_row(lambda view, part: (view.rows(part) - 0.5).abs().mean(1))
