"""Rows computed once and kept on disk, found by what they were computed from."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tailor.common.atomic_files import write_atomically
from tailor.errors import InputError

DIGEST = 16  # bytes of a key on disk


def digest(key: str | bytes) -> bytes:
    """A key as it stands in the index, (16,) bytes."""
    # surrogatepass: a path whose bytes are not UTF-8 has halves of surrogate pairs in it
    data = key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key
    return hashlib.blake2b(data, digest_size=DIGEST).digest()


class RowCache:
    """Rows of one shape in one growing file, read as a memory map, with a key for each.

    `rows.bin` holds the rows and `keys.bin` a 16-byte key for each, in the same order. Rows reach
    the disk before their keys do, so that after a crash at any moment every key has its row; what
    has no key yet is written over. `meta.json` is written aside and renamed. Two processes may
    share a folder: a lock file lets one write at a time.

    fingerprint  all that the rows depend on besides their keys: the backbone, its weights, the size
                 of the pictures
    dtype        of the rows on disk
    """

    def __init__(self, folder: Path, fingerprint: str, dtype: str) -> None:
        self.folder = Path(folder) / digest(fingerprint).hex()
        self.fingerprint = fingerprint
        self.dtype = np.dtype(dtype)
        self.shape: tuple[int, ...] | None = None
        self._index: dict[bytes, int] = {}
        self._files = {
            name: self.folder / name for name in ("rows.bin", "keys.bin", "meta.json", "lock")
        }
        with _clear_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._reload()

    def __len__(self) -> int:
        return len(self._index)

    def find(self, keys: Sequence[bytes]) -> np.ndarray:
        """(n,) int64: the row of each key, -1 where there is none."""
        return np.fromiter((self._index.get(k, -1) for k in keys), np.int64, len(keys))

    @property
    def rows(self) -> np.ndarray:
        """(R, *shape) a read-only memory map of all rows there are now."""
        if self.shape is None or not self._index:
            return np.zeros((0, *(self.shape or (0,))), self.dtype)
        return np.memmap(
            self._files["rows.bin"], self.dtype, "r", shape=(len(self._index), *self.shape)
        )

    def append(self, keys: Sequence[bytes], rows: np.ndarray) -> None:
        """rows (n, *shape) for keys (n,). Keys that are there already keep the row they have."""
        rows = np.ascontiguousarray(rows, self.dtype)
        with _clear_errors(self.folder), self._lock():
            self._reload()
            if self.shape is None:
                self._begin(rows.shape[1:])
            if rows.shape[1:] != self.shape:
                raise InputError(
                    f"rows of shape {rows.shape[1:]} don't fit the cache {self.folder}: "
                    f"{self.shape}"
                )
            new: dict[bytes, int] = {}
            for place, key in enumerate(keys):
                if key not in self._index:
                    new.setdefault(key, place)
            if not new:
                return
            self._write(
                "rows.bin", len(self._index) * self.row_bytes, rows[list(new.values())].tobytes()
            )
            self._write("keys.bin", len(self._index) * DIGEST, b"".join(new))
            start = len(self._index)
            self._index.update((key, start + i) for i, key in enumerate(new))

    @property
    def row_bytes(self) -> int:
        """Of one row on disk; 0 before the first."""
        return int(np.prod(self.shape or (0,), dtype=np.int64)) * self.dtype.itemsize

    def _begin(self, shape: tuple[int, ...]) -> None:
        self.shape = tuple(int(n) for n in shape)
        for name in ("keys.bin", "rows.bin"):
            self._files[name].unlink(missing_ok=True)
        meta = {
            "format": 1,
            "fingerprint": self.fingerprint,
            "shape": self.shape,
            "dtype": self.dtype.str,
        }
        write_atomically(self._files["meta.json"], json.dumps(meta))

    def _write(self, name: str, offset: int, data: bytes) -> None:
        with open(self._files[name], "r+b" if self._files[name].exists() else "w+b") as file:
            file.truncate(offset)
            file.seek(offset)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _reload(self) -> None:
        """Read what is on disk now; a folder whose description can't be read counts as empty, and
        is made anew.
        """
        self.shape = None
        try:
            meta = json.loads(self._files["meta.json"].read_text())
            if (
                meta["fingerprint"] == self.fingerprint
                and meta["dtype"] == self.dtype.str
                and meta["format"] == 1
            ):
                self.shape = tuple(int(n) for n in meta["shape"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            pass
        keys = self._files["keys.bin"]
        rows = self._files["rows.bin"]
        if self.shape is None or not keys.exists() or not rows.exists():
            self._index = {}
            return
        there = rows.stat().st_size // self.row_bytes if self.row_bytes else 0
        count = min(keys.stat().st_size // DIGEST, there)
        if count < len(self._index):
            self._index = {}
        known = len(self._index)
        with open(keys, "rb") as file:
            file.seek(known * DIGEST)
            data = file.read((count - known) * DIGEST)
        for i in range(count - known):
            self._index[data[i * DIGEST : (i + 1) * DIGEST]] = known + i

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with open(self._files["lock"], "w") as file:
            try:
                import fcntl
            except ImportError:  # no such locks on this system: one process at a time
                yield
                return
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


@contextmanager
def _clear_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"the cache {folder} can't be used: {reason}; give another folder or free space"
        ) from error
