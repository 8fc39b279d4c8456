"""entropy: the example whose prediction says least."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.selection.pool_view import PoolView
from tailor.strategies.base import MULTI_CLASS, Idea
from tailor.strategies.score_strategy import ScoreStrategy

if TYPE_CHECKING:
    import torch


class Entropy(ScoreStrategy):
    """Largest predictive entropy first: - sum over k of p_k log p_k.

    Shannon 1948; Settles, "Active Learning Literature Survey", 2009. Multi-class; needs
    probabilities. Opening costs O(NK).

    Formula: s(x) = −Σ_k p_k(x) ln p_k(x), largest first.

    Cost: one pass over the N × K probabilities and a partial sort.

    When to use: multi-class tasks with few classes. With many, small probabilities add up and hide
    the close calls; take margin.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(3)
    >>> view = ArrayView(task, np.array([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3], [0.8, 0.1, 0.1]]))
    >>> Entropy().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    1
    """

    name = "entropy"
    idea = Idea.UNCERTAIN
    tasks = MULTI_CLASS

    def score(self, view: PoolView) -> torch.Tensor:
        return view.per_row(negative_entropies)


def negative_entropies(view: PoolView, part: slice) -> torch.Tensor:
    """(n,) float64: sum over k of p_k log p_k of each row."""
    import torch

    p = view.rows(part).double()
    terms = torch.xlogy(p, p)
    return terms.sum(1)
