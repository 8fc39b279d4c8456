"""Backbones without a network: vectors as they are, small pictures, and counted words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.models.backbones import IMAGE, TEXT, VECTOR, Backbone
from tailor.models.pixels import picture_problem, resize
from tailor.pools.base import Pool, Unreadable

#: entries of a pool among which the first vector is looked for
SEARCHED = 100


class Given(Backbone):
    """Vectors that somebody computed already, as they are; the probe standardises them."""

    name = "given"
    kinds = VECTOR
    piece = 512

    def __init__(self, pool: Pool, device: str) -> None:
        super().__init__(pool, device)
        self.width = _first_length(pool)

    @property
    def fingerprint(self) -> str:
        return f"given {self.width}"

    def problem(self, example: Any) -> str | None:
        array = np.asarray(example)
        if array.shape != (self.width,):
            return f"a vector of {self.width} numbers is expected, this has shape {array.shape}"
        if not np.isfinite(array).all():
            return "not all of its numbers are finite"
        return None

    def embed(self, examples: Sequence[Any]) -> np.ndarray:
        vectors = np.stack(examples)
        return vectors.astype(np.float32)


def _first_length(pool: Pool) -> int | None:
    """Of the first vector that can be read; None where the first hundred can't."""
    count = min(len(pool), SEARCHED)
    for position in range(count):
        (example,) = pool.read([position])
        if isinstance(example, Unreadable):
            continue
        if np.ndim(example) == 1:
            return len(example)
    return None


class Pixels(Backbone):
    """The picture itself, made small.

    size  pixels a side
    grey  the mean of its three channels instead of all three
    """

    name = "pixels"
    kinds = IMAGE

    def __init__(
        self,
        pool: Pool,
        device: str,
        *,
        size: int = 16,
        grey: bool = False,
    ) -> None:
        super().__init__(pool, device)
        if size < 1:
            raise InputError(f"size is {size}: at least 1 pixel is needed")
        self.size = size
        self.grey = grey
        channels = 3
        if grey:
            channels = 1
        self.width = size * size * channels

    @property
    def fingerprint(self) -> str:
        if self.grey:
            grey = ", grey"
        else:
            grey = ""
        return f"pixels {self.size} bilinear, 0 to 1{grey}"

    def problem(self, example: Any) -> str | None:
        return picture_problem(example)

    def embed(self, examples: Sequence[Any]) -> np.ndarray:
        pictures = []
        for example in examples:
            picture = np.asarray(example)
            pictures.append(resize(picture, self.size))
        values = np.stack(pictures).astype(np.float32)
        if self.grey:
            values = values.mean(-1)
        # From 0 to 1, as the fingerprint says.
        rows = values.reshape(len(values), -1)
        return rows / 255

    def describe(self) -> str:
        if self.grey:
            grey = ", grey=true"
        else:
            grey = ""
        return f"{self.name}(size={self.size}{grey})"


class HashedWords(Backbone):
    """Words and pairs of words, hashed into a fixed number of columns, in length 1."""

    name = "hashed-words"
    kinds = TEXT
    dtype = "float16"
    piece = 512

    def __init__(
        self,
        pool: Pool,
        device: str,
        *,
        columns: int = 1024,
    ) -> None:
        super().__init__(pool, device)
        if columns < 1:
            raise InputError(f"columns is {columns}: at least 1 is needed")
        self.columns = columns
        self.width = columns

    @property
    def fingerprint(self) -> str:
        return f"hashed words {self.columns}, 1 and 2 grams"

    def embed(self, examples: Sequence[Any]) -> np.ndarray:
        from sklearn.feature_extraction.text import HashingVectorizer

        vectorizer = HashingVectorizer(n_features=self.columns, ngram_range=(1, 2))
        sparse = vectorizer.transform(examples)
        return np.asarray(sparse.toarray())

    def describe(self) -> str:
        return f"{self.name}(columns={self.columns})"
