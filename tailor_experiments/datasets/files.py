"""Pools for datasets: files listed by an annotation, and a part of another pool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Pool, Unreadable, check_positions, check_unique
from tailor.pools.image_decoding import check_decoding, decode_image, decoding_key, in_threads


class Files(Pool):
    """Image files under a folder, in the order given; decoded when they are read.

    The list comes from a dataset's own annotation, so a file may be missing: it then reads as
    Unreadable.

    names     paths relative to the folder, "train/001.jpg"; they are the ids
    max_side  images are read no larger than this
    """

    kind = "image"

    def __init__(
        self,
        root: str | os.PathLike[str],
        names: Sequence[str],
        *,
        max_side: int | None = None,
        threads: int | None = None,
    ) -> None:
        check_decoding(max_side, threads)
        self.root = Path(root).absolute()
        self._ids = list(names)
        self.max_side = max_side
        self.threads = threads
        check_unique(self._ids)
        for name in self._ids:
            self._check_inside(name)

    def _check_inside(self, name: str) -> None:
        # Names come from a downloaded file: they must not lead anywhere else on the disk.
        climbs = ".." in name.split("/")
        if climbs or name.startswith("/"):
            raise InputError(
                f"picture {name!r} lies outside {self.root}: names are relative to that folder"
            )

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def file(self, position: int) -> str:
        """Where the image at this position lies on disk."""
        return os.path.join(self.root, self._ids[position])

    def read(self, positions: Sequence[int]) -> list[np.ndarray | Unreadable]:
        checked = check_positions(positions, len(self))
        files = [self.file(position) for position in checked]
        return in_threads(lambda file: decode_image(file, self.max_side), files, self.threads)

    def content_keys(self, positions: Sequence[int]) -> list[str]:
        checked = check_positions(positions, len(self))
        return [self._content_key(position) for position in checked]

    def _content_key(self, position: int) -> str:
        """What the decoded image depends on, without reading the file."""
        file = self.file(position)
        try:
            # Size and time instead of the content: a hash would read every file.
            status = os.stat(file)
        except OSError:
            return f"{file}|missing"
        # The same bytes decode to another image at another size.
        decoding = f"{self.max_side}{decoding_key(file)}"
        return f"{file}|{status.st_size}|{status.st_mtime_ns}|{decoding}"

    def missing(self) -> list[str]:
        """The ids whose file is not there. Each folder is listed once, which is quick for a million
        files too.
        """
        listed: dict[str, set[str]] = {}
        missing = []
        for example_id in self._ids:
            folder, _, name = example_id.rpartition("/")
            if folder not in listed:
                listed[folder] = _names_in(self.root / folder)
            if name not in listed[folder]:
                missing.append(example_id)
        return missing


def _names_in(folder: Path) -> set[str]:
    """None where there is no such folder."""
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


class Subset(Pool):
    """Some positions of another pool, under the same ids."""

    def __init__(self, pool: Pool, positions: Sequence[int] | np.ndarray) -> None:
        self.kind = pool.kind
        self.pool = pool
        self.positions = np.asarray(positions, dtype=np.int64)
        self._ids = [pool.ids[position] for position in self.positions.tolist()]

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def _inner(self, positions: Sequence[int]) -> list[int]:
        checked = check_positions(positions, len(self))
        return [int(self.positions[position]) for position in checked]

    def read(self, positions: Sequence[int]) -> list[Any]:
        return self.pool.read(self._inner(positions))

    def content_keys(self, positions: Sequence[int]) -> list[str] | None:
        return self.pool.content_keys(self._inner(positions))

    def set_aside(self) -> dict[str, str]:
        return self.pool.set_aside()


def missing_files(pool: Pool) -> list[str]:
    """Ids of a pool's files that are not there; none for a pool that has no files of its own."""
    if isinstance(pool, Files):
        return pool.missing()
    if not isinstance(pool, Subset):
        return []
    # The inner pool lists what all of its examples lack.
    inside = set(pool.ids)
    return [example_id for example_id in missing_files(pool.pool) if example_id in inside]
