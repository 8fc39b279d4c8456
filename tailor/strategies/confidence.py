"""confidence: the example whose most probable class is least probable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.selection.pool_view import PoolView
from tailor.strategies.base import MULTI_CLASS, Idea
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.score_strategy import ScoreStrategy

if TYPE_CHECKING:
    import torch


class Confidence(ScoreStrategy):
    """Least confidence: smallest max_k p_k first.

    Settles, "Active Learning Literature Survey", 2009. Multi-class; needs probabilities. Opening
    costs O(N): the largest probability of each row is known from checking them.

    Formula: s(x) = max_k p_k(x), smallest first.

    Cost: one pass over the N × K probabilities and a partial sort.

    When to use: multi-class tasks, as a cheap and strong candidate. Where classes are rare it asks
    mostly at the borders of common ones; give it galaxy for company.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> view = ArrayView(task, np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]))
    >>> Confidence().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    1
    """

    name = "confidence"
    idea = Idea.UNCERTAIN
    tasks = MULTI_CLASS

    def score(self, view: PoolView) -> torch.Tensor:
        return view.row_max

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        return OpeningWork(bytes_read=4 * shape.examples)
