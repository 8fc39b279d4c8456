"""bald: what dropout passes disagree about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.errors import InputError
from tailor.selection.pool_view import Need, PoolView, as_matrix, check_probabilities
from tailor.strategies.base import ScoreStrategy
from tailor.strategies.weak_supervision import binary_entropy
from tailor.task import MultiClass, Task

if TYPE_CHECKING:
    import torch


class Bald(ScoreStrategy):
    """Largest mutual information between label and network (Gal et al. 2017): the entropy of the
    mean prediction less the mean entropy over dropout passes; in a multi-label task summed over the
    classes.
    """

    name = "bald"
    needs = frozenset({Need.PROBABILITIES, Need.DROPOUT})

    def score(self, view: PoolView) -> torch.Tensor:
        import torch

        assert view.dropout is not None
        passes = 0
        total = torch.zeros(view.probs.shape, device=view.device, dtype=torch.float64)
        entropies = torch.zeros(view.size, device=view.device, dtype=torch.float64)
        for given in view.dropout():
            probs = as_matrix(given, "dropout probabilities", str(view.device))
            if probs.shape != view.probs.shape:
                raise InputError(
                    f"a dropout pass has shape {tuple(probs.shape)}, not {tuple(view.probs.shape)}"
                )
            probs = check_probabilities(probs, view.task).double()
            total += probs
            entropies += entropy(probs, view.task)
            passes += 1
        if passes == 0:
            raise InputError("dropout() gave no pass: bald needs at least one, ten are usual")
        return entropies / passes - entropy(total / passes, view.task)


def entropy(probs: torch.Tensor, task: Task) -> torch.Tensor:
    """(n, K) -> (n,) entropy in nats of a row's class, or the sum of its classes' coins."""
    import torch

    if isinstance(task, MultiClass):
        return -torch.xlogy(probs, probs).sum(1)
    return binary_entropy(probs.clamp(0, 1)).sum(1)
