"""Reading chosen rows of Parquet files, a row group at a time, within a limit of memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Unreadable
from tailor.pools.parquet_files import TableFile

CACHE_BYTES = 256 * 2**20
#: A file, and the number of a row group in it.
GroupKey = tuple[TableFile, int]
#: Rows in memory at once of a row group that does not fit the cache.
_STREAMED_ROWS = 256


class RowGroups:
    """The values of one column of some files, by file and row. Threads may share it.

    Row groups read lately stay in memory, up to `cache_bytes`, and the least lately used go first.
    A row group larger than that is streamed in batches and not cached.
    """

    def __init__(self, column: str, cache_bytes: int = CACHE_BYTES) -> None:
        if cache_bytes < 0:
            raise InputError(f"cache_bytes is {cache_bytes}: it must be 0 or more")
        self.column = column
        self.cache_bytes = cache_bytes
        self.cached_bytes = 0
        self._cache: OrderedDict[GroupKey, Any] = OrderedDict()
        self._lock = threading.Lock()  # pages and training may read at the same time

    def values(self, file: TableFile, rows: Sequence[int]) -> dict[int, Any]:
        """The column's values by row; an Unreadable where the row group is broken."""
        values: dict[int, Any] = {}
        rows_by_group = _rows_by_group(file, rows)
        for group, group_rows in rows_by_group.items():
            group_values = self._group_values(file, group, group_rows)
            values.update(zip(group_rows, group_values))
        return values

    def _group_values(
        self,
        file: TableFile,
        group: int,
        rows: list[int],
    ) -> list[Any]:
        """The values of rows in one row group; rows are counted from the beginning of the file."""
        import pyarrow as pa

        group_start = 0
        if group > 0:
            group_start = file.group_ends[group - 1]
        offsets = [row - group_start for row in rows]
        try:
            return self._read(file, group, offsets)
        except (OSError, pa.ArrowException) as problem:
            # The other row groups of the file may be whole.
            reason = f"row group {group} of {file.name} can't be read: {problem}"
            return [Unreadable(reason)] * len(rows)

    def _read(
        self,
        file: TableFile,
        group: int,
        offsets: list[int],
    ) -> list[Any]:
        """The values at these offsets in a row group, ascending."""
        import pyarrow.parquet as pq

        key = (file, group)
        values = self._cached(key)
        if values is None:
            with pq.ParquetFile(file.path) as parquet:
                size = self._uncompressed_bytes(parquet, group)
                if size > self.cache_bytes:
                    return self._streamed(parquet, group, offsets)
                table = parquet.read_row_group(group, columns=[self.column])
            values = table.column(self.column)
            self._add_to_cache(key, values)
        plain_values = []
        for offset in offsets:
            scalar = values[offset]
            plain_values.append(_plain(scalar))
        return plain_values

    def _uncompressed_bytes(self, parquet: Any, group: int) -> int:
        metadata = parquet.metadata.row_group(group)
        total = 0
        for number in range(metadata.num_columns):
            leaf = metadata.column(number)
            # A struct or list is stored as one leaf for each part: "image.bytes", "image.path".
            leaf_column, _, _ = leaf.path_in_schema.partition(".")
            if leaf_column == self.column:
                total += leaf.total_uncompressed_size
        return total

    def _streamed(
        self,
        parquet: Any,
        group: int,
        offsets: list[int],
    ) -> list[Any]:
        values: list[Any] = []
        batch_start = 0
        remaining = iter(offsets)
        offset = next(remaining, None)
        batches = parquet.iter_batches(
            batch_size=_STREAMED_ROWS, row_groups=[group], columns=[self.column]
        )
        for batch in batches:
            batch_values = batch.column(0)
            batch_end = batch_start + batch.num_rows
            while offset is not None and offset < batch_end:
                scalar = batch_values[offset - batch_start]
                values.append(_plain(scalar))
                offset = next(remaining, None)
            # The remaining batches need not be read from the disk.
            if offset is None:
                break
            batch_start = batch_end
        return values

    def _cached(self, key: GroupKey) -> Any:
        with self._lock:
            values = self._cache.get(key)
            if values is not None:
                self._cache.move_to_end(key)
            return values

    def _add_to_cache(self, key: GroupKey, values: Any) -> None:
        with self._lock:
            if key in self._cache:  # another thread was faster
                return
            self._cache[key] = values
            self.cached_bytes += values.nbytes
            while self.cached_bytes > self.cache_bytes and self._cache:
                _, oldest = self._cache.popitem(last=False)
                self.cached_bytes -= oldest.nbytes


def _rows_by_group(file: TableFile, rows: Sequence[int]) -> dict[int, list[int]]:
    """Rows of a file, ascending and each once, by the number of their row group."""
    by_group: dict[int, list[int]] = {}
    ordered = sorted(set(rows))
    for row in ordered:
        # A row at which a group ends is the first of the next one.
        group = np.searchsorted(file.group_ends, row, side="right")
        group_rows = by_group.setdefault(int(group), [])
        group_rows.append(row)
    return by_group


def _plain(scalar: Any) -> Any:
    """A pyarrow scalar as a Python value; a list of numbers as an array, which is much faster, a
    missing number in it as NaN.
    """
    values = getattr(scalar, "values", None)
    if values is None or not hasattr(values, "to_numpy"):
        return scalar.as_py()
    return values.to_numpy(zero_copy_only=False)
