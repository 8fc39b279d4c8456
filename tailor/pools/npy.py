"""Rows of .npy files, and of uncompressed arrays in .npz files, read by seeking.

A memory map would count every page it touched as the process's memory, and end the process when the
file is cut short.
"""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError, UnknownName
from tailor.pools.base import Unreadable

#: A compressed array can't be read in part: it is taken into memory up to this size.
MOST_COMPRESSED = 2**30
#: Rows that follow one another are read together, up to this many bytes.
_RUN_BYTES = 2**22


class NpyRows:
    """An array in a file: shape and dtype known, rows read when asked.

    start, length  where the .npy lies in the file, in bytes; by default it is all of the file
    """

    def __init__(self, path: Path, start: int = 0, length: int | None = None) -> None:
        self.path = path
        self._fortran: bool
        try:
            with open(path, "rb") as file:
                file.seek(start)
                self.shape, self._fortran, self.dtype = read_header(file)
                self._data = file.tell()
                there = os.fstat(file.fileno()).st_size - start if length is None else length
        except FileNotFoundError:
            raise InputError(f"no file at {path}") from None
        except (OSError, ValueError) as problem:
            raise InputError(
                f"{path} is not a whole .npy file ({problem}): save it again with numpy.save"
            ) from None
        check_header(path, self.shape, self.dtype, there - (self._data - start))
        self._fortran = self._fortran and len(self.shape) > 1
        self._row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize

    def rows(self, positions: Sequence[int]) -> list[np.ndarray | Unreadable]:
        """The rows at these positions; Unreadable where the file has become too short."""
        order = sorted(set(positions))
        found: dict[int, np.ndarray | Unreadable] = {}
        try:
            if self._fortran:
                whole = np.memmap(self.path, self.dtype, "r", self._data, self.shape, order="F")
                found = {
                    p: np.array(whole[p]) if p < len(whole) else Unreadable("missing")
                    for p in order
                }
            else:
                with open(self.path, "rb", buffering=0) as file:
                    for first, count in self._runs(order):
                        found.update(self._run(file.fileno(), first, count))
        except (OSError, ValueError) as problem:
            reason = (
                "missing" if isinstance(problem, FileNotFoundError) else f"can't be read: {problem}"
            )
            return [Unreadable(reason)] * len(positions)
        return [found[p] for p in positions]

    def _runs(self, order: list[int]) -> list[tuple[int, int]]:
        most = max(1, _RUN_BYTES // max(1, self._row_bytes))
        runs: list[tuple[int, int]] = []
        for position in order:
            if runs and position == sum(runs[-1]) and runs[-1][1] < most:
                runs[-1] = (runs[-1][0], runs[-1][1] + 1)
            else:
                runs.append((position, 1))
        return runs

    def _run(self, file: int, first: int, count: int) -> dict[int, np.ndarray | Unreadable]:
        raw = bytearray()
        while len(raw) < count * self._row_bytes:
            more = os.pread(
                file,
                count * self._row_bytes - len(raw),
                self._data + first * self._row_bytes + len(raw),
            )
            if not more:
                break
            raw += more
        whole = len(raw) // self._row_bytes if self._row_bytes else count
        values = np.frombuffer(
            raw, self.dtype, whole * (self._row_bytes // max(1, self.dtype.itemsize))
        )
        values = values.reshape(whole, *self.shape[1:])
        return {
            first + i: values[i] if i < whole else Unreadable("truncated") for i in range(count)
        }

    def all(self) -> np.ndarray:
        """Every row: for labels and ids."""
        rows = self.rows(range(self.shape[0]))
        bad = [r for r in rows if isinstance(r, Unreadable)]
        if bad:
            raise InputError(f"{self.path}: {bad[0].reason}; save it again with numpy.save")
        return np.array(rows, dtype=self.dtype)


def read_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """(shape, whether columns lie together, dtype) of a .npy file that is open at its beginning."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def check_header(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], there: int) -> None:
    """A header may claim any shape: the file must hold that much, before anything is made for each
    row of it.

    there: bytes that follow the header
    """
    if dtype.hasobject:
        raise InputError(
            f"{path} holds Python objects, which are never loaded: save plain numbers or text"
        )
    claimed = math.prod(shape) * dtype.itemsize
    nothing_a_row = len(shape) > 0 and shape[0] > 0 and claimed == 0
    if there < claimed or min(shape, default=0) < 0 or nothing_a_row:
        raise InputError(
            f"{path} is not a whole .npy file: its header claims an array of shape {shape} with "
            f"{claimed} bytes, "
            f"{there} follow it; save it again with numpy.save"
        )


def open_npz(path: Path, array: str | None, ids: Any, labels: Any) -> tuple[Any, Any, Any]:
    """The examples, ids and labels of an .npz file, by name or by what they are called."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = {
                i.filename.removesuffix(".npy"): i
                for i in archive.infolist()
                if i.filename.endswith(".npy")
            }
    except (OSError, zipfile.BadZipFile) as problem:
        raise InputError(
            f"{path} is not a whole .npz file ({problem}): save it again with numpy.savez"
        ) from None
    if array is None:
        others = [n for n in infos if n not in ("ids", "y", "label", "labels")]
        if len(others) != 1:
            raise InputError(
                f"{path} holds the arrays {', '.join(infos) or '(none)'}: name the examples' "
                "(array=)"
            )
        array = others[0]
    if ids is None and "ids" in infos:
        ids = _member(path, infos, "ids", whole=True)
    if labels is None:
        labels = next((n for n in ("y", "label", "labels") if n in infos), None)
    if isinstance(labels, str):
        labels = _member(path, infos, labels, whole=True)
    return _member(path, infos, array), ids, labels


def _member(path: Path, infos: dict[str, zipfile.ZipInfo], name: str, whole: bool = False) -> Any:
    if name not in infos:
        raise UnknownName("array", name, infos)
    info = infos[name]
    if info.compress_type == zipfile.ZIP_STORED:
        with open(path, "rb") as file:
            file.seek(info.header_offset + 26)
            lengths = np.frombuffer(file.read(4), "<u2")
        rows = NpyRows(path, info.header_offset + 30 + int(lengths.sum()), info.file_size)
        return rows.all() if whole else rows
    if info.file_size > MOST_COMPRESSED:
        raise InputError(
            f"array {name!r} of {path} is compressed and {info.file_size} bytes large, the limit "
            f"is {MOST_COMPRESSED}: "
            "save it with numpy.save as .npy, of which only the asked rows are read"
        )
    try:
        return _unpacked(path, info)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
        raise InputError(
            f"array {name!r} of {path} can't be read ({problem}): save it again"
        ) from None


def _unpacked(path: Path, info: zipfile.ZipInfo) -> np.ndarray:
    with zipfile.ZipFile(path) as archive:
        with archive.open(info) as file:
            shape, _, dtype = read_header(file)
            check_header(path, shape, dtype, info.file_size - file.tell())
        with archive.open(info) as file:
            found: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
            return found


def read_npz(path: Path, name: str) -> np.ndarray:
    """One array of an .npz file, all of it."""
    with zipfile.ZipFile(path) as archive:
        infos = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    found: np.ndarray = _member(path, infos, name, whole=True)
    return found
