"""What a model said of a pool, in shards on disk, so that no process has to hold it all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailor.common.atomic_files import atomic_path, write_atomically
from tailor.errors import InputError
from tailor.selection.pool_view import CHUNK
from tailor.task import SUM_TOLERANCE

#: rows of a shard: what one task of an engine reads, CHUNK rows at a time
SHARD = 4 * CHUNK
META = "predictions.json"
PROBS, FEATURES = "probs", "features"
#: what NumPy raises for a file that is not there, empty, cut short or something else
DAMAGE = (OSError, EOFError, ValueError)


@dataclass(frozen=True)
class Shard:
    """The rows from start to stop: a .npy file of probabilities, and one of features where there
    are any.
    """

    start: int
    stop: int
    probs: str
    features: str | None

    @property
    def span(self) -> slice:
        """Its rows, as positions in the pool."""
        return slice(self.start, self.stop)

    def __len__(self) -> int:
        return self.stop - self.start

    def read(self, name: str, rows: Any) -> np.ndarray:
        """rows: a slice or positions (n,) within the shard -> (n, width), a copy in memory."""
        path: str | None = self.probs
        if name == FEATURES:
            path = self.features
        assert path is not None
        try:
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
            # A copy, so that the map is dropped as this returns: pages of a map that stays open
            # would count as this process's memory.
            return np.array(mapped[rows])
        except DAMAGE as problem:
            raise InputError(
                f"shard {path} can't be read ({problem}): run this again, what is damaged is "
                "then predicted anew"
            ) from problem


@dataclass(frozen=True)
class Predictions:
    """Probabilities (N, K) and features (N, d) of a pool, `shard` rows to a file, as a folder.

    A folder is begun, its shards are written in any order and by any process, each aside and then
    renamed, so that a shard is there whole or not at all. `fingerprint` says what the numbers came
    from: begun again with the same one, the shards that are there are kept.
    """

    folder: str
    rows: int
    classes: int
    features: int = 0  # d; 0: there are none
    dtype: str = "float16"
    shard: int = SHARD
    fingerprint: str = ""

    def __post_init__(self) -> None:
        smallest_size = min(self.rows, self.classes, self.shard)
        if smallest_size < 1 or self.features < 0:
            raise InputError(
                f"predictions of {self.rows} rows, {self.classes} classes and {self.features} "
                "features in shards of "
                f"{self.shard} rows: each must be at least 1 (features: 0)"
            )
        check_dtype(self.dtype)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.classes

    @property
    def nbytes(self) -> int:
        """On disk, when all shards are written."""
        width = self.classes + self.features
        numbers = self.rows * width
        return numbers * np.dtype(self.dtype).itemsize

    def begin(self) -> Predictions:
        """Make the folder; shards of other predictions in it go, and what killed writers left of
        them.
        """
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        meta_path = folder / META
        # Without the folder's path: predictions that were moved are still the same.
        fields = {
            "format": 1,
            **asdict(self),
            "folder": "",
        }
        meta = json.dumps(fields).encode()
        if meta_path.exists() and meta_path.read_bytes() == meta:
            return self
        # With a * at the end: what a killed writer left has a longer name.
        for old in folder.glob("*.npy*"):
            old.unlink(missing_ok=True)
        # Last: a process killed before it leaves no shard that would pass for a new one.
        write_atomically(meta_path, meta)
        return self

    @classmethod
    def open(cls, folder: Path | str) -> Predictions:
        """Predictions that are whole."""
        meta_path = Path(folder) / META
        try:
            meta = json.loads(meta_path.read_text())
            if meta.pop("format") != 1:
                raise ValueError("another format")
            # Where it lies now: it may have been moved since it was written.
            meta["folder"] = str(folder)
            predictions = cls(**meta)
        except FileNotFoundError:
            raise InputError(f"{folder} holds no predictions: there is no {META}") from None
        except (ValueError, KeyError, TypeError) as problem:
            raise InputError(f"{meta_path} can't be read ({problem}): predict again") from problem
        missing = predictions.missing()
        if missing:
            first = missing[0]
            raise InputError(
                f"{folder} lacks {len(missing)} of {len(predictions)} shards (not written, or "
                f"damaged), the first is {first}: predict again, which goes on where it "
                "stopped"
            )
        return predictions

    def __len__(self) -> int:
        """How many shards there are."""
        return -(-self.rows // self.shard)

    def __getitem__(self, number: int) -> Shard:
        if not 0 <= number < len(self):
            raise IndexError(number)
        start = number * self.shard
        stop = min(start + self.shard, self.rows)
        probs = self._path(PROBS, number)
        features = None
        if self.features:
            features = self._path(FEATURES, number)
        return Shard(
            start,
            stop,
            probs,
            features,
        )

    def __iter__(self) -> Iterator[Shard]:
        for number in range(len(self)):
            yield self[number]

    def missing(self) -> list[int]:
        """The shards that are not written yet, or that a power cut or a full disk has damaged."""
        missing = []
        for number, shard in enumerate(self):
            if not self._is_written(shard):
                missing.append(number)
        return missing

    def _is_written(self, shard: Shard) -> bool:
        rows = len(shard)
        for _, path, width in self._files(shard):
            if not _is_whole(path, (rows, width), self.dtype):
                return False
        return True

    def write(
        self,
        number: int,
        probs: np.ndarray,
        features: np.ndarray | None = None,
    ) -> None:
        """Write one shard.

        probs     (n, K)
        features  (n, d), or None where the predictions have none

        Raises InputError where a shape is wrong, or a number too large for the shards' dtype.
        """
        shard = self[number]
        arrays = {PROBS: probs, FEATURES: features}
        for name, path, width in self._files(shard):
            array = arrays[name]
            needed_shape = (len(shard), width)
            shape = None
            if array is not None:
                shape = array.shape
            if array is None or shape != needed_shape:
                raise InputError(f"shard {number} needs shape {needed_shape}, got {shape}")
            stored = self._as_stored(array, name, shard.start)
            # Not forced to the disk, which cost a third of predicting: file systems that keep order
            # write a file's length after its bytes, so that what a power cut leaves is too short,
            # and missing() sees that.
            with atomic_path(path, durable=False) as temporary, temporary.open("wb") as file:
                np.save(file, stored, allow_pickle=False)

    def _as_stored(
        self,
        array: np.ndarray,
        name: str,
        start: int,
    ) -> np.ndarray:
        """A shard's array in the shards' dtype. start: the example of its first row."""
        if name == PROBS:
            array = _without_rounding(array)
        try:
            # Else NumPy would write infinity and say no more than a warning.
            with np.errstate(over="raise"):
                return np.ascontiguousarray(array, self.dtype)
        except FloatingPointError:
            message = self._too_large(array, name, start)
            raise InputError(message) from None

    def _files(self, shard: Shard) -> list[tuple[str, str, int]]:
        """(name, path, numbers in a row) of a shard's files, in the order in which they are
        written.
        """
        files = []
        if shard.features is not None:
            features = (FEATURES, shard.features, self.features)
            files.append(features)
        probs = (PROBS, shard.probs, self.classes)
        files.append(probs)
        return files

    def _too_large(
        self,
        array: np.ndarray,
        name: str,
        start: int,
    ) -> str:
        limit = float(np.finfo(self.dtype).max)
        is_beyond = np.abs(array) > limit
        # What is infinite already is no matter of the dtype.
        is_too_large = is_beyond & np.isfinite(array)
        cells = np.argwhere(is_too_large)
        row, column = cells[0]
        example = start + row
        value = array[row, column]
        wider = "float64"
        if self.dtype == "float16":
            wider = "float32"
        return (
            f"{name} of example {example} reach {value:g}, and shards of "
            f"{self.dtype} hold numbers up to {limit:,.6g}: scale them, or set [engine] "
            f'dtype = "{wider}"'
        )

    def write_all(self, probs: Any, features: Any = None) -> Predictions:
        """Arrays (N, K) and (N, d) that are in memory, or memory maps."""
        self.begin()
        for number, shard in enumerate(self):
            shard_probs = np.asarray(probs[shard.span])
            shard_features = None
            if features is not None:
                shard_features = np.asarray(features[shard.span])
            self.write(number, shard_probs, shard_features)
        return self

    def take(self, name: str, positions: np.ndarray | slice) -> np.ndarray:
        """(n, width) rows in the order asked for, read where they lie. name: PROBS or FEATURES."""
        if isinstance(positions, slice):
            ends = positions.indices(self.rows)
            positions = np.arange(*ends)
        width = self.classes
        if name == FEATURES:
            width = self.features
        shape = (len(positions), width)
        rows = np.empty(shape, self.dtype)
        numbers = positions // self.shard
        # A shard at a time, however the positions are mixed: each file is opened once.
        for number in np.unique(numbers).tolist():
            shard = self[number]
            in_shard = np.flatnonzero(numbers == number)
            shard_positions = positions[in_shard] - shard.start
            rows[in_shard] = shard.read(name, shard_positions)
        return rows

    def _path(self, name: str, number: int) -> str:
        file_name = f"{name}-{number:05d}.npy"
        return os.path.join(self.folder, file_name)


def check_dtype(dtype: str) -> str:
    if dtype not in ("float16", "float32", "float64"):
        raise InputError(f"dtype is {dtype!r}: float16, float32 or float64 is needed")
    return dtype


def _is_whole(path: str, shape: tuple[int, int], dtype: str) -> bool:
    """Whether a shard's file can be read and has what it should have. Only its head is read."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGE:
        return False
    if array.shape != shape:
        return False
    return bool(array.dtype == np.dtype(dtype))


def _without_rounding(probs: np.ndarray) -> np.ndarray:
    """Probabilities that rounding has put a little outside [0, 1] are brought back, as in memory;
    others are left for whoever checks them.
    """
    # Most have nothing to bring back: two passes that make no array say so.
    lowest = probs.min(initial=0)
    highest = probs.max(initial=1)
    if lowest >= 0 and highest <= 1:
        return probs
    tolerance = SUM_TOLERANCE.get(probs.dtype.itemsize, 0.0)
    is_below = probs < 0
    is_above = probs > 1
    # What is far off, or not a number, stays: the check that follows has to see it.
    is_tolerable = (probs >= -tolerance) & (probs <= 1 + tolerance)
    is_off = (is_below | is_above) & is_tolerable
    if not is_off.any():
        return probs
    clipped = probs.clip(0, 1)
    return np.where(is_off, clipped, probs)
