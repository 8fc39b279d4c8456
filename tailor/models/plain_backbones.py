"""Backbones without a network: vectors as they are, and counted words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.models.backbones import TEXT, VECTOR, Backbone
from tailor.pools.base import Pool, Unreadable


class Given(Backbone):
    """Vectors that somebody computed already, as they are; the probe standardises them."""

    name = "given"
    kinds = VECTOR
    piece = 512

    def __init__(self, pool: Pool, device: str) -> None:
        super().__init__(pool, device)
        self.width = next(
            (len(v) for v in map(self._first(pool), range(min(len(pool), 100))) if v is not None),
            None,
        )

    @staticmethod
    def _first(pool: Pool) -> Any:
        def read(position: int) -> np.ndarray | None:
            (example,) = pool.read([position])
            bad = isinstance(example, Unreadable) or np.ndim(example) != 1
            return None if bad else np.asarray(example)

        return read

    @property
    def fingerprint(self) -> str:
        return f"given {self.width}"

    def problem(self, example: Any) -> str | None:
        array = np.asarray(example)
        if array.ndim != 1 or len(array) != self.width:
            return f"a vector of {self.width} numbers is expected, this has shape {array.shape}"
        return None if np.isfinite(array).all() else "not all of its numbers are finite"

    def embed(self, examples: Sequence[Any]) -> np.ndarray:
        return np.stack(examples).astype(np.float32)


class HashedWords(Backbone):
    """Words and pairs of words, hashed into a fixed number of columns, in length 1."""

    name = "hashed-words"
    kinds = TEXT
    dtype = "float16"
    piece = 512

    def __init__(self, pool: Pool, device: str, *, columns: int = 1024) -> None:
        super().__init__(pool, device)
        if columns < 1:
            raise InputError(f"columns is {columns}: at least 1 is needed")
        self.columns = self.width = columns

    @property
    def fingerprint(self) -> str:
        return f"hashed words {self.columns}, 1 and 2 grams"

    def embed(self, examples: Sequence[Any]) -> np.ndarray:
        from sklearn.feature_extraction.text import HashingVectorizer

        vectorizer = HashingVectorizer(n_features=self.columns, ngram_range=(1, 2))
        return np.asarray(vectorizer.transform(examples).toarray())

    def describe(self) -> str:
        return f"{self.name}(columns={self.columns})"
