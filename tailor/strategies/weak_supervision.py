"""weak-supervision: the most uncertain examples after a short fine-tuning on the model's own
labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.errors import InputError
from tailor.selection.pool_view import Need, PoolView, as_matrix, check_probabilities
from tailor.strategies.base import MULTI_LABEL, ScoreStrategy

if TYPE_CHECKING:
    import torch


class WeakSupervision(ScoreStrategy):
    """Fine-tunes a copy of the model on the whole pool (labelled: the label; unlabelled: its own
    probability), then takes the largest mean binary entropy (after Ranganathan et al. 2018).
    Opening it costs that fine-tuning.
    """

    name = "weak-supervision"
    tasks = MULTI_LABEL
    needs = frozenset({Need.PROBABILITIES, Need.FINETUNE})

    def __init__(self, *, epochs: int = 2) -> None:
        if epochs < 1:
            raise InputError(f"epochs is {epochs}: at least 1 is needed")
        self.epochs = epochs

    def score(self, view: PoolView) -> torch.Tensor:
        import torch

        assert view.finetune is not None
        targets = view.rows(slice(None)).clone()
        targets[torch.from_numpy(view.labelled).to(view.device)] = torch.from_numpy(view.labels).to(
            targets
        )
        probs = as_matrix(
            view.finetune(targets, self.epochs), "probabilities after fine-tuning", str(view.device)
        )
        if probs.shape != view.probs.shape:
            raise InputError(
                f"finetune gave shape {tuple(probs.shape)}, the pool has {tuple(view.probs.shape)}"
            )
        probs = check_probabilities(probs, view.task)
        return torch.cat([-binary_entropy(probs[part].double()).mean(1) for part in view.chunks()])


def binary_entropy(p: torch.Tensor) -> torch.Tensor:
    """Entropy of a coin in nats, element by element; exactly 0 at p = 0 and p = 1."""
    import torch

    return -(torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p))
