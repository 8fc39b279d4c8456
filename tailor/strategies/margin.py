"""margin: the example whose two most probable classes are closest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.selection.pool_view import PoolView
from tailor.strategies.base import MULTI_CLASS, Idea
from tailor.strategies.score_strategy import ScoreStrategy

if TYPE_CHECKING:
    import torch


class Margin(ScoreStrategy):
    """Smallest margin first: p_(1) - p_(2), the gap between the two most probable classes.

    Scheffer, Decomain and Wrobel, "Active Hidden Markov Models for Information Extraction", 2001.
    Multi-class; needs probabilities. Opening costs O(NK).

    Formula: s(x) = p₍₁₎(x) − p₍₂₎(x), the gap between the two largest probabilities, smallest
    first.

    Cost: one pass over the N × K probabilities and a partial sort.

    When to use: multi-class tasks with many classes, where most of a distribution is noise and the
    two best classes are what matters.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(3)
    >>> view = ArrayView(task, np.array([[0.5, 0.3, 0.2], [0.5, 0.5, 0.0], [0.8, 0.1, 0.1]]))
    >>> Margin().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    1
    """

    name = "margin"
    idea = Idea.UNCERTAIN
    tasks = MULTI_CLASS

    def score(self, view: PoolView) -> torch.Tensor:
        return view.per_row(margins)


def margins(view: PoolView, part: slice) -> torch.Tensor:
    """(n,) the gap between the two largest probabilities of each row."""
    probs = view.rows(part)
    two_largest = probs.topk(2, dim=1)
    first, second = two_largest.values.T
    return first - second
