"""Features of a pool, shifted and scaled to mean 0 and deviation 1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tailor.models.source import Source

if TYPE_CHECKING:
    from tailor.models.heads import Head

#: mean and deviation are measured on at most this many rows, evenly spaced
MEASURED_ROWS = 65536
#: rows that are summed at once
CHUNK = 4096
#: a feature that varies less than this counts as constant
SMALLEST_DEVIATION = 1e-6


class _Measured(NamedTuple):
    """Positions (n,) that were measured, with mean (d,) and deviation (d,) of their rows."""

    positions: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray


class _Standardised(NamedTuple):
    """All rows standardised (N, d), and the arrays that they were computed from."""

    computed_from: tuple[np.ndarray, ...]
    features: np.ndarray


class Standardisation:
    """Mean and deviation of a source's rows, and all its rows standardised; both kept until the
    pool, or what is measured of it, changes.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._measured: _Measured | None = None
        self._standardised: _Standardised | None = None

    def measure(self, positions: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Mean (d,) and deviation (d,) float32 of the rows at these positions (n,), by default of
        all; 1 where a feature is constant. 0 and 1 where nothing can be read.
        """
        if positions is None:
            row_count = len(self.source.rows)
            positions = np.arange(row_count)
        before = self._measured
        if before is not None and np.array_equal(before.positions, positions):
            return before.mean, before.deviation
        is_readable = self.source.readable[positions]
        # Not kept: more of the pool may be readable next time.
        if not is_readable.any():
            return self._no_moments()
        readable = positions[is_readable]
        mean, deviation = self._moments(readable)
        self._measured = _Measured(
            # A copy, since the caller may write into its positions.
            positions=positions.copy(),
            mean=mean,
            deviation=deviation,
        )
        return mean, deviation

    def _no_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation that change nothing."""
        shape = self.source.shape or (1,)
        mean = _zeros(shape)
        deviation = np.ones(shape, np.float32)
        return mean, deviation

    def _moments(self, readable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (d,) and deviation (d,) float32 of the rows at positions (n,), all readable."""
        step = math.ceil(len(readable) / MEASURED_ROWS)
        sample = readable[::step]
        total = 0.0
        total_squares = 0.0
        for chunk in _chunks(sample, CHUNK):
            # In single precision the difference of two large sums of squares would lose a small
            # variance.
            rows = self._double_rows(chunk)
            squares = rows**2
            total = total + rows.sum(0)
            total_squares = total_squares + squares.sum(0)
        count = len(sample)
        mean = np.asarray(total / count)
        mean_square = np.asarray(total_squares / count)
        deviation = _deviation(mean, mean_square)
        return _single(mean), _single(deviation)

    def _double_rows(self, positions: np.ndarray) -> np.ndarray:
        """(n, d) float64: the rows at positions (n,), all readable."""
        rows = self.source.take_host(positions)
        return rows.astype(np.float64)

    def rows(self, measured: np.ndarray | None, positions: np.ndarray) -> np.ndarray:
        """(n, d) float32: the standardised rows at positions (n,), 0 where an entry can't be read.

        measured  the positions that mean and deviation are of, by default all
        """
        mean, deviation = self.measure(measured)
        is_readable = self.source.readable[positions]
        readable = positions[is_readable]
        stored = self.source.take_host(readable)
        centred = _single(stored) - mean
        shape = (len(positions), *mean.shape)
        rows = _zeros(shape)
        rows[is_readable] = centred / deviation
        return rows

    def features(self, head: Head) -> np.ndarray:
        """(N, d) float32: what a linear head on the CPU embeds of the pool, 0 where an entry can't
        be read. It is kept: don't write there.
        """
        computed_from = (
            self.source.rows,
            head.mean.numpy(),
            head.scale.numpy(),
        )
        before = self._standardised
        if before is not None and _all_equal(before.computed_from, computed_from):
            return before.features
        features = self._embed_all(head)
        # Copies: source and head share these arrays, and may write into them.
        copies = tuple(array.copy() for array in computed_from)
        self._standardised = _Standardised(computed_from=copies, features=features)
        return features

    def _embed_all(self, head: Head) -> np.ndarray:
        """(N, d) float32: of all readable rows, a batch at a time."""
        import torch

        source = self.source
        shape = (len(source.rows), head.width)
        features = _zeros(shape)
        readable = np.flatnonzero(source.readable)
        with torch.no_grad():
            for part in _chunks(readable, source.batch):
                positions = torch.from_numpy(part)
                rows = source.take(positions)
                embedded = head.embed(rows)
                features[part] = embedded.numpy()
        return features


def _chunks(positions: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Positions (n,), at most `size` of them at a time."""
    for start in range(0, len(positions), size):
        stop = start + size
        yield positions[start:stop]


def _single(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32)


def _zeros(shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _deviation(mean: np.ndarray, mean_square: np.ndarray) -> np.ndarray:
    """(d,) float64 from the means (d,) of features and of their squares; 1 where one is
    constant.
    """
    variance = mean_square - mean**2
    # Rounding may take the variance of a constant feature below 0.
    variance = np.maximum(variance, 0)
    deviation = np.sqrt(variance)
    return np.where(deviation > SMALLEST_DEVIATION, deviation, 1)


def _all_equal(first: tuple[np.ndarray, ...], second: tuple[np.ndarray, ...]) -> bool:
    """Whether every array of one tuple is the same as that of the other, in shape and values."""
    pairs = zip(first, second)
    return all(np.array_equal(of_first, of_second) for of_first, of_second in pairs)
