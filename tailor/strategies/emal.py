"""emal: smallest binary margin on average over the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.selection.pool_view import PoolView
from tailor.strategies.base import MULTI_LABEL, Idea
from tailor.strategies.score_strategy import ScoreStrategy

if TYPE_CHECKING:
    import torch


class Emal(ScoreStrategy):
    """Example-based multi-label uncertainty: smallest mean over k of |p_k - 1/2| first.

    Wu et al., "Multi-label active learning algorithms for image classification", 2014. Multi-label;
    needs probabilities. Opening costs O(NK).

    Formula: s(x) = (1/K) Σ_k |p_k(x) − 1/2|, smallest first.

    Cost: one pass over the N × K probabilities.

    When to use: multi-label tasks with few classes. With many, the mean hides the one class that is
    unsure; uncertainty has an arm for each.

    >>> import numpy as np
    >>> from tailor import MultiLabel
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiLabel(2)
    >>> view = ArrayView(task, np.array([[0.9, 0.5], [0.4, 0.6], [0.2, 0.8]]))
    >>> Emal().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    1
    """

    name = "emal"
    idea = Idea.UNCERTAIN
    tasks = MULTI_LABEL

    def score(self, view: PoolView) -> torch.Tensor:
        return view.per_row(mean_margins)


def mean_margins(view: PoolView, part: slice) -> torch.Tensor:
    """(n,) how far the probabilities of each row are from one half, on average."""
    probs = view.rows(part)
    margins = (probs - 0.5).abs()
    return margins.mean(1)
