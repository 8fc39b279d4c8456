"""Rows of a .npy file, read by seeking.

A memory map would count every page that it touched as the process's memory, and would end the
process when the file is cut short.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Unreadable

#: Rows that follow one another are read together, up to this many bytes.
_RUN_BYTES = 2**22
#: Rows by their position, an Unreadable for each that the file lacks.
RowsByPosition = dict[int, np.ndarray | Unreadable]
#: What stands in front of the data: shape, whether columns lie together, dtype.
Header = tuple[tuple[int, ...], bool, np.dtype[Any]]


class NpyRows:
    """An array in a file: shape and dtype are known, rows are read when asked for.

    path           the .npy file, or a file that holds one
    start, length  where the .npy lies in that file, in bytes; by default it is all of the file

    Raises InputError where it is not a whole .npy file of plain values.
    """

    def __init__(
        self,
        path: Path,
        start: int = 0,
        length: int | None = None,
    ) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                if length is None:
                    status = os.fstat(file.fileno())
                    length = status.st_size - start
                file.seek(start)
                header = read_header(file)
                self._data_start = file.tell()
        except FileNotFoundError:
            raise InputError(f"no file at {path}") from None
        except (OSError, ValueError) as problem:
            raise InputError(
                f"{path} is not a whole .npy file ({problem}): save it again with numpy.save"
            ) from None
        shape, is_fortran, dtype = header
        self.shape = shape
        self.dtype = dtype
        header_bytes = self._data_start - start
        check_header(
            path,
            shape,
            dtype,
            data_bytes=length - header_bytes,
        )
        # With one dimension both orders are the same.
        self._is_fortran = is_fortran and len(shape) > 1
        self._row_shape = shape[1:]
        self._row_values = math.prod(self._row_shape)
        self._row_bytes = self._row_values * dtype.itemsize

    def rows(self, positions: Sequence[int]) -> list[np.ndarray | Unreadable]:
        """The rows at these positions; Unreadable where the file is gone or has become too
        short.
        """
        ordered = sorted(set(positions))
        try:
            if self._is_fortran:
                rows = self._fortran_rows(ordered)
            else:
                rows = self._plain_rows(ordered)
        except FileNotFoundError:
            missing = Unreadable("missing")
            return [missing] * len(positions)
        except (OSError, ValueError) as problem:
            unreadable = Unreadable(f"can't be read: {problem}")
            return [unreadable] * len(positions)
        return [rows[position] for position in positions]

    def _fortran_rows(self, ordered: list[int]) -> RowsByPosition:
        """Of an array whose columns lie together: a row is spread over all of the file."""
        array = np.memmap(
            self.path,
            self.dtype,
            mode="r",
            offset=self._data_start,
            shape=self.shape,
            order="F",
        )
        rows: RowsByPosition = {}
        for position in ordered:
            if position < len(array):
                # Copied: a row of the map would keep all of the file mapped.
                rows[position] = np.array(array[position])
            else:
                rows[position] = Unreadable("missing")
        return rows

    def _plain_rows(self, ordered: list[int]) -> RowsByPosition:
        rows: RowsByPosition = {}
        runs = self._runs(ordered)
        # Unbuffered: each run says how many bytes it wants.
        with open(self.path, "rb", buffering=0) as file:
            descriptor = file.fileno()
            for run in runs:
                run_rows = self._read_run(descriptor, run)
                rows.update(run_rows)
        return rows

    def _runs(self, ordered: list[int]) -> list[range]:
        """The positions, ascending, in runs that are read at once."""
        row_bytes = max(1, self._row_bytes)
        most_rows = max(1, _RUN_BYTES // row_bytes)
        runs: list[range] = []
        run = range(0)
        for position in ordered:
            follows = position == run.stop
            if follows and 0 < len(run) < most_rows:
                run = range(run.start, position + 1)
                runs[-1] = run
            else:
                run = range(position, position + 1)
                runs.append(run)
        return runs

    def _read_run(self, descriptor: int, run: range) -> RowsByPosition:
        offset = run.start * self._row_bytes
        content = _read_bytes(
            descriptor, start=self._data_start + offset, size=len(run) * self._row_bytes
        )
        # The file may have been cut short in the middle of a row, whose bytes are left over.
        whole_rows = len(run)
        if self._row_bytes:
            whole_rows = len(content) // self._row_bytes
        flat_values = np.frombuffer(content, self.dtype, count=whole_rows * self._row_values)
        values = flat_values.reshape(whole_rows, *self._row_shape)
        rows: RowsByPosition = {}
        for position, row in zip(run, values):
            rows[position] = row
        for position in run[whole_rows:]:
            rows[position] = Unreadable("truncated")
        return rows

    def all(self) -> np.ndarray:
        """The whole array, for labels and ids. Raises InputError where a row can't be read."""
        every_position = range(self.shape[0])
        rows = self.rows(every_position)
        for row in rows:
            if isinstance(row, Unreadable):
                raise InputError(f"{self.path}: {row.reason}; save it again with numpy.save")
        return np.array(rows, dtype=self.dtype)


def _read_bytes(descriptor: int, start: int, size: int) -> bytearray:
    """So many bytes of a file, fewer where it ends before."""
    content = bytearray()
    # One pread may give less than was asked for.
    while len(content) < size:
        read_bytes = len(content)
        part = os.pread(descriptor, size - read_bytes, start + read_bytes)
        if not part:
            break
        content += part
    return content


def read_header(file: Any) -> Header:
    """(shape, whether columns lie together, dtype) of a .npy file that is open at its beginning.

    Raises ValueError where there is no such header.
    """
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def check_header(
    path: Path,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    data_bytes: int,
) -> None:
    """Raises InputError unless the file holds as much as its header claims, and no Python objects.

    A header may claim any shape: this is checked before anything is made for each row of it.

    data_bytes  the bytes that follow the header
    """
    if dtype.hasobject:
        raise InputError(
            f"{path} holds Python objects, which are never loaded: save plain numbers or text"
        )
    claimed_bytes = math.prod(shape) * dtype.itemsize
    has_rows = len(shape) > 0 and shape[0] > 0
    has_empty_rows = has_rows and claimed_bytes == 0
    is_negative = min(shape, default=0) < 0
    if data_bytes < claimed_bytes or is_negative or has_empty_rows:
        raise InputError(
            f"{path} is not a whole .npy file: its header claims an array of shape {shape} with "
            f"{claimed_bytes} bytes, {data_bytes} follow it; save it again with numpy.save"
        )
