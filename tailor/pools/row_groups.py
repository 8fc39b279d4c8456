"""Reading chosen rows of Parquet files, a row group at a time, within a bound of memory."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Unreadable

CACHE_BYTES = 256 * 2**20


@dataclass(frozen=True)
class TableFile:
    """What is remembered of one Parquet file. ends (groups,): the row at which each row group
    ends.
    """

    path: Path
    name: str
    size: int
    time_ns: int
    ends: tuple[int, ...]
    missing: bool = False

    @property
    def rows(self) -> int:
        return self.ends[-1] if self.ends else 0


def describe_file(path: Path, name: str) -> tuple[TableFile, Any]:
    """A file and its schema. OSError or ArrowException (InputError from here) where it is not a
    whole Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        status = path.stat()
        with pq.ParquetFile(path) as file:
            counts = [
                file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)
            ]
            ends = tuple(np.cumsum(counts).tolist())
            return TableFile(
                path, name, status.st_size, status.st_mtime_ns, ends
            ), file.schema_arrow
    except FileNotFoundError:
        raise InputError(f"no file at {path}") from None
    except (OSError, pa.ArrowException) as problem:
        raise InputError(
            f"{path} is not a whole Parquet file ({problem}): write it again"
        ) from None


class RowGroups:
    """The column `column` of some files, by file and row. Row groups lately used stay in memory, up
    to `cache_bytes`.

    A row group larger than that is streamed in batches instead, and not kept.
    """

    def __init__(self, column: str, cache_bytes: int = CACHE_BYTES) -> None:
        if cache_bytes < 0:
            raise InputError(f"cache_bytes is {cache_bytes}: it must be 0 or more")
        self.column = column
        self.cache_bytes = cache_bytes
        self._kept: OrderedDict[tuple[TableFile, int], Any] = OrderedDict()
        self._lock = threading.Lock()  # pages and training may read at the same time
        self.held_bytes = 0

    def values(self, file: TableFile, rows: Sequence[int]) -> dict[int, Any]:
        """The column's values at these rows; an Unreadable where the row group is broken."""
        import pyarrow as pa

        wanted: dict[int, list[int]] = {}
        for row in sorted(set(rows)):
            wanted.setdefault(int(np.searchsorted(file.ends, row, side="right")), []).append(row)
        found: dict[int, Any] = {}
        for group, its in wanted.items():
            first = file.ends[group - 1] if group else 0
            local = [row - first for row in its]
            try:
                found.update(zip(its, self._pick(file, group, local)))
            except (OSError, pa.ArrowException) as problem:
                reason = f"row group {group} of {file.name} can't be read: {problem}"
                found.update(dict.fromkeys(its, Unreadable(reason)))
        return found

    def _pick(self, file: TableFile, group: int, rows: list[int]) -> list[Any]:
        import pyarrow.parquet as pq

        with self._lock:
            if (kept := self._kept.get((file, group))) is not None:
                self._kept.move_to_end((file, group))
        if kept is not None:
            return [_plain(kept[row]) for row in rows]
        with pq.ParquetFile(file.path) as opened:
            part = opened.metadata.row_group(group)
            starts = [part.column(c).path_in_schema.split(".")[0] for c in range(part.num_columns)]
            size = sum(
                part.column(c).total_uncompressed_size
                for c, name in enumerate(starts)
                if name == self.column
            )
            if size <= self.cache_bytes:
                table = opened.read_row_group(group, columns=[self.column])
                column = table.column(self.column)
                self._keep((file, group), column)
                return [_plain(column[row]) for row in rows]
            picked: list[Any] = []
            done = 0
            ahead = iter(rows)
            row = next(ahead, None)
            for batch in opened.iter_batches(
                batch_size=256, row_groups=[group], columns=[self.column]
            ):
                while row is not None and row < done + batch.num_rows:
                    picked.append(_plain(batch.column(0)[row - done]))
                    row = next(ahead, None)
                if row is None:
                    break
                done += batch.num_rows
            return picked

    def _keep(self, at: tuple[TableFile, int], column: Any) -> None:
        with self._lock:
            if at in self._kept:  # another thread was faster
                return
            self._kept[at] = column
            self.held_bytes += column.nbytes
            while self.held_bytes > self.cache_bytes and self._kept:
                self.held_bytes -= self._kept.popitem(last=False)[1].nbytes


def _plain(scalar: Any) -> Any:
    """A value as Python has it; a list of numbers as an array, which is much faster. A missing
    number is NaN in it.
    """
    values = getattr(scalar, "values", None)
    if values is None or not hasattr(values, "to_numpy"):
        return scalar.as_py()
    return values.to_numpy(zero_copy_only=False)


def unchanged(file: TableFile) -> TableFile | None:
    """The file as it is now, where its row groups are still those remembered; None where they are
    not.
    """
    try:
        status = os.stat(file.path)
    except OSError:
        return None
    if (status.st_size, status.st_mtime_ns) == (file.size, file.time_ns) and not file.missing:
        return file
    try:
        now, _ = describe_file(file.path, file.name)
    except InputError:
        return None
    if file.missing:
        return now if now.rows == file.rows else None
    return now if now.ends == file.ends else None
