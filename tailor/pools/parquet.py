"""Parquet files in the Hugging Face layout: images, embeddings or texts in a column."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tailor.errors import InputError
from tailor.pools import columns, convert
from tailor.pools.base import (
    Pool,
    Unreadable,
    check_positions,
    check_unique,
    row_numbers,
    without_none,
)
from tailor.pools.file_rows import FileRows
from tailor.pools.image_decoding import (
    check_decoding,
    decode_image,
    decoding_key,
    in_threads,
)
from tailor.pools.parquet_files import (
    ParquetListing,
    TableFile,
    column_values,
    current_version,
    inspect_file,
    version_key,
)
from tailor.pools.row_groups import CACHE_BYTES, RowGroups

#: Files that can't be used, by name, with the reason.
Reasons = dict[str, str]


class ParquetPool(Pool):
    """Rows of one Parquet file, of several, or of all below a folder.

    Ids come from the key column. Without one they are row numbers as text, counted on from file to
    file in order of name. Files that appear later count on from there in the order in which they
    are found, wherever their name would sort; `describe` records that order, and a pool opened from
    it keeps every number. Files whose number of rows changes need a key column.

    path         a file, a folder of files, or a list of files
    column       the examples: a struct of bytes and path, a list of numbers, or text; found where
                 only one column can be it
    key          the column of ids
    label        the column of labels; else `label` or `labels` where there is one
    split        of a folder that holds several ("train", "test"): the one to take, or "all"
    order        (name, rows) of the files of an earlier time, as `describe` gives them
    max_side     images are shrunk to at most this many pixels on the longer side
    threads      images decoded at once
    cache_bytes  row groups read lately stay in memory, up to this

    Raises InputError where nothing can be read or the columns are not clear.

    Cost: opening reads the ids; reading seeks to row groups, so neighbours are cheap.

    When to use: large sets of pictures, texts or embeddings, above all in the Hugging Face layout.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        column: str | None = None,
        key: str | None = None,
        label: str | None = None,
        split: str | None = None,
        order: Sequence[tuple[str, int]] | None = None,
        max_side: int | None = None,
        threads: int | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        check_decoding(max_side, threads)
        paths = _absolute_paths(path)
        self._listing = ParquetListing(paths, split)
        self.key = key
        self.label = label
        self.max_side = max_side
        self.threads = threads
        self._order = list(order or ())
        self._files: list[TableFile] = []
        self._rows = FileRows()
        self._ids: list[str] = []
        self._without_key = set[int]()  # positions
        self._broken: Reasons = {}
        self._schema = self._listing.first_schema()
        chosen_column, kind = columns.choose_column(
            self._schema,
            column,
            key,
            label,
        )
        self.column = chosen_column
        self.kind = kind
        self._row_groups = RowGroups(self.column, cache_bytes)
        self._vector_length: int | None = None
        if self.refresh() == 0:
            raise InputError(f"no row in {self._listing}")

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    # ------------------------------------------------------------------ files

    def refresh(self) -> int:
        files = list(self._files)
        ids = list(self._ids)
        without_key = set(self._without_key)
        new_files, broken = self._new_files()
        for file in new_files:
            first_position = len(ids)
            try:
                file_ids, keyless_rows = self._file_ids(file, first_position)
            except InputError as problem:
                broken[file.name] = str(problem)
                continue
            for row in keyless_rows:
                without_key.add(first_position + row)
            ids.extend(file_ids)
            files.append(file)
        rows = _checked_rows(files, ids)
        # Nothing of the pool has changed up to here, so that an error leaves it as it was.
        added = len(ids) - len(self._ids)
        self._files = files
        self._rows = rows
        self._ids = ids
        self._without_key = without_key
        self._broken = broken
        return added

    def _new_files(self) -> tuple[list[TableFile], Reasons]:
        """Files that are not in the pool yet, and those that can't be used, by name, with the
        reason.
        """
        listed = self._listing.files()
        new_files = []
        if not self._files:
            # Those of an earlier time come first, so that their rows keep their numbers.
            new_files = self._remembered_files(listed)
        pool_files = [*self._files, *new_files]
        known_names = {file.name for file in pool_files}
        broken = {}
        for name, path in listed.items():
            if name in known_names:
                continue
            try:
                file = self._inspect(path, name)
            except InputError as problem:
                broken[name] = str(problem)
            else:
                new_files.append(file)
        return new_files, broken

    def _inspect(self, path: Path, name: str) -> TableFile:
        file, schema = inspect_file(path, name)
        columns.check_columns(
            schema,
            path,
            column=self.column,
            kind=self.kind,
            key=self.key,
        )
        return file

    def _remembered_files(self, listed: dict[str, Path]) -> list[TableFile]:
        """The files of `order` as they are now. One that is gone keeps its row numbers, and its
        rows read as missing.
        """
        files = []
        for name, rows in self._order:
            file: TableFile | None = None
            if name in listed:
                with contextlib.suppress(InputError):
                    file = self._inspect(listed[name], name)
            if file is None and self.key is None:
                file = self._missing_file(name, rows)
            # With a key column ids do not depend on a file's rows, so a gap does no harm.
            if file is None:
                continue
            if file.rows != rows and self.key is None:
                raise InputError(
                    f"{file.path} had {rows} rows and has {file.rows} now, which shifts the row "
                    "numbers that are the ids: put it back as it was and add rows in a new file, "
                    "or name a key column (key=)"
                )
            files.append(file)
        return files

    def _missing_file(self, name: str, rows: int) -> TableFile:
        folder = self._listing.paths[0]
        return TableFile(
            path=folder / name,
            name=name,
            size=0,
            modified_ns=0,
            group_ends=(rows,),
            missing=True,
        )

    def _file_ids(self, file: TableFile, first_position: int) -> tuple[list[str], list[int]]:
        """The ids of a file's rows, and the rows whose key is empty."""
        if self.key is None:
            return row_numbers(first_position, file.rows), []
        values = column_values(file, self.key)
        return convert.key_ids(values, file.name)

    # ------------------------------------------------------------------ reading

    def read(self, positions: Sequence[int]) -> list[Any]:
        checked = check_positions(positions, len(self))
        # Texts and vectors are converted faster than threads are started.
        threads: int | None = 1
        if self.kind == "image":
            threads = self.threads
        examples: dict[int, Any] = {}
        by_file = self._rows.by_file(checked)
        for number, position_by_row in by_file.items():
            rows = list(position_by_row)
            file_positions = position_by_row.values()
            values = self._stored_values(number, rows)
            ordered = [values[row] for row in rows]
            decoded = in_threads(self._example, ordered, threads)
            examples.update(zip(file_positions, decoded))
        for position in self._without_key.intersection(checked):
            examples[position] = Unreadable("no key")
        return [examples[position] for position in checked]

    def _stored_values(self, number: int, rows: list[int]) -> dict[int, Any]:
        """The stored values of a file by row; Unreadable where the file has changed."""
        file = self._files[number]
        current = current_version(file)
        if current is None:
            reason = "missing"
            if file.path.exists():
                reason = f"{file.name} has changed since it was opened"
            unreadable = Unreadable(reason)
            return dict.fromkeys(rows, unreadable)
        self._files[number] = current
        return self._row_groups.values(current, rows)

    def _example(self, value: Any) -> Any:
        if isinstance(value, Unreadable):
            return value
        if self.kind == "text":
            return convert.text(value)
        if self.kind == "vector":
            length = self._common_length()
            return convert.vector(value, length)
        if isinstance(value, dict):
            content = value.get("bytes")
            path = value.get("path")
            if content is None and path:
                return Unreadable(f"no bytes in the row, only the path {path!r}")
            value = content
        return decode_image(value, self.max_side)

    def _common_length(self) -> int | None:
        """The length of the pool's vectors: that of the column's type, or of the first readable
        one.
        """
        if self._vector_length is not None:
            return self._vector_length
        column_type = self._schema.field(self.column).type
        # Only the type of a list of fixed size has it.
        length = getattr(column_type, "list_size", None)
        for file in self._files:
            if length is not None:
                break
            with contextlib.suppress(InputError):
                values = column_values(file, self.column)
                length = convert.first_vector_length(values)
        self._vector_length = length
        return length

    def content_keys(self, positions: Sequence[int]) -> list[str]:
        checked = check_positions(positions, len(self))
        # Once for all positions: each look at a file's version asks the disk.
        versions = [version_key(file) for file in self._files]
        decoding = ""
        if self.kind == "image":
            decoding = decoding_key(".parquet")
        keys = []
        for position in checked:
            number, row = self._rows.locate(position)
            version = versions[number]
            reading = f"{self.column}|{row}|{self.max_side}{decoding}"
            keys.append(f"{version}|{reading}")
        return keys

    # ------------------------------------------------------------------ labels

    def _label_column(self) -> str | None:
        names = self._schema.names
        return columns.choose_label(names, self.label)

    def labels(self) -> dict[str, Any] | None:
        column = self._label_column()
        if column is None:
            return None
        class_names = self.class_names()
        labels = {}
        starts = self._rows.starts.tolist()
        for start, file in zip(starts, self._files):
            if current_version(file) is None:  # its rows are Unreadable
                continue
            try:
                values = list(column_values(file, column))
            except InputError:  # unreadable now, or without such a column
                continue
            stop = start + len(values)
            file_labels = convert.labels_by_id(self._ids[start:stop], values, class_names)
            labels.update(file_labels)
        return labels

    def class_names(self) -> list[str] | None:
        """The classes in the order of the schema, where it names them."""
        column = self._label_column()
        return columns.schema_class_names(self._schema, column)

    # ------------------------------------------------------------------ the source

    def set_aside(self) -> dict[str, str]:
        return dict(self._broken)

    def describe(self) -> dict[str, Any]:
        paths = [str(path) for path in self._listing.paths]
        path: Any = paths
        if len(paths) == 1:
            path = paths[0]
        order = [[file.name, file.rows] for file in self._files]
        options: dict[str, Any] = {
            "key": self.key,
            "label": self.label,
            "split": self._listing.split,
            "max_side": self.max_side,
            "threads": self.threads,
        }
        if self._row_groups.cache_bytes != CACHE_BYTES:
            options["cache_bytes"] = self._row_groups.cache_bytes
        return {
            "kind": "parquet",
            "path": path,
            "column": self.column,
            "order": order,
            **without_none(options),
        }


def _absolute_paths(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    if isinstance(path, (str, os.PathLike)):
        path = [path]
    return [Path(single_path).absolute() for single_path in path]


def _checked_rows(files: Sequence[TableFile], ids: Sequence[str]) -> FileRows:
    """The rows of these files. Raises InputError where an id occurs twice."""
    counts = [file.rows for file in files]
    rows = FileRows(counts)

    def place(position: int) -> str:
        number, row = rows.locate(position)
        file = files[number]
        return f"row {row} of {file.name}"

    check_unique(ids, place)
    return rows
