"""Rows computed once and kept on disk, found by what they were computed from."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tailor.common.atomic_files import write_atomically
from tailor.errors import InputError

#: bytes of a key on disk
DIGEST = 16
ROWS = "rows.bin"
KEYS = "keys.bin"
DESCRIPTION = "meta.json"
LOCK = "lock"
#: of the files; a folder of another one counts as empty
FORMAT = 1
#: rows that a check looks at together
CHECKED_AT_ONCE = 4096


def key_digest(key: str | bytes) -> bytes:
    """A key as it stands in the index, (16,) bytes."""
    if isinstance(key, str):
        # surrogatepass: a path whose bytes are not UTF-8 has halves of surrogate pairs in it
        key = key.encode("utf-8", "surrogatepass")
    checksum = hashlib.blake2b(key, digest_size=DIGEST)
    return checksum.digest()


def cache_problems(folder: Path) -> list[str]:
    """What is wrong with a cache's files, in words: a description that can't be read, keys without
    their rows, rows that are no numbers. Empty where all is whole; a crash leaves nothing wrong.

    folder  of one cache
    """
    try:
        description = json.loads((folder / DESCRIPTION).read_text())
        dtype = np.dtype(description["dtype"])
        shape = tuple(int(length) for length in description["shape"])
        row_bytes = math.prod(shape) * dtype.itemsize
        keys = (folder / KEYS).stat().st_size // DIGEST
        rows_path = folder / ROWS
        rows = rows_path.stat().st_size // row_bytes
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        if missing != KEYS:
            return [f"{missing} is missing"]
        return []
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        return [f"{DESCRIPTION} is damaged: {error!r}"]
    if rows < keys:
        return [f"{ROWS} has {rows} rows for {keys} keys"]
    if keys == 0 or dtype.kind != "f":
        return []
    values = np.memmap(rows_path, dtype, "r", shape=(keys, *shape))
    return _rows_that_are_no_numbers(values)


def _rows_that_are_no_numbers(rows: np.ndarray) -> list[str]:
    """rows (R, *shape)"""
    for start in range(0, len(rows), CHECKED_AT_ONCE):
        piece = rows[start : start + CHECKED_AT_ONCE]
        is_finite = np.isfinite(piece.reshape(len(piece), -1)).all(1)
        if not is_finite.all():
            row = start + int(np.argmin(is_finite))
            return [f"row {row} of {ROWS} holds what is no number"]
    return []


class RowCache:
    """Rows of one shape in one growing file, read as a memory map, with a key for each.

    `rows.bin` holds the rows and `keys.bin` a 16-byte key for each, in the same order. Rows reach
    the disk before their keys do, so that after a crash at any moment every key has its row; what
    has no key yet is written over. `meta.json` is written atomically. Two processes may share a
    folder: a lock file lets one write at a time.

    folder       of many caches; this one gets a folder in it
    fingerprint  all that the rows depend on besides their keys: the backbone, its weights, the size
                 of the pictures
    dtype        of the rows on disk

    shape        of one row; None before the first

    Raises InputError where the folder can't be used.
    """

    def __init__(
        self,
        folder: Path,
        fingerprint: str,
        dtype: str,
    ) -> None:
        self.folder = Path(folder) / key_digest(fingerprint).hex()
        self.fingerprint = fingerprint
        self.dtype = np.dtype(dtype)
        self.shape: tuple[int, ...] | None = None
        self._index: dict[bytes, int] = {}
        with _clear_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._reload()

    def __len__(self) -> int:
        return len(self._index)

    def find(self, keys: Sequence[bytes]) -> np.ndarray:
        """(n,) int64: the row of each key, -1 where there is none."""
        rows = (self._index.get(key, -1) for key in keys)
        return np.fromiter(rows, np.int64, len(keys))

    @property
    def rows(self) -> np.ndarray:
        """(R, *shape) a read-only memory map of all rows there are now."""
        if self.shape is None:
            return np.zeros((0, 0), self.dtype)
        shape = (len(self._index), *self.shape)
        if not self._index:
            return np.zeros(shape, self.dtype)  # an empty file can't be mapped
        return np.memmap(
            self.folder / ROWS,
            self.dtype,
            "r",
            shape=shape,
        )

    @property
    def row_bytes(self) -> int:
        """Of one row on disk; 0 before the first."""
        if self.shape is None:
            return 0
        numbers = math.prod(self.shape)
        return numbers * self.dtype.itemsize

    def append(self, keys: Sequence[bytes], rows: np.ndarray) -> None:
        """Keep rows (n, *shape) under keys (n,). A key that is there already keeps the row it has.

        Raises InputError for rows of another shape, and where the disk is full.
        """
        rows = np.ascontiguousarray(rows, self.dtype)
        with _clear_errors(self.folder), self._lock():
            # Another process may have written meanwhile.
            self._reload()
            if self.shape is None:
                self._begin(rows.shape[1:])
            if rows.shape[1:] != self.shape:
                raise InputError(
                    f"rows of shape {rows.shape[1:]} don't fit the cache {self.folder}: "
                    f"{self.shape}"
                )
            row_of_key: dict[bytes, int] = {}
            for row, key in enumerate(keys):
                if key not in self._index:
                    row_of_key.setdefault(key, row)
            if not row_of_key:
                return
            row_numbers = list(row_of_key.values())
            self._append_new(list(row_of_key), rows[row_numbers])

    def _append_new(self, keys: list[bytes], rows: np.ndarray) -> None:
        """Write rows (n, *shape) whose keys (n,) are not there yet. The lock is held."""
        count = len(self._index)
        rows_end = count * self.row_bytes
        keys_end = count * DIGEST
        # Rows before keys: after a crash between the two no key is without its row.
        self._write(ROWS, rows_end, rows.tobytes())
        self._write(KEYS, keys_end, b"".join(keys))
        for row, key in enumerate(keys, count):
            self._index[key] = row

    def _begin(self, shape: tuple[int, ...]) -> None:
        """Describe an empty cache for rows of this shape."""
        self.shape = tuple(int(length) for length in shape)
        for name in (KEYS, ROWS):
            path = self.folder / name
            path.unlink(missing_ok=True)
        description = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "shape": self.shape,
            "dtype": self.dtype.str,
        }
        path = self.folder / DESCRIPTION
        write_atomically(path, json.dumps(description))

    def _write(
        self,
        name: str,
        offset: int,
        data: bytes,
    ) -> None:
        """Cut a file at an offset, add data and force it to the disk."""
        path = self.folder / name
        mode = "w+b"
        if path.exists():
            mode = "r+b"
        with path.open(mode) as file:
            # What lies beyond was left by a crash, and has no key.
            file.truncate(offset)
            file.seek(offset)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _reload(self) -> None:
        """Read what is on disk now; a folder whose description can't be read counts as empty, and
        is made anew.
        """
        self.shape = self._read_shape()
        count = self._count_on_disk()
        # Somebody has made the folder anew.
        if count < len(self._index):
            self._index = {}
        first = len(self._index)
        new = count - first
        if new == 0:
            return
        with (self.folder / KEYS).open("rb") as file:
            file.seek(first * DIGEST)
            data = file.read(new * DIGEST)
        for number in range(new):
            offset = number * DIGEST
            key = data[offset : offset + DIGEST]
            self._index[key] = first + number

    def _count_on_disk(self) -> int:
        """Rows that are there as a whole, with their keys."""
        keys_path = self.folder / KEYS
        rows_path = self.folder / ROWS
        # Without a shape, or with one of no numbers.
        if self.row_bytes == 0:
            return 0
        if not keys_path.exists() or not rows_path.exists():
            return 0
        whole_keys = keys_path.stat().st_size // DIGEST
        whole_rows = rows_path.stat().st_size // self.row_bytes
        return min(whole_keys, whole_rows)

    def _read_shape(self) -> tuple[int, ...] | None:
        """The shape of rows that the folder describes; None where it describes others, or none."""
        try:
            path = self.folder / DESCRIPTION
            description = json.loads(path.read_text())
            described = (
                description["format"],
                description["fingerprint"],
                description["dtype"],
            )
            expected = (FORMAT, self.fingerprint, self.dtype.str)
            if described != expected:
                return None
            return tuple(int(length) for length in description["shape"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with (self.folder / LOCK).open("w") as file:
            try:
                import fcntl
            except ImportError:  # no such locks on this system: one process at a time
                yield
                return
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


@contextmanager
def _clear_errors(folder: Path) -> Iterator[None]:
    """A failure of the disk as an InputError that says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"the cache {folder} can't be used: {reason}; give another folder or free space"
        ) from error
