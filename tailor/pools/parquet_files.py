"""The Parquet files of a pool: which there are, what they hold, and whether they have changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailor.errors import InputError
from tailor.pools.base import shortened

#: How a file or folder name begins that belongs to a split.
_SPLIT_NAME = re.compile(r"^(train|test|valid|validation|val|dev)(?![a-z])", re.IGNORECASE)
#: Rows in memory at once while a whole column is read.
_BATCH_ROWS = 8192


@dataclass(frozen=True)
class TableFile:
    """What a pool remembers of one Parquet file.

    name         relative to the folder of the pool
    size         in bytes
    modified_ns  its modification time
    group_ends   (groups,) the row at which each row group ends
    missing      it is known from an earlier time, and its rows keep their positions
    """

    path: Path
    name: str
    size: int
    modified_ns: int
    group_ends: tuple[int, ...]
    missing: bool = False

    @property
    def rows(self) -> int:
        if not self.group_ends:
            return 0
        return self.group_ends[-1]


def inspect_file(path: Path, name: str) -> tuple[TableFile, Any]:
    """A file and its pyarrow schema. Raises InputError where it is not a whole Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        status = path.stat()
        with pq.ParquetFile(path) as parquet:
            file = TableFile(
                path=path,
                name=name,
                size=status.st_size,
                modified_ns=status.st_mtime_ns,
                group_ends=_group_ends(parquet.metadata),
            )
            return file, parquet.schema_arrow
    except FileNotFoundError:
        raise InputError(f"no file at {path}") from None
    except (OSError, pa.ArrowException) as problem:
        raise InputError(
            f"{path} is not a whole Parquet file ({problem}): write it again"
        ) from None


def _group_ends(metadata: Any) -> tuple[int, ...]:
    """(groups,) the row at which each row group ends, from the metadata of a Parquet file."""
    ends = []
    end = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        end += group.num_rows
        ends.append(end)
    return tuple(ends)


def current_version(file: TableFile) -> TableFile | None:
    """The file as it is now, where its rows can still be read by the remembered numbers; None
    where it is gone or its row groups differ.
    """
    try:
        status = os.stat(file.path)
    except OSError:
        return None
    # Size and time alone, as long as they stay: opening every file anew would take long.
    has_same_size = status.st_size == file.size
    has_same_time = status.st_mtime_ns == file.modified_ns
    if has_same_size and has_same_time and not file.missing:
        return file
    try:
        current, _ = inspect_file(file.path, file.name)
    except InputError:
        return None
    if file.missing:
        # Of a file that was missing only the number of rows is known.
        fits = current.rows == file.rows
    else:
        fits = current.group_ends == file.group_ends
    if not fits:
        return None
    return current


def version_key(file: TableFile) -> str:
    """Changes with the content of a file."""
    current = current_version(file) or file
    return f"{current.path}|{current.size}|{current.modified_ns}"


def column_values(file: TableFile, column: str) -> Iterator[Any]:
    """All values of a column, a batch in memory at a time. Raises InputError where they can't be
    read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file.path) as parquet:
            batches = parquet.iter_batches(batch_size=_BATCH_ROWS, columns=[column])
            for batch in batches:
                values = batch.column(0)
                yield from values.to_pylist()
    except (OSError, pa.ArrowException) as problem:
        raise InputError(
            f"column {column!r} of {file.path} can't be read ({problem}): write the file again"
        ) from None


class ParquetListing:
    """The Parquet files at some paths.

    paths  files and folders, absolute; each must exist (InputError)
    split  of folders that hold several splits: the one to take, "all", or None where there is only
           one
    """

    def __init__(self, paths: Sequence[Path], split: str | None) -> None:
        self.paths = list(paths)
        self.split = split
        for path in self.paths:
            if not path.exists():
                raise InputError(f"nothing at {path}: give an existing Parquet file or folder")

    def __str__(self) -> str:
        names = [str(path) for path in self.paths]
        return shortened(names)

    def files(self) -> dict[str, Path]:
        """All files by name, as they lie there now: in the order of the paths, those of a folder
        sorted.

        A file is named relative to the pool's path where there is one path, else in full.
        """
        has_one_path = len(self.paths) == 1
        listed: dict[str, Path] = {}
        for path in self.paths:
            if path.is_dir():
                files = self._of_split(path, _visible_files(path))
            else:
                files = {path.name: path}
            for name, file in sorted(files.items()):
                # Files of two folders may have the same relative name.
                if not has_one_path:
                    name = str(file)
                listed[name] = file
        return listed

    def _of_split(self, folder: Path, files: dict[str, Path]) -> dict[str, Path]:
        if self.split == "all":
            return files
        by_split: dict[str, dict[str, Path]] = {}
        for name, file in files.items():
            split = _split_of(name)
            split_files = by_split.setdefault(split, {})
            split_files[name] = file
        # Files that name no split do not count as one.
        splits = sorted(split for split in by_split if split)
        if self.split is None:
            if len(splits) > 1:
                listed = ", ".join(splits)
                raise InputError(
                    f"{folder} holds the splits {listed}: name one "
                    f"(split={splits[-1]!r}), or split='all'"
                )
            return files
        if self.split not in by_split:
            listed = shortened(splits)
            raise InputError(f"no split {self.split!r} in {folder}: there are {listed}")
        return by_split[self.split]

    def first_schema(self) -> Any:
        """The pyarrow schema of the first file that can be read. Raises InputError where none
        can.
        """
        listed = self.files()
        if not listed:
            raise InputError(f"no .parquet file in {self}")
        last_problem = ""
        for name, path in listed.items():
            try:
                _, schema = inspect_file(path, name)
                return schema
            except InputError as problem:
                if not path.exists() or len(listed) == 1:
                    raise
                last_problem = str(problem)
        raise InputError(f"none of {len(listed)} files can be read; the last: {last_problem}")


def _visible_files(folder: Path) -> dict[str, Path]:
    """The Parquet files below a folder by relative path, hidden files and folders left out."""
    visible = {}
    for path in folder.rglob("*.parquet"):
        relative = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in relative.parts)
        if is_hidden or not path.is_file():
            continue
        name = relative.as_posix()
        visible[name] = path
    return visible


def _split_of(name: str) -> str:
    """The split that the innermost part of a relative path names; "" where none does."""
    for part in reversed(name.split("/")):
        match = _SPLIT_NAME.match(part)
        if match:
            return match.group(1).lower()
    return ""
