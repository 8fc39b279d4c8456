"""most-certain: the adversary of comparisons, which asks for what the model knows already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.selection.pool_view import PoolView
from tailor.strategies import ScoreStrategy
from tailor.strategies.base import BOTH

if TYPE_CHECKING:
    import torch


class MostCertain(ScoreStrategy):
    """The example first whose labels the model is surest of, so that the answer teaches least.

    No family to use: added to a set of candidates it shows what a bad one costs.

    Formula: s(x) = −max_k p_k(x); multi-label: −mean_k |2 p_k(x) − 1|, smallest first.
    """

    name = "most-certain"
    tasks = BOTH

    def score(self, view: PoolView) -> torch.Tensor:
        if view.task.kind == "multi-label":
            return view.per_row(_negative_mean_certainty)
        return view.per_row(_negative_largest_probability)


def _negative_largest_probability(view: PoolView, part: slice) -> torch.Tensor:
    """(n,) of multi-class rows."""
    probs = view.rows(part)
    return -probs.amax(dim=1)


def _negative_mean_certainty(view: PoolView, part: slice) -> torch.Tensor:
    """(n,) of multi-label rows."""
    certainty = (2 * view.rows(part) - 1).abs()
    return -certainty.mean(dim=1)
