"""bald: what dropout passes disagree about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.errors import InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Idea
from tailor.strategies.entropies import label_entropy
from tailor.strategies.score_strategy import ScoreStrategy

if TYPE_CHECKING:
    import torch


class Bald(ScoreStrategy):
    """Largest mutual information between label and network first: H(mean p) - mean H(p), over
    dropout passes.

    H is the entropy of a prediction; in a multi-label task the sum of its classes' entropies.
    Gal, Islam and Ghahramani, "Deep Bayesian Active Learning with Image Data", 2017. Both kinds of
    task; needs probabilities and dropout passes. Opening costs O(NK) for each pass, besides the
    passes themselves.

    Formula: s(x) = H(mean_t p_t(x)) − mean_t H(p_t(x)) over dropout passes t, largest first.

    Cost: as many predictions of the whole pool as there are passes (`dropout_passes`, 10).

    When to use: networks with dropout, where noise in the labels must be told from what the network
    has not learned yet.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> passes = [np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([[0.1, 0.9], [0.5, 0.5]])]
    >>> view = ArrayView(task, passes[0], dropout=lambda: passes)
    >>> Bald().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    0
    """

    name = "bald"
    idea = Idea.UNCERTAIN
    needs = frozenset({Need.PROBABILITIES, Need.DROPOUT})

    def score(self, view: PoolView) -> torch.Tensor:
        import torch

        passes = 0
        total = torch.zeros((view.size, view.task.size), device=view.device, dtype=torch.float64)
        entropies = torch.zeros(view.size, device=view.device, dtype=torch.float64)
        # Summed as they come: keeping all passes would take as many times the memory.
        for predicted in view.dropout_passes():
            probs = predicted.double()
            total += probs
            entropies += label_entropy(probs, view.task)
            passes += 1
        if passes == 0:
            raise InputError("dropout() gave no pass: bald needs at least one, ten are usual")
        mean_entropy = entropies / passes
        mean = total / passes
        entropy_of_mean = label_entropy(mean, view.task)
        # Minus the information, since the smallest score comes first.
        return mean_entropy - entropy_of_mean
