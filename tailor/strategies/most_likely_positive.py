"""most-likely-positive: for each class, the example most likely to be in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.strategies.base import Idea
from tailor.strategies.score_strategy import ScoreStrategy

if TYPE_CHECKING:
    import torch


class MostLikelyPositive(ScoreStrategy):
    """Active search by the most likely positive, one arm a class: largest p_k first.

    It is the one-step policy of active search: the pick that finds most positives if it were the
    last. `ens` looks further ahead.

    Warmuth et al., "Active Learning in the Drug Discovery Process", 2001. Both kinds of task; needs
    probabilities. Opening costs O(N) for each pulled arm.

    Formula: s_k(x) = p_k(x) for the arm of class k, largest first.

    Cost: one pass over the probabilities of each class whose arm is pulled.

    When to use: to find positives (`reward="search"`). The model knows such examples already, so it
    learns little from them; where accuracy counts, combine it with `evidence="surprise"`.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> view = ArrayView(task, np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]))
    >>> arms = MostLikelyPositive().arms(task)
    >>> [arm.open(view, 1, np.random.default_rng(0)).take() for arm in arms]
    [0, 2]
    """

    name = "most-likely-positive"
    idea = Idea.SEARCH
    per_class = True

    def class_score(self, column: torch.Tensor) -> torch.Tensor:
        return -column
