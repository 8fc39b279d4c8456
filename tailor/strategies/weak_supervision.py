"""weak-supervision: the most uncertain examples after a short fine-tuning on the model's own
labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.errors import InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import MULTI_LABEL, Idea
from tailor.strategies.entropies import binary_entropy
from tailor.strategies.score_strategy import ScoreStrategy

if TYPE_CHECKING:
    import torch


class WeakSupervision(ScoreStrategy):
    """Largest mean binary entropy first, of a copy of the model that was fine-tuned for `epochs` on
    the whole pool.

    The copy learns the label of what is labelled, and of the rest the model's own probability.
    After Ranganathan et al., "Multi-Label Deep Active Learning with Label Correlation", 2018.
    Multi-label; needs probabilities and a model to fine-tune. Opening costs that fine-tuning and
    O(NK).

    Formula: s(x) = (1/K) Σ_k h(q_k(x)), largest first; h is the binary entropy and q the fine-tuned
    copy's probability.

    Cost: `epochs` passes of training over the whole pool in each round in which it is pulled: by
    far the dearest family.

    When to use: multi-label tasks with a model that is cheap to fine-tune and a pool of moderate
    size.

    >>> import numpy as np
    >>> from tailor import MultiLabel
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiLabel(2)
    >>> probs = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
    >>> view = ArrayView(task, probs, finetune=lambda targets, epochs: targets)
    >>> WeakSupervision().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    1
    """

    name = "weak-supervision"
    idea = Idea.UNCERTAIN
    tasks = MULTI_LABEL
    needs = frozenset({Need.PROBABILITIES, Need.FINETUNE})

    def __init__(self, *, epochs: int = 2) -> None:
        if epochs < 1:
            raise InputError(f"epochs is {epochs}: at least 1 is needed")
        self.finetune_epochs = epochs

    def score(self, view: PoolView) -> torch.Tensor:
        import torch

        probs = view.finetuned(self.finetune_epochs)
        chunks = []
        for part in view.chunks():
            entropies = binary_entropy(probs[part].double())
            chunks.append(entropies.mean(1))
        # Minus the entropy, since the smallest score comes first.
        return -torch.cat(chunks)
