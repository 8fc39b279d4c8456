"""A folder of images, with folders inside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Pool, Unreadable, check_positions, check_unique
from tailor.pools.convert import check_decoding, decode_image, decoded_as, in_threads

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm"})


class ImageFolder(Pool):
    """Every image below a folder, under its relative path ("cats/007.jpg").

    Hidden files and folders are left out; files of other kinds are counted in `ignored`. A file
    that goes away keeps its position and reads as Unreadable("missing"). Links to folders are
    followed, except into a folder they lie in.

    labels    "folder": the first folder of the path is the class; a file at the top has none
    max_side  images are read no larger than this, which is faster for JPEG
    threads   how many images are decoded at once
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
        if labels not in (None, "folder"):
            raise InputError(
                f"labels is {labels!r}: give 'folder' (the first folder is the class) or None"
            )
        self.path = Path(path).absolute()
        if not self.path.is_dir():
            raise InputError(f"no folder at {self.path}: give an existing folder of images")
        self._labels = labels
        self.max_side = max_side
        self.threads = threads
        self.ignored = 0
        self._closed: dict[str, str] = {}
        self._ids: list[str] = []
        self._odd: dict[str, str] = {}
        if not self.refresh():
            raise InputError(
                f"no image in {self.path} ({self.ignored} other files): images end in "
                f"{', '.join(sorted(s[1:] for s in SUFFIXES))}"
            )

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def refresh(self) -> int:
        self.ignored = 0
        self._closed = {}
        known = set(self._ids)
        found: dict[str, str] = {}
        for relative in self._walk(str(self.path), "", ()):
            shown = readable_name(relative)
            if shown in found:
                check_unique([shown, shown], [repr(found[shown]), repr(relative)])
            found[shown] = relative
        new = sorted(found.keys() - known)
        self._odd.update((shown, found[shown]) for shown in new if found[shown] != shown)
        self._ids.extend(new)
        return len(new)

    def _walk(self, folder: str, prefix: str, above: tuple[tuple[int, int], ...]) -> Iterator[str]:
        """Relative paths of the images below; `above`: the folders on the way down, so that no link
        leads back up.
        """
        try:
            status = os.stat(folder)
            here = (status.st_dev, status.st_ino)
            if here in above:
                return
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError as problem:
            self._closed[readable_name(prefix) or "."] = problem.strerror or str(problem)
            return
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                is_folder = entry.is_dir()
                is_file = entry.is_file()
            except OSError:  # a link to itself
                self.ignored += 1
                continue
            if is_folder:
                yield from self._walk(entry.path, f"{prefix}{entry.name}/", (*above, here))
            elif is_file and os.path.splitext(entry.name)[1].lower() in SUFFIXES:
                yield prefix + entry.name
            else:
                self.ignored += 1

    def file(self, position: int) -> str:
        """Where the image at this position lies on disk."""
        one = self._ids[position]
        return os.path.join(self.path, self._odd.get(one, one))

    def read(self, positions: Sequence[int]) -> list[np.ndarray | Unreadable]:
        files = [self.file(p) for p in check_positions(positions, len(self))]
        return in_threads(lambda file: decode_image(file, self.max_side), files, self.threads)

    def content_keys(self, positions: Sequence[int]) -> list[str]:
        keys = []
        for position in check_positions(positions, len(self)):
            file = self.file(position)
            try:
                status = os.stat(file)
            except OSError:
                keys.append(f"{file}|missing")
            else:
                keys.append(
                    f"{file}|{status.st_size}|{status.st_mtime_ns}|{self.max_side}{decoded_as(file)}"
                )
        return keys

    def labels(self) -> dict[str, Any] | None:
        if self._labels is None:
            return None
        return {one: one.split("/", 1)[0] for one in self._ids if "/" in one}

    def set_aside(self) -> dict[str, str]:
        return dict(self._closed)

    def describe(self) -> dict[str, Any]:
        options = {"labels": self._labels, "max_side": self.max_side, "threads": self.threads}
        return {"kind": "image-folder", "path": str(self.path)} | {
            k: v for k, v in options.items() if v is not None
        }


def readable_name(path: str) -> str:
    """A file name that is not UTF-8 can't be stored or shown: its odd bytes are written as
    \\xNN.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    return path
