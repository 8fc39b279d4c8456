"""Pools of noise, on which speed is measured: what is in an example makes no difference to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tailor.pools.base import Pool


class Noise(Pool):
    """Random bytes as pictures or numbers as vectors; only the first is ever read, the cache is
    filled beforehand.
    """

    kind = "image"

    def __init__(self, size: int, shape: tuple[int, ...]) -> None:
        self._ids = [str(i) for i in range(size)]
        self.shape = shape

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def read(self, positions: Sequence[int]) -> list[Any]:
        rng = np.random.default_rng(0)
        rows = rng.integers(
            0,
            256,
            (len(positions), *self.shape),
            np.uint8,
        )
        return list(self._as_examples(rows))

    def _as_examples(self, rows: np.ndarray) -> np.ndarray:
        """As a pool of this kind holds them."""
        return rows

    def content_keys(self, positions: Sequence[int]) -> list[str]:
        return [f"noise {position}" for position in positions]


class NoiseVectors(Noise):
    kind = "vector"

    def _as_examples(self, rows: np.ndarray) -> np.ndarray:
        return rows.astype(np.float32)
