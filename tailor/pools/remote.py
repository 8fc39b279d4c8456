"""Pools on object storage: s3://, gs://, file:// and whatever else fsspec reads, a shard at a time
through a cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Pool, Unreadable, check_positions, check_unique, some
from tailor.pools.convert import check_decoding, decode_image, decoded_as, in_threads
from tailor.pools.file_cache import FileCache
from tailor.pools.image_folder import SUFFIXES, readable_name

#: files of rows, each a shard
TABLES = (".parquet", ".npy", ".csv", ".tsv", ".jsonl", ".ndjson")
#: shards whose pools stay open
OPEN = 8


@dataclass(frozen=True)
class RemoteFile:
    """A file as it was listed. `version` changes with its content."""

    path: str  # as fsspec names it
    name: str  # below the pool's address
    size: int
    version: str

    @property
    def suffix(self) -> str:
        return os.path.splitext(self.name)[1].lower()


class RemotePool(Pool):
    """Everything below an address: files of rows (Parquet, .npy, CSV, JSONL), each a shard, or else
    pictures.

    A shard is copied to the cache when one of its rows is wanted. Ids are those that the files' own
    pools give; row numbers count on through the files in order of name, and files that appear later
    count on from there.

    cache        folder for the copies; by default ~/.cache/tailor/files, or below XDG_CACHE_HOME
                 where that is set
    cache_bytes  the copies take no more room than this; the least lately used go first, other files
                 are left alone
    storage      options for fsspec, such as endpoint_url or profile; credentials are found as
                 fsspec finds them
    labels       pictures: "folder": the first folder of the path is the class
    max_side     pictures are read no larger than this
    order        files of an earlier time with their number of rows, as `describe` gives them
    column, key, label, label_separator, delimiter, encoding  as the pool of such files takes them
    """

    def __init__(
        self,
        address: str,
        *,
        cache: str | os.PathLike[str] | None = None,
        cache_bytes: int = 20 * 2**30,
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
        if labels not in (None, "folder"):
            raise InputError(
                f"labels is {labels!r}: give 'folder' (the first folder is the class) or None"
            )
        self.address = str(address).rstrip("/")
        self._labels = labels
        self.max_side = max_side
        given = {
            "column": column,
            "key": key,
            "label": label,
            "label_separator": label_separator,
            "delimiter": delimiter,
            "encoding": encoding,
        }
        self._storage = dict(storage or {})
        self._options = {name: value for name, value in given.items() if value is not None}
        self._cache_given = None if cache is None else str(cache)
        self._cache = FileCache(None if cache is None else Path(cache), cache_bytes)
        self._files: list[RemoteFile] = []
        self._starts = np.zeros(1, np.int64)
        self._ids: list[str] = []
        self._changed: dict[str, str] = {}
        self._broken: dict[str, str] = {}
        self._pools: dict[str, tuple[int, Pool]] = {}  # when the copy was made, and its pool
        self._fs, self._root = self._connect()
        self._order = {str(name): place for place, (name, _) in enumerate(order or ())}
        self.kind = ""
        self.refresh()
        if not self._ids:
            raise InputError(f"nothing to read below {self.address}: {_why(self._broken)}")

    def _connect(self) -> tuple[Any, str]:
        try:
            import fsspec

            with self._named_errors():
                fs, root = fsspec.core.url_to_fs(self.address, **self._storage)
        except ImportError as problem:
            extra = "cloud-gs" if self.address.startswith(("gs://", "gcs://")) else "cloud"
            raise InputError(
                f"{self.address} can't be read ({problem}): pip install 'tailor[{extra}]'"
            ) from problem
        return fs, str(root).rstrip("/")

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Any trouble on the way to the storage, with the address. A missing file is the caller's
        to handle.
        """
        try:
            yield
        except (FileNotFoundError, ImportError, InputError):
            raise
        except PermissionError as problem:
            raise InputError(
                f"{self.address} may not be read ({problem}): check the credentials"
            ) from problem
        except Exception as problem:  # each storage has errors of its own
            reason = str(problem) or type(problem).__name__
            raise InputError(
                f"{self.address} can't be reached ({reason}): check the address and the network, "
                "and try again"
            ) from problem

    # ------------------------------------------------------------------ what is there

    def _listing(self) -> list[RemoteFile]:
        try:
            with self._named_errors():
                self._fs.invalidate_cache()
                found = self._fs.find(self._root, detail=True)
        except FileNotFoundError:
            found = {}
        if not found:
            raise InputError(
                f"nothing at {self.address}: give an existing bucket and folder, or a file"
            )
        files = []
        for path, info in found.items():
            name = path.removeprefix(self._root).lstrip("/") or os.path.basename(path)
            if not any(part.startswith(".") for part in name.split("/")):
                version = next(
                    (
                        str(info[k])
                        for k in ("ETag", "etag", "mtime", "LastModified")
                        if info.get(k)
                    ),
                    "",
                )
                files.append(RemoteFile(path, name, int(info.get("size") or 0), version))
        tables = [f for f in files if f.suffix in TABLES]
        kept = tables or [f for f in files if f.suffix in SUFFIXES]
        if not kept:
            raise InputError(
                f"{self.address} holds {len(files)} files, none of them an image or one of "
                f"{some(TABLES)}"
            )
        last = len(self._order)
        return sorted(kept, key=lambda f: (self._order.get(f.name, last), f.name))

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def refresh(self) -> int:
        known = {f.name: f for f in self._files}
        files = list(self._files)
        starts = self._starts.tolist()
        ids = list(self._ids)
        changed = {}
        broken = {}
        for file in self._listing():
            if (shown := readable_name(file.name)) != file.name:
                broken[shown] = "its name is not UTF-8, and no id can be made of it: rename it"
                continue
            if file.name in known:
                if file.version != known[file.name].version:
                    changed[file.name] = f"{file.name} has changed since it was opened"
                continue
            try:
                own = self._file_ids(file, len(ids))
            except FileNotFoundError:  # gone since it was listed
                continue
            except InputError as problem:
                if file.suffix not in TABLES or "can't be reached" in str(problem):
                    raise
                broken[file.name] = str(problem)
                continue
            files.append(file)
            ids.extend(own)
            starts.append(len(ids))
        check_unique(
            ids, lambda p: f"{files[int(np.searchsorted(starts, p, side='right')) - 1].name}"
        )
        new = len(ids) - len(self._ids)
        self._files = files
        self._starts = np.array(starts)
        self._ids = ids
        self._changed = changed
        self._broken = broken
        return new

    def _file_ids(self, file: RemoteFile, start: int) -> list[str]:
        if file.suffix in SUFFIXES:
            self.kind = "image"
            return [file.name]
        with self._pool(file) as pool:
            if self.kind not in ("", pool.kind):
                raise InputError(f"{file.name} holds {pool.kind}s, the other files {self.kind}s")
            self.kind = pool.kind
            own = list(pool.ids)
        numbered = all(one == str(row) for row, one in enumerate(own))
        return [str(start + row) for row in range(len(own))] if numbered else own

    # ------------------------------------------------------------------ reading

    def _local(self, file: RemoteFile) -> AbstractContextManager[Path]:
        """A copy in the cache, which stays meanwhile; FileNotFoundError where the file is gone."""

        def fetch(path: str) -> None:
            with self._named_errors():
                self._fs.get_file(file.path, path)

        key = f"{self.address}|{file.path}|{file.version}|{file.size}"
        return self._cache.hold(key, file.suffix, file.size, fetch)

    @contextmanager
    def _pool(self, file: RemoteFile) -> Iterator[Pool]:
        """The pool of one shard's local copy."""
        from tailor.pools import open_pool

        with self._local(file) as local:
            copied = local.stat().st_mtime_ns
            when, pool = self._pools.get(file.name, (0, None))
            if pool is None or when != copied:  # not open, or copied again since
                more: dict[str, Any] = {}
                if self.max_side is not None and file.suffix == ".parquet":
                    more["max_side"] = self.max_side
                pool = open_pool(local, **self._options, **more)
                self._pools[file.name] = copied, pool
                while len(self._pools) > OPEN:
                    self._pools.pop(next(iter(self._pools)))
            yield pool

    def read(self, positions: Sequence[int]) -> list[Any]:
        checked = check_positions(positions, len(self))
        numbers = np.searchsorted(self._starts, checked, side="right") - 1
        if self._of_pictures:
            return in_threads(self._picture, [self._files[n] for n in numbers], None)
        found: dict[int, Any] = {}
        for number in np.unique(numbers).tolist():
            here = [p for p, n in zip(checked, numbers) if n == number]
            rows = [p - int(self._starts[number]) for p in here]
            found.update(zip(here, self._rows(self._files[number], rows)))
        return [found[p] for p in checked]

    @property
    def _of_pictures(self) -> bool:
        return bool(self._files) and self._files[0].suffix in SUFFIXES

    def file(self, position: int) -> str | None:
        """A copy in the cache; FileNotFoundError where the picture is gone."""
        if not self._of_pictures:
            return None
        with self._local(self._files[position]) as local:
            return str(local)

    def _rows(self, file: RemoteFile, rows: list[int]) -> list[Any]:
        if file.name in self._changed:
            return [Unreadable(self._changed[file.name])] * len(rows)
        try:
            with self._pool(file) as pool:
                return pool.read(rows)
        except FileNotFoundError:
            return [Unreadable("missing")] * len(rows)

    def _picture(self, file: RemoteFile) -> Any:
        try:
            with self._local(file) as local:
                return decode_image(local, self.max_side)
        except FileNotFoundError:
            return Unreadable("missing")

    def content_keys(self, positions: Sequence[int]) -> list[str]:
        keys = []
        for position in check_positions(positions, len(self)):
            number = int(np.searchsorted(self._starts, position, side="right")) - 1
            file = self._files[number]
            row = position - int(self._starts[number])
            column = self._options.get("column", "")
            name = f"{self.address}/{file.name}"
            how = decoded_as(file.name) if self.kind == "image" else ""
            keys.append(f"{name}|{file.version}|{file.size}|{column}|{row}|{self.max_side}{how}")
        return keys

    def labels(self) -> dict[str, Any] | None:
        if self._of_pictures:
            return (
                {one: one.split("/", 1)[0] for one in self._ids if "/" in one}
                if self._labels
                else None
            )
        known: dict[str, Any] = {}
        for file, start in zip(self._files, self._starts.tolist()):
            with self._pool(file) as pool:
                own = pool.labels()
                place = {one: row for row, one in enumerate(pool.ids)}
            if own is None:
                return None
            known.update((self._ids[start + place[one]], label) for one, label in own.items())
        return known

    def set_aside(self) -> dict[str, str]:
        return dict(self._broken)

    def describe(self) -> dict[str, Any]:
        rows = np.diff(self._starts).tolist()
        tables = bool(self._files) and self._files[0].suffix in TABLES
        found: dict[str, Any] = {
            "cache": self._cache_given,
            "cache_bytes": self._cache.limit,
            "storage": self._storage or None,
            "labels": self._labels,
            "max_side": self.max_side,
            "order": [[f.name, n] for f, n in zip(self._files, rows)] if tables else None,
        }
        given = {k: v for k, v in found.items() if v is not None}
        return {"kind": "remote", "path": self.address} | given | self._options


def _why(broken: dict[str, str]) -> str:
    return (
        f"{len(broken)} files are broken, the first: {next(iter(broken.values()))}"
        if broken
        else "it is empty"
    )
