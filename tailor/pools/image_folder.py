"""A folder of images, with folders inside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import (
    Pool,
    Unreadable,
    check_positions,
    check_unique,
    without_none,
)
from tailor.pools.image_decoding import (
    IMAGE_SUFFIXES,
    check_decoding,
    decode_image,
    decoding_key,
    in_threads,
)


class ImageFolder(Pool):
    """Every image below a folder, under its relative path ("cats/007.jpg").

    Hidden files and folders are left out; files of other kinds are counted in `ignored`. A file
    that goes away keeps its position and reads as Unreadable("missing"). Links to folders are
    followed, except into a folder they lie in.

    path      the folder
    labels    "folder": the first folder of the path is the class; a file at the top has none
    max_side  images are shrunk to at most this many pixels on the longer side, which makes JPEG
              faster to read
    threads   images decoded at once

    Raises InputError where there is no such folder or no image in it.

    Cost: opening walks the folder; a picture is decoded when it is read.

    When to use: pictures as files on a disk, in any depth of folders.
    """

    kind = "image"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        labels: str | None = None,
        max_side: int | None = None,
        threads: int | None = None,
    ) -> None:
        check_decoding(max_side, threads)
        check_labels_option(labels)
        self.path = Path(path).absolute()
        if not self.path.is_dir():
            raise InputError(f"no folder at {self.path}: give an existing folder of images")
        self._labels = labels
        self.max_side = max_side
        self.threads = threads
        self.ignored = 0
        self._closed_folders: dict[str, str] = {}
        self._ids: list[str] = []
        #: The relative path of those whose id is not their path: names that are not UTF-8.
        self._path_by_id: dict[str, str] = {}
        added = self.refresh()
        if added == 0:
            without_dots = sorted(suffix[1:] for suffix in IMAGE_SUFFIXES)
            suffixes = ", ".join(without_dots)
            raise InputError(
                f"no image in {self.path} ({self.ignored} other files): images end in {suffixes}"
            )

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def refresh(self) -> int:
        self.ignored = 0
        self._closed_folders = {}
        path_by_id = self._find_images()
        ids_before = set(self._ids)
        # Sorted, as the order of a folder's entries differs from disk to disk.
        new_ids = sorted(path_by_id.keys() - ids_before)
        for example_id in new_ids:
            path = path_by_id[example_id]
            if path != example_id:
                self._path_by_id[example_id] = path
        self._ids.extend(new_ids)
        return len(new_ids)

    def _find_images(self) -> dict[str, str]:
        """The relative paths of all images by id. Raises InputError where two names read alike."""
        path_by_id: dict[str, str] = {}
        for relative in self._walk(str(self.path), "", ()):
            example_id = readable_name(relative)
            other = path_by_id.setdefault(example_id, relative)
            if other != relative:
                # This raises, and names both.
                places = [repr(other), repr(relative)]
                check_unique([example_id, example_id], places)
        return path_by_id

    def _walk(
        self,
        folder: str,
        prefix: str,
        parents: tuple[tuple[int, int], ...],
    ) -> Iterator[str]:
        """Relative paths of the images below a folder.

        parents  (device, inode) of the folders on the way down, so that no link leads back up
        """
        try:
            status = os.stat(folder)
            identity = (status.st_dev, status.st_ino)
            if identity in parents:
                return
            with os.scandir(folder) as scan:
                entries = list(scan)
        except OSError as problem:
            name = readable_name(prefix) or "."
            self._closed_folders[name] = problem.strerror or str(problem)
            return
        for entry in entries:
            name = entry.name
            if name.startswith("."):
                continue
            try:
                is_folder = entry.is_dir()
                is_file = entry.is_file()
            except OSError:  # a link to itself
                self.ignored += 1
                continue
            if is_folder:
                yield from self._walk(
                    entry.path, prefix=f"{prefix}{name}/", parents=(*parents, identity)
                )
            elif is_file and _is_image_name(name):
                yield prefix + name
            else:
                self.ignored += 1

    def file(self, position: int) -> str:
        example_id = self._ids[position]
        relative = self._path_by_id.get(example_id, example_id)
        return os.path.join(self.path, relative)

    def read(self, positions: Sequence[int]) -> list[np.ndarray | Unreadable]:
        def decode(file: str) -> np.ndarray | Unreadable:
            return decode_image(file, self.max_side)

        return in_threads(decode, self._files(positions), self.threads)

    def _files(self, positions: Sequence[int]) -> list[str]:
        checked = check_positions(positions, len(self))
        return [self.file(position) for position in checked]

    def content_keys(self, positions: Sequence[int]) -> list[str]:
        files = self._files(positions)
        return [image_content_key(file, self.max_side) for file in files]

    def labels(self) -> dict[str, Any] | None:
        if self._labels is None:
            return None
        return folder_labels(self._ids)

    def set_aside(self) -> dict[str, str]:
        return dict(self._closed_folders)

    def describe(self) -> dict[str, Any]:
        options = {
            "labels": self._labels,
            "max_side": self.max_side,
            "threads": self.threads,
        }
        return {
            "kind": "image-folder",
            "path": str(self.path),
            **without_none(options),
        }


def _is_image_name(name: str) -> bool:
    _, suffix = os.path.splitext(name)
    return suffix.lower() in IMAGE_SUFFIXES


def check_labels_option(labels: str | None) -> None:
    """Raises InputError unless it is None or "folder"."""
    if labels not in (None, "folder"):
        raise InputError(
            f"labels is {labels!r}: give 'folder' (the first folder is the class) or None"
        )


def folder_labels(ids: Sequence[str]) -> dict[str, Any]:
    """The first folder of each path as its label; paths without a folder are left out.

    >>> folder_labels(["cat/1.jpg", "dog/old/2.jpg", "3.jpg"])
    {'cat/1.jpg': 'cat', 'dog/old/2.jpg': 'dog'}
    """
    labels: dict[str, Any] = {}
    for path in ids:
        first_folder, slash, _ = path.partition("/")
        if slash:
            labels[path] = first_folder
    return labels


def image_content_key(file: str, max_side: int | None) -> str:
    """A key for the content of an image file as it is read at this size."""
    try:
        status = os.stat(file)
    except OSError:
        return f"{file}|missing"
    version = f"{file}|{status.st_size}|{status.st_mtime_ns}"
    decoding = decoding_key(file)
    return f"{version}|{max_side}{decoding}"


def readable_name(path: str) -> str:
    """A path that can be stored and shown: bytes that are not UTF-8 are written as \\xNN."""
    try:
        path.encode()
    except UnicodeEncodeError:
        # Python stands in for such bytes with halves of surrogate pairs, which no store takes.
        stored_bytes = os.fsencode(path)
        return stored_bytes.decode("utf-8", "backslashreplace")
    return path
