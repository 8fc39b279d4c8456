"""Parquet files in the Hugging Face layout: images, embeddings or texts in a column."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools import columns, convert
from tailor.pools.base import Pool, Unreadable, check_positions, check_unique, some
from tailor.pools.row_groups import CACHE_BYTES, RowGroups, TableFile, describe_file, unchanged

_SPLIT = re.compile(r"^(train|test|valid|validation|val|dev)(?![a-z])", re.IGNORECASE)


class ParquetPool(Pool):
    """Rows of one Parquet file, of several, or of all below a folder.

    Ids come from the key column. Without one they are row numbers as text, counted on through the
    files in order of name; files that appear later count on from there in the order in which they
    are found, wherever their name would sort. `describe` writes that order down, and opening the
    pool from it keeps every number. Files whose rows change in number need a key column.

    column       the examples: a struct of bytes and path, a list of numbers, or text; found when
                 only one can be it
    key          the column of ids
    label        the column of labels; else `label` or `labels` where there is one
    split        of a folder that holds several ("train", "test"): the one to take, or "all"
    order        files of an earlier time with their number of rows, as `describe` gives them
    max_side     images are read no larger than this
    cache_bytes  row groups lately used stay in memory, up to this
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
        convert.check_decoding(max_side, threads)
        paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        self._given = [Path(p).absolute() for p in paths]
        for one in self._given:
            if not one.exists():
                raise InputError(f"nothing at {one}: give an existing Parquet file or folder")
        self._options = {
            "key": key,
            "label": label,
            "split": split,
            "max_side": max_side,
            "threads": threads,
        }
        self.key = key
        self.label = label
        self.split = split
        self.max_side = max_side
        self.threads = threads
        self._several = len(paths) > 1
        self._order = [(str(name), int(rows)) for name, rows in order or ()]
        self._files: list[TableFile] = []
        self._starts = np.zeros(1, np.int64)
        self._ids: list[str] = []
        self._keyless: dict[int, str] = {}
        self._broken: dict[str, str] = {}
        self._schema = self._first_schema()
        self.column, self.kind = columns.choose_column(self._schema, column, key, label)
        self._groups = RowGroups(self.column, cache_bytes)
        self._length: int | None = None
        if self.refresh() == 0:
            raise InputError(f"no row in {some([str(p) for p in self._given])}")

    def _listing(self) -> dict[str, Path]:
        """Files by name, in order: those given as they are given, those of a folder sorted."""
        found: dict[str, Path] = {}
        for given in self._given:
            if given.is_dir():
                inside = {
                    p.relative_to(given).as_posix(): p
                    for p in given.rglob("*.parquet")
                    if p.is_file()
                }
                inside = {
                    n: p
                    for n, p in inside.items()
                    if not any(part.startswith(".") for part in n.split("/"))
                }
                inside = self._one_split(given, inside)
                found.update(
                    (n if len(self._given) == 1 else str(p), p) for n, p in sorted(inside.items())
                )
            else:
                found[given.name if len(self._given) == 1 else str(given)] = given
        return found

    def _one_split(self, folder: Path, files: dict[str, Path]) -> dict[str, Path]:
        splits: dict[str, list[str]] = {}
        for name in files:
            matches = [m for m in map(_SPLIT.match, reversed(name.split("/"))) if m]
            splits.setdefault(matches[0].group(1).lower() if matches else "", []).append(name)
        if self.split in (None, "all"):
            named = sorted(s for s in splits if s)
            if len(named) > 1 and self.split is None:
                raise InputError(
                    f"{folder} holds the splits {', '.join(named)}: name one "
                    f"(split={named[-1]!r}), or split='all'"
                )
            return files
        if self.split not in splits:
            raise InputError(
                f"no split {self.split!r} in {folder}: there are "
                f"{some(sorted(s for s in splits if s))}"
            )
        return {name: files[name] for name in splits[self.split]}

    def _first_schema(self) -> Any:
        listing = self._listing()
        if not listing:
            raise InputError(f"no .parquet file in {some([str(p) for p in self._given])}")
        problem = ""
        for name, path in listing.items():
            try:
                return describe_file(path, name)[1]
            except InputError as one:
                if not path.exists() or len(listing) == 1:
                    raise
                problem = str(one)
        raise InputError(f"none of {len(listing)} files can be read; the last: {problem}")

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def refresh(self) -> int:
        listing = self._listing()
        files = list(self._files)
        ids = list(self._ids)
        keyless = dict(self._keyless)
        known = {f.name for f in files}
        broken = {}
        fresh = [] if files else self._remembered(listing)
        known.update(f.name for f in fresh)
        for name, path in listing.items():
            if name not in known:
                try:
                    fresh.append(self._usable(path, name))
                except InputError as problem:
                    broken[name] = str(problem)
        for file in fresh:
            try:
                ids.extend(self._file_ids(file, len(ids), keyless))
            except InputError as problem:
                broken[file.name] = str(problem)
            else:
                files.append(file)
        starts = np.cumsum([0, *(f.rows for f in files)])
        check_unique(ids, lambda p: _place(files, starts, p))
        new = len(ids) - len(self._ids)
        self._files = files
        self._starts = starts
        self._ids = ids
        self._keyless = keyless
        self._broken = broken
        return new

    def _usable(self, path: Path, name: str) -> TableFile:
        file, schema = describe_file(path, name)
        if missing := [
            c for c in (self.column, self.key) if c is not None and c not in schema.names
        ]:
            raise InputError(f"no column {missing[0]!r} in {path}: there are {some(schema.names)}")
        if columns.column_kind(schema, self.column, strict=False) != self.kind:
            kind = schema.field(self.column).type
            raise InputError(
                f"column {self.column!r} of {path} is of type {kind}, in the other files "
                f"{self.kind}"
            )
        return file

    def _remembered(self, listing: dict[str, Path]) -> list[TableFile]:
        """The files of `order`, as they are now. One that is gone keeps its numbers, and reads as
        missing.
        """
        files = []
        for name, rows in self._order:
            try:
                file = self._usable(listing[name], name) if name in listing else None
            except InputError:
                file = None
            if file is None:
                if self.key is not None:
                    continue
                file = TableFile(self._given[0] / name, name, 0, 0, (rows,), missing=True)
            elif file.rows != rows and self.key is None:
                raise InputError(
                    f"{file.path} had {rows} rows and has {file.rows} now, which shifts the row "
                    "numbers "
                    "that are the ids: put it back as it was and add rows in a new file, or name "
                    "a key column (key=)"
                )
            files.append(file)
        return files

    def _file_ids(self, file: TableFile, start: int, keyless: dict[int, str]) -> list[str]:
        if self.key is None:
            return [str(row) for row in range(start, start + file.rows)]
        keys = list(_column(file, self.key))
        ids = []
        for row, value in enumerate(keys):
            if value is None or value == "":
                keyless[start + row] = "no key"
                value = f"row {row} of {file.name}"
            ids.append(str(value))
        return ids

    def _locate(self, position: int) -> tuple[int, int]:
        which = int(np.searchsorted(self._starts, position, side="right")) - 1
        return which, position - int(self._starts[which])

    def read(self, positions: Sequence[int]) -> list[Any]:
        wanted: dict[int, dict[int, int]] = {}
        checked = check_positions(positions, len(self))
        for position in checked:
            which, row = self._locate(position)
            wanted.setdefault(which, {})[row] = position
        found: dict[int, Any] = {}
        for which, rows in wanted.items():
            values = self._values(which, list(rows))
            decoded = convert.in_threads(
                self._example, [values[row] for row in rows], self._workers()
            )
            found.update(zip(rows.values(), decoded))
        return [Unreadable(self._keyless[p]) if p in self._keyless else found[p] for p in checked]

    def _values(self, which: int, rows: list[int]) -> dict[int, Any]:
        file = self._files[which]
        now = unchanged(file)
        if now is None:
            reason = (
                "missing"
                if not file.path.exists()
                else f"{file.name} has changed since it was opened"
            )
            return dict.fromkeys(rows, Unreadable(reason))
        self._files[which] = now
        return self._groups.values(now, rows)

    def _workers(self) -> int | None:
        return self.threads if self.kind == "image" else 1

    def _example(self, value: Any) -> Any:
        if isinstance(value, Unreadable):
            return value
        if self.kind == "text":
            return convert.text(value)
        if self.kind == "vector":
            return convert.vector(value, self._dimension())
        if isinstance(value, dict):
            if value.get("bytes") is None and value.get("path"):
                return Unreadable(f"no bytes in the row, only the path {value['path']!r}")
            value = value.get("bytes")
        return convert.decode_image(value, self.max_side)

    def _dimension(self) -> int | None:
        """The length of the pool's vectors: that of the type, or of the first one that is whole."""
        if self._length is None:
            fixed = getattr(self._schema.field(self.column).type, "list_size", None)
            if fixed is None:
                for file in self._files:
                    with contextlib.suppress(InputError):
                        wholes = (convert.vector(v) for v in _column(file, self.column))
                        fixed = next(
                            (len(v) for v in wholes if not isinstance(v, Unreadable)), None
                        )
                    if fixed is not None:
                        break
            self._length = fixed
        return self._length

    def content_keys(self, positions: Sequence[int]) -> list[str]:
        keys = []
        now = [unchanged(file) or file for file in self._files]
        how = convert.decoded_as(".parquet") if self.kind == "image" else ""
        for which, row in map(self._locate, check_positions(positions, len(self))):
            file = now[which]
            keys.append(
                f"{file.path}|{file.size}|{file.time_ns}|{self.column}|{row}|{self.max_side}{how}"
            )
        return keys

    def labels(self) -> dict[str, Any] | None:
        column = columns.choose_label(self._schema.names, self.label)
        if column is None:
            return None
        names = columns.class_names(self._schema.metadata, column)
        known: dict[str, Any] = {}
        for start, file in zip(self._starts.tolist(), self._files):
            try:
                values = list(_column(file, column)) if unchanged(file) else []
            except InputError:
                # its rows are Unreadable, or it has no such column: nothing is known of them
                continue
            for position, value in enumerate(values, start):
                if (one := convert.label(value, names)) is not None:
                    known[self._ids[position]] = one
        return known

    def class_names(self) -> list[str] | None:
        """The classes in the order of the schema, where it names them."""
        column = columns.choose_label(self._schema.names, self.label)
        return None if column is None else columns.class_names(self._schema.metadata, column)

    def set_aside(self) -> dict[str, str]:
        return dict(self._broken)

    def describe(self) -> dict[str, Any]:
        path: Any = [str(p) for p in self._given] if self._several else str(self._given[0])
        order = [[f.name, f.rows] for f in self._files]
        given = {k: v for k, v in self._options.items() if v is not None}
        if self._groups.cache_bytes != CACHE_BYTES:
            given["cache_bytes"] = self._groups.cache_bytes
        return {"kind": "parquet", "path": path, "column": self.column, "order": order} | given


def _column(file: TableFile, column: str) -> Any:
    """One column's values, a batch in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file.path) as opened:
            for batch in opened.iter_batches(batch_size=8192, columns=[column]):
                yield from batch.column(0).to_pylist()
    except (OSError, pa.ArrowException) as problem:
        raise InputError(
            f"column {column!r} of {file.path} can't be read ({problem}): write the file again"
        ) from None


def _place(files: Sequence[TableFile], starts: np.ndarray, position: int) -> str:
    which = int(np.searchsorted(starts, position, side="right")) - 1
    return f"row {position - int(starts[which])} of {files[which].name}"
