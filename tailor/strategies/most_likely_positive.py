"""most-likely-positive: for each class, the example most likely to be in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.strategies.base import ScoreStrategy

if TYPE_CHECKING:
    import torch


class MostLikelyPositive(ScoreStrategy):
    """Active search, one arm a class (Warmuth et al. 2001): largest probability first."""

    name = "most-likely-positive"
    per_class = True

    def class_score(self, column: torch.Tensor) -> torch.Tensor:
        return -column
