"""Listing and fetching files on object storage with fsspec, with errors that name the address."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tailor.common.distribution import pip_install
from tailor.errors import InputError
from tailor.pools.addresses import check_address
from tailor.pools.base import shortened
from tailor.pools.image_decoding import IMAGE_SUFFIXES

#: Files of rows; each is a shard of the pool.
TABLE_SUFFIXES = (".parquet", ".npy", ".csv", ".tsv", ".jsonl", ".ndjson")
#: Fields of a listing that change with a file's content; each storage has one of them.
_VERSION_FIELDS = ("ETag", "etag", "mtime", "LastModified")


@dataclass(frozen=True)
class RemoteFile:
    """A file as it was listed.

    path     as fsspec names it
    name     below the pool's address
    size     in bytes
    version  changes with the content
    """

    path: str
    name: str
    size: int
    version: str

    @property
    def suffix(self) -> str:
        return os.path.splitext(self.name)[1].lower()

    @property
    def is_image(self) -> bool:
        return self.suffix in IMAGE_SUFFIXES


class RemoteStorage:
    """The files below an address.

    address  such as s3://bucket/folder, or one file
    options  for fsspec, such as endpoint_url or profile

    Raises InputError where pools are not read from this kind of address (addresses.py), or fsspec's
    part for it is not installed.
    """

    def __init__(self, address: str, options: Mapping[str, Any]) -> None:
        check_address(address)
        self.address = address
        self.options = dict(options)
        try:
            import fsspec

            with self._explained_errors():
                filesystem, root = fsspec.core.url_to_fs(address, **self.options)
        except ImportError as problem:
            extra = "cloud"
            if address.startswith(("gs://", "gcs://")):
                extra = "cloud-gs"
            raise InputError(
                f"{address} can't be read ({problem}): {pip_install(extra)}"
            ) from problem
        self.filesystem = filesystem
        self._root = str(root).rstrip("/")

    def list_files(self) -> Sequence[RemoteFile]:
        """The tables below the address, or the images where there is no table; hidden files are
        left out. Raises InputError where there is neither.
        """
        try:
            with self._explained_errors():
                # fsspec remembers listings, and would miss files that came since.
                self.filesystem.invalidate_cache()
                listing = self.filesystem.find(self._root, detail=True)
        except FileNotFoundError:
            listing = {}
        if not listing:
            raise InputError(
                f"nothing at {self.address}: give an existing bucket and folder, or a file"
            )
        visible = []
        for path, fields in listing.items():
            file = self._described(path, fields)
            if not _is_hidden(file.name):
                visible.append(file)
        tables = []
        images = []
        for file in visible:
            if file.suffix in TABLE_SUFFIXES:
                tables.append(file)
            elif file.is_image:
                images.append(file)
        if not tables and not images:
            raise InputError(
                f"{self.address} holds {len(visible)} files, none of them an image or one of "
                f"{shortened(TABLE_SUFFIXES)}"
            )
        return tables or images

    def _described(self, path: str, fields: Mapping[str, Any]) -> RemoteFile:
        # Where the address is that of one file, nothing is left below it.
        name = path.removeprefix(self._root).lstrip("/")
        version = ""
        for field in _VERSION_FIELDS:
            value = fields.get(field)
            if value:
                version = str(value)
                break
        size = fields.get("size") or 0
        return RemoteFile(
            path=path,
            name=name or os.path.basename(path),
            size=int(size),
            version=version,
        )

    def fetch(self, file: RemoteFile, target: str) -> None:
        """Copy a file to a local path. Raises FileNotFoundError where it is gone, InputError for
        any other trouble.
        """
        with self._explained_errors():
            self.filesystem.get_file(file.path, target)

    @contextmanager
    def _explained_errors(self) -> Iterator[None]:
        """Turns any error of the storage into an InputError that names the address. A missing file
        or library is for the caller to handle.
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
            raise StorageUnreachable(
                f"{self.address} can't be reached ({reason}): check the address and the network, "
                "and try again"
            ) from problem


class StorageUnreachable(InputError):
    """The storage does not answer for now."""


def _is_hidden(name: str) -> bool:
    parts = name.split("/")
    return any(part.startswith(".") for part in parts)
