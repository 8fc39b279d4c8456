"""Soft targets of a whole pool, read as training needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

#: rows that are read at once
CHUNK = 16384


class Targets:
    """Targets (n, K) in [0, 1] that nobody holds all of; as much of an array as training needs.

    read       positions (m,) int64 -> (m, K) float32
    positions  (n,) int64: whose targets these are
    classes    K
    """

    def __init__(
        self,
        read: Callable[[np.ndarray], np.ndarray],
        positions: np.ndarray,
        classes: int,
    ) -> None:
        self._read = read
        self._positions = positions
        self.shape = (len(positions), classes)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """Numbers in all of them, n * K."""
        return self.shape[0] * self.shape[1]

    def __getitem__(self, rows: Any) -> np.ndarray:
        """rows: a slice or indices (m,) -> (m, K) float32."""
        positions = self._positions[rows]
        return self._read(positions)

    def only(self, rows: np.ndarray) -> Targets:
        """The targets of rows (m,), not read yet."""
        positions = self._positions[rows]
        classes = self.shape[1]
        return Targets(self._read, positions, classes)

    def sum(self, axis: int, dtype: Any) -> Any:
        """(K,) over the rows, as an array's: axis must be 0."""
        total: Any = 0
        for start in range(0, len(self), CHUNK):
            rows = self[start : start + CHUNK]
            total = total + rows.sum(axis, dtype=dtype)
        return total


class TargetsOnDevice:
    """Targets as a training step reads them: index (m,) on a device -> (m, K) there."""

    def __init__(self, targets: Targets, device: str) -> None:
        self._targets = targets
        self._device = device

    def __getitem__(self, index: torch.Tensor) -> torch.Tensor:
        import torch

        # Whoever reads the targets does so on the host.
        host_index = index.cpu().numpy()
        rows = self._targets[host_index]
        tensor = torch.from_numpy(rows)
        return tensor.to(self._device)
