"""uncertainty: for each class, the example whose probability is nearest to one half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.strategies.base import MULTI_LABEL, Idea
from tailor.strategies.score_strategy import ScoreStrategy

if TYPE_CHECKING:
    import torch


class Uncertainty(ScoreStrategy):
    """Binary uncertainty sampling, one arm a class: smallest |p_k - 1/2| first.

    Settles, "Active Learning Literature Survey", 2009. Multi-label; needs probabilities. Opening
    costs O(N) for each pulled arm.

    Formula: s_k(x) = |p_k(x) − 1/2| for the arm of class k, smallest first.

    Cost: one pass over the probabilities of each class whose arm is pulled.

    When to use: multi-label tasks, where each class has a border of its own. A class that the model
    has hardly seen has no probability near 1/2: galaxy finds its border sooner.

    >>> import numpy as np
    >>> from tailor import MultiLabel
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiLabel(["cat", "dog"])
    >>> view = ArrayView(task, np.array([[0.9, 0.5], [0.4, 0.1], [0.2, 0.8]]))
    >>> arms = Uncertainty().arms(task)
    >>> [(arm.name, arm.open(view, 1, np.random.default_rng(0)).take()) for arm in arms]
    [('uncertainty[cat]', 1), ('uncertainty[dog]', 0)]
    """

    name = "uncertainty"
    idea = Idea.UNCERTAIN
    tasks = MULTI_LABEL
    per_class = True

    def class_score(self, column: torch.Tensor) -> torch.Tensor:
        return (column - 0.5).abs()
