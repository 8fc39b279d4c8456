"""uncertainty: for each class, the example whose probability is nearest to one half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailor.strategies.base import MULTI_LABEL, ScoreStrategy

if TYPE_CHECKING:
    import torch


class Uncertainty(ScoreStrategy):
    """Binary uncertainty sampling, one arm a class (Settles 2009)."""

    name = "uncertainty"
    tasks = MULTI_LABEL
    per_class = True

    def class_score(self, column: torch.Tensor) -> torch.Tensor:
        return (column - 0.5).abs()
