"""What a model is fed with: a row for each entry of a pool, computed once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.models.base import ProgressCallback, quiet
from tailor.models.cache import key_digest
from tailor.models.cached_rows import CachedRows
from tailor.pools.base import Pool, Unreadable

#: entries that are looked up in the cache at a time
CHUNK = 512
#: pictures that are read and made rows of together, where a source has no reason for another number
PIECE = 64
#: what progress bars call it
READING = "reading the pool"


class Source(CachedRows, ABC):
    """Rows for a pool's entries, computed once, kept in a cache, and served by position.

    problems  why a position can't be read, for each that can't
    """

    def __init__(
        self,
        pool: Pool,
        fingerprint: str,
        dtype: str,
        cache: Path | None,
        device: str,
    ) -> None:
        super().__init__(
            fingerprint,
            dtype,
            cache,
            device,
        )
        self.pool = pool
        self.problems: dict[int, str] = {}

    @property
    def piece(self) -> int:
        """Entries that are read, made rows of and kept together. Between two pieces progress is
        told, and whoever waits for it may give up; what was kept stays.
        """
        return PIECE

    @abstractmethod
    def problem(self, example: Any) -> str | None:
        """Why this example can't be used, if it can't."""

    @abstractmethod
    def encode(self, examples: Sequence[Any]) -> np.ndarray:
        """Good examples (n) -> their rows (n, *shape)."""

    def prepare(self, progress: ProgressCallback = quiet) -> dict[int, str]:
        """Compute what is new -> every position that can't be read, with the reason."""
        total = len(self.pool)
        parts = [self.rows]
        last_told = -1

        def tell(done: int) -> None:
            nonlocal last_told
            if done > last_told:
                last_told = done
                progress(done, total, READING)

        try:
            for start in range(len(self.rows), total, CHUNK):
                # Before the first piece too, which may be long in coming: a network is loaded.
                tell(start)
                stop = min(start + CHUNK, total)
                rows = self.compute(range(start, stop), tell)
                parts.append(rows)
                tell(stop)
        finally:  # what was done before an interruption stays done
            if len(parts) > 1:
                self.set_rows(np.concatenate(parts))
        return dict(self.problems)

    def compute(
        self, positions: range, step: Callable[[int], object] = lambda done: None
    ) -> np.ndarray:
        """(n,) the cache's row of each of these entries, computed where it isn't there yet; -1
        where it can't be.

        step hears after each piece up to which position all is done.
        """
        content_keys = self.pool.content_keys(positions)
        if content_keys is None:
            keys = self._compute_unkeyed(positions, step)
        else:
            keys = [key_digest(key) for key in content_keys]
            self._compute_keyed(positions, keys, step)
        rows = self.cache.find(keys)
        # Its key may have a row all the same: of another entry, which could be read.
        for position in self.problems:
            if position in positions:
                row = position - positions.start
                rows[row] = -1
        return rows

    def _compute_keyed(
        self,
        positions: range,
        keys: list[bytes],
        step: Callable[[int], object],
    ) -> None:
        """Compute entries whose keys are not in the cache: the others need not be read."""
        first = positions.start
        is_missing = self.cache.find(keys) < 0
        missing = first + np.flatnonzero(is_missing)
        for piece in _pieces(missing.tolist(), self.piece):
            piece_keys = [keys[position - first] for position in piece]
            examples = self.pool.read(piece)
            self._keep(piece, piece_keys, examples)
            step(piece[-1] + 1)

    def _compute_unkeyed(self, positions: range, step: Callable[[int], object]) -> list[bytes]:
        """Compute entries of a pool that gives no keys: what one holds is known only once it has
        been read. -> their keys.
        """
        keys: list[bytes] = []
        for piece in _pieces(positions, self.piece):
            examples = self.pool.read(piece)
            piece_keys = [_content_key(example) for example in examples]
            is_missing = self.cache.find(piece_keys) < 0
            missing = np.flatnonzero(is_missing).tolist()
            self._keep(
                positions=[piece[row] for row in missing],
                keys=[piece_keys[row] for row in missing],
                examples=[examples[row] for row in missing],
            )
            keys += piece_keys
            step(piece[-1] + 1)
        return keys

    def _keep(
        self,
        positions: Sequence[int],
        keys: Sequence[bytes],
        examples: Sequence[Any],
    ) -> None:
        """Rows of these entries into the cache; a problem for each that can't be used."""
        good_keys = []
        good_examples = []
        for position, key, example in zip(positions, keys, examples, strict=True):
            reason = self._reason_against(example)
            if reason is not None:
                self.problems[position] = reason
                continue
            good_keys.append(key)
            good_examples.append(example)
        if good_keys:
            rows = self.encode(good_examples)
            self.cache.append(good_keys, rows)

    def _reason_against(self, example: Any) -> str | None:
        """Why an entry can't be used, whether it could be read or not; None where it can."""
        if isinstance(example, Unreadable):
            return example.reason
        return self.problem(example)


def _pieces(positions: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(positions), size):
        yield positions[start : start + size]


def _content_key(example: Any) -> bytes:
    if isinstance(example, Unreadable):
        return b""
    if isinstance(example, str):
        return key_digest("text:" + example)
    array = np.ascontiguousarray(example)
    description = f"{array.dtype.str}{array.shape}:"
    content = array.tobytes()
    return key_digest(description.encode() + content)
