"""Features of a pool, shifted and scaled to mean 0 and deviation 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


class Standardisation:
    """Mean and deviation of a source's rows, and all its rows standardised; both kept until the
    pool, or what is measured of it, changes.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        #: positions that were measured, mean, deviation
        self._measured: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        #: what the standardised rows were computed from, and the rows
        self._standardised: tuple[tuple[np.ndarray, ...], np.ndarray] | None = None

    def measure(self, positions: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Mean (d,) and deviation (d,) float32 of the rows at these positions (n,), by default of
        all; 1 where a feature is constant. 0 and 1 where nothing can be read.
        """
        if positions is None:
            row_count = len(self.source.rows)
            positions = np.arange(row_count)
        if self._measured is not None:
            measured_positions, mean, deviation = self._measured
            if np.array_equal(measured_positions, positions):
                return mean, deviation
        is_readable = self.source.readable[positions]
        if not is_readable.any():
            shape = self.source.shape or (1,)
            zeros = np.zeros(shape, np.float32)
            ones = np.ones(shape, np.float32)
            return zeros, ones
        mean, deviation = self._moments(positions[is_readable])
        self._measured = (positions.copy(), mean, deviation)
        return mean, deviation

    def _moments(self, readable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rounded_up = -(-len(readable) // MEASURED_ROWS)
        step = max(1, rounded_up)
        sample = readable[::step]
        total = 0.0
        total_squares = 0.0
        for start in range(0, len(sample), CHUNK):
            chunk = sample[start : start + CHUNK]
            stored = self.source.take_host(chunk)
            rows = stored.astype(np.float64)
            squares = rows**2
            total = total + rows.sum(0)
            total_squares = total_squares + squares.sum(0)
        mean = np.asarray(total / len(sample))
        # Rounding may take the variance of a constant feature below 0.
        mean_square = total_squares / len(sample)
        variance = np.maximum(mean_square - mean**2, 0)
        deviation = np.sqrt(variance)
        varies = deviation > SMALLEST_DEVIATION
        deviation = np.where(varies, deviation, 1)
        return mean.astype(np.float32), deviation.astype(np.float32)

    def rows(self, measured: np.ndarray | None, positions: np.ndarray) -> np.ndarray:
        """(n, d) float32: the standardised rows at positions (n,), 0 where an entry can't be read.

        measured  the positions that mean and deviation are of, by default all
        """
        mean, deviation = self.measure(measured)
        is_readable = self.source.readable[positions]
        rows = np.zeros((len(positions), *mean.shape), np.float32)
        plain = self.source.take_host(positions[is_readable]).astype(np.float32)
        rows[is_readable] = (plain - mean) / deviation
        return rows

    def features(self, head: Head) -> np.ndarray:
        """(N, d) float32: what a linear head on the CPU embeds of the pool, 0 where an entry can't
        be read. It is kept: don't write there.
        """
        import torch

        source = self.source
        computed_from = (
            source.rows,
            head.mean.numpy(),
            head.scale.numpy(),
        )
        if self._standardised is not None:
            before, features = self._standardised
            if _all_equal(before, computed_from):
                return features
        shape = (len(source.rows), head.width)
        features = np.zeros(shape, np.float32)
        readable = np.flatnonzero(source.readable)
        with torch.no_grad():
            for start in range(0, len(readable), source.batch):
                part = readable[start : start + source.batch]
                rows = source.take(torch.from_numpy(part))
                embedded = head.embed(rows)
                features[part] = embedded.numpy()
        copies = tuple(array.copy() for array in computed_from)
        self._standardised = (copies, features)
        return features


def _all_equal(first: tuple[np.ndarray, ...], second: tuple[np.ndarray, ...]) -> bool:
    """Whether every array of one tuple is the same as that of the other, in shape and values."""
    pairs = zip(first, second)
    return all(np.array_equal(of_first, of_second) for of_first, of_second in pairs)
