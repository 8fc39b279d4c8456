"""Pools on object storage: s3://, gs://, file:// and others of addresses.py, a shard at a time
through a cache of local copies.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tailor.errors import InputError
from tailor.pools.base import (
    Pool,
    Unreadable,
    check_positions,
    check_unique,
    row_numbers,
    without_none,
)
from tailor.pools.file_cache import FileCache
from tailor.pools.file_rows import FileRows
from tailor.pools.image_decoding import (
    check_decoding,
    decode_image,
    decoding_key,
    in_threads,
)
from tailor.pools.image_folder import check_labels_option, folder_labels, readable_name
from tailor.pools.local_copies import LocalCopies
from tailor.pools.remote_files import RemoteFile, RemoteStorage, StorageUnreachable

CACHE_BYTES = 20 * 2**30
#: Files that can't be used, by name, with the reason.
Reasons = dict[str, str]


class RemotePool(Pool):
    """Everything below an address: files of rows (Parquet, .npy, CSV, JSONL), each a shard, or else
    images.

    A shard is copied to the cache when one of its rows is wanted. Ids are those that the files' own
    pools give; row numbers count on from file to file in order of name, and files that appear later
    count on from there.

    address      such as s3://bucket/folder
    cache        folder for the copies; by default ~/.cache/tailor/files, or below XDG_CACHE_HOME
                 where that is set
    cache_bytes  the copies take no more room than this; the least lately used go first, other files
                 are left alone
    storage      options for fsspec, such as endpoint_url or profile; credentials are found as
                 fsspec finds them
    labels       images: "folder": the first folder of the path is the class
    max_side     images are shrunk to at most this many pixels on the longer side
    order        (name, rows) of the files of an earlier time, as `describe` gives them
    column, key, label, label_separator, delimiter, encoding  as the pool of such files takes them

    Raises InputError where the address can't be reached or there is nothing to read.

    Cost: opening reads every shard once, for its ids; a shard is fetched when one of its rows is
    wanted, and kept in the cache.

    When to use: pools in object storage (s3://, gs://).
    """

    def __init__(
        self,
        address: str,
        *,
        cache: str | os.PathLike[str] | None = None,
        cache_bytes: int = CACHE_BYTES,
        storage: Mapping[str, Any] | None = None,
        labels: str | None = None,
        max_side: int | None = None,
        order: Sequence[tuple[str, int]] | None = None,
        column: str | None = None,
        key: str | None = None,
        label: str | None = None,
        label_separator: str | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
    ) -> None:
        check_decoding(max_side, None)
        check_labels_option(labels)
        self.address = str(address).rstrip("/")
        self._labels = labels
        self.max_side = max_side
        table_options = {
            "column": column,
            "key": key,
            "label": label,
            "label_separator": label_separator,
            "delimiter": delimiter,
            "encoding": encoding,
        }
        self._table_options = without_none(table_options)
        self._cache_folder: str | None = None
        cache_path: Path | None = None
        if cache is not None:
            self._cache_folder = str(cache)
            cache_path = Path(cache)
        self._copies = LocalCopies(
            RemoteStorage(self.address, storage or {}),
            FileCache(cache_path, cache_bytes),
            self._table_options,
            max_side,
        )
        names_in_order = [name for name, _ in order or ()]
        self._place_by_name = _places(names_in_order)
        self._files: list[RemoteFile] = []
        self._rows = FileRows()
        self._ids: list[str] = []
        self._changed: Reasons = {}
        self._broken: Reasons = {}
        self.kind = ""
        self.refresh()
        if not self._ids:
            reason = self._why_empty()
            raise InputError(f"nothing to read below {self.address}: {reason}")

    def _why_empty(self) -> str:
        if not self._broken:
            return "it is empty"
        problems = list(self._broken.values())
        return f"{len(problems)} files are broken, the first: {problems[0]}"

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    @property
    def _holds_images(self) -> bool:
        if not self._files:
            return False
        return self._files[0].is_image

    # ------------------------------------------------------------------ files

    def refresh(self) -> int:
        opened_versions = {file.name: file.version for file in self._files}
        files = list(self._files)
        row_counts = list(self._rows.counts)
        ids = list(self._ids)
        changed = {}
        broken = {}
        for file in self._listed_files():
            name = file.name
            shown_name = readable_name(name)
            if shown_name != name:
                broken[shown_name] = "its name is not UTF-8, and no id can be made of it: rename it"
                continue
            if name in opened_versions:
                if file.version != opened_versions[name]:
                    changed[name] = f"{name} has changed since it was opened"
                continue
            try:
                file_ids = self._file_ids(file, len(ids))
            except FileNotFoundError:  # gone since it was listed
                continue
            except StorageUnreachable:
                # The next look takes it: a file is not broken because the network is.
                raise
            except InputError as problem:
                if file.is_image:
                    raise
                broken[name] = str(problem)
                continue
            files.append(file)
            row_counts.append(len(file_ids))
            ids.extend(file_ids)
        rows = FileRows(row_counts)
        _check_ids(ids, files, rows)
        # Nothing but `kind` has changed up to here, so that an error leaves the pool as it was.
        added = len(ids) - len(self._ids)
        self._files = files
        self._rows = rows
        self._ids = ids
        self._changed = changed
        self._broken = broken
        return added

    def _listed_files(self) -> list[RemoteFile]:
        """All files: those of an earlier time in the order of then, the others by name."""
        after_all = len(self._place_by_name)

        def place_and_name(file: RemoteFile) -> tuple[int, str]:
            place = self._place_by_name.get(file.name, after_all)
            return place, file.name

        files = self._copies.storage.list_files()
        return sorted(files, key=place_and_name)

    def _file_ids(self, file: RemoteFile, first_position: int) -> list[str]:
        if file.is_image:
            self.kind = "image"
            return [file.name]
        with self._copies.table(file) as pool:
            kind = pool.kind
            if self.kind not in ("", kind):
                raise InputError(f"{file.name} holds {kind}s, the other files {self.kind}s")
            self.kind = kind
            ids = list(pool.ids)
        # Row numbers begin anew in each file; in this pool they count on.
        count = len(ids)
        if ids == row_numbers(0, count):
            return row_numbers(first_position, count)
        return ids

    # ------------------------------------------------------------------ reading

    def read(self, positions: Sequence[int]) -> list[Any]:
        checked = check_positions(positions, len(self))
        if self._holds_images:
            # Each image is a file of one row.
            files = [self._files[position] for position in checked]
            return in_threads(self._read_image, files, threads=None)
        examples: dict[int, Any] = {}
        by_file = self._rows.by_file(checked)
        # By file, whatever the order asked for: each is fetched once.
        for number in sorted(by_file):
            position_by_row = by_file[number]
            file = self._files[number]
            rows = list(position_by_row)
            values = self._read_rows(file, rows)
            examples.update(zip(position_by_row.values(), values))
        return [examples[position] for position in checked]

    def _read_rows(self, file: RemoteFile, rows: list[int]) -> list[Any]:
        reason = self._changed.get(file.name)
        if reason is not None:
            return [Unreadable(reason)] * len(rows)
        try:
            with self._copies.table(file) as pool:
                return pool.read(rows)
        except FileNotFoundError:
            return [Unreadable("missing")] * len(rows)

    def _read_image(self, file: RemoteFile) -> Any:
        try:
            with self._copies.copy(file) as path:
                return decode_image(path, self.max_side)
        except FileNotFoundError:
            return Unreadable("missing")

    def file(self, position: int) -> str | None:
        """A copy in the cache, which may go again when room is needed."""
        if not self._holds_images:
            return None
        file = self._files[position]
        with self._copies.copy(file) as path:
            return str(path)

    def content_keys(self, positions: Sequence[int]) -> list[str]:
        checked = check_positions(positions, len(self))
        column = self._table_options.get("column", "")
        keys = []
        for position in checked:
            number, row = self._rows.locate(position)
            file = self._files[number]
            address = f"{self.address}/{file.name}"
            version = f"{address}|{file.version}|{file.size}"
            decoding = ""
            if self.kind == "image":
                decoding = decoding_key(file.name)
            reading = f"{column}|{row}|{self.max_side}{decoding}"
            keys.append(f"{version}|{reading}")
        return keys

    # ------------------------------------------------------------------ labels

    def labels(self) -> dict[str, Any] | None:
        if self._holds_images:
            if self._labels is None:
                return None
            return folder_labels(self._ids)
        labels = {}
        starts = self._rows.starts.tolist()
        for file, start in zip(self._files, starts):
            with self._copies.table(file) as pool:
                file_labels = pool.labels()
                file_ids = list(pool.ids)
            if file_labels is None:
                return None
            # By position: where ids are row numbers, those of this pool count on.
            for position, file_id in enumerate(file_ids, start):
                if file_id in file_labels:
                    example_id = self._ids[position]
                    labels[example_id] = file_labels[file_id]
        return labels

    # ------------------------------------------------------------------ the source

    def set_aside(self) -> dict[str, str]:
        return dict(self._broken)

    def describe(self) -> dict[str, Any]:
        options = {
            "cache": self._cache_folder,
            "cache_bytes": self._copies.cache.limit_bytes,
            "storage": self._copies.storage.options or None,
            "labels": self._labels,
            "max_side": self.max_side,
            "order": self._order(),
        }
        return {
            "kind": "remote",
            "path": self.address,
            **without_none(options),
            **self._table_options,
        }

    def _order(self) -> list[list[Any]] | None:
        """[name, rows] of each file; None for images, whose ids don't depend on their order."""
        if not self._files or self._holds_images:
            return None
        order = []
        for file, rows in zip(self._files, self._rows.counts):
            order.append([file.name, rows])
        return order


def _places(names: Sequence[str]) -> dict[str, int]:
    places: dict[str, int] = {}
    for name in names:
        places[name] = len(places)
    return places


def _check_ids(ids: Sequence[str], files: Sequence[RemoteFile], rows: FileRows) -> None:
    """Raises InputError where an id occurs twice, and names the two files."""

    def place(position: int) -> str:
        number, _ = rows.locate(position)
        file = files[number]
        return file.name

    check_unique(ids, place)
