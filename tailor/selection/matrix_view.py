"""What views have in common that hold their predictions and features as matrices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tailor.selection.pool_view import PoolView
from tailor.selection.view_checks import full_precision

if TYPE_CHECKING:
    import torch


class MatrixView(PoolView):
    """A view of matrices on its device, whether these are all of the pool or a part of it."""

    @property
    @abstractmethod
    def probs(self) -> torch.Tensor:
        """(N, K)"""

    @property
    @abstractmethod
    def features(self) -> torch.Tensor | None:
        """(N, d), or None"""

    @property
    def predictions(self) -> torch.Tensor:
        return self.probs

    def rows(
        self, which: slice | torch.Tensor, classes: slice | Sequence[int] | np.ndarray | None = None
    ) -> torch.Tensor:
        rows = self.probs[which]
        if classes is not None:
            rows = rows[:, classes]  # before they are widened: that costs the most
        return full_precision(rows)

    def feature_rows(self, which: slice | torch.Tensor) -> torch.Tensor:
        assert self.features is not None
        rows = self.features[which]
        return full_precision(rows)
