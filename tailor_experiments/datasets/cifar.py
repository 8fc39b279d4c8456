"""CIFAR-10 and CIFAR-100 from the python batches (a folder, or the archive as downloaded) or
Parquet.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools.arrays import Arrays
from tailor_experiments.datasets.base import Dataset, check_class_count, checked_classes, damaged
from tailor_experiments.datasets.hugging import column_names, is_parquet
from tailor_experiments.datasets.multiclass import build, from_parquet
from tailor_experiments.datasets.pickles import read_pickle

WHERE = "https://www.cs.toronto.edu/~kriz/cifar.html (the python version)"
TEN = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
#: what CIFAR-100's classes are called where no file names them
_NUMBERED = [f"class {number}" for number in range(100)]


def cifar10(
    path: str | os.PathLike[str], *, classes: int = 10, max_side: int | None = None
) -> Dataset:
    """data_batch_1 to 5 and test_batch, in cifar-10-batches-py or in cifar-10-python.tar.gz.

    classes  K of the K-class rule: classes 0 to K-2 are kept, the others are merged; the paper's is
             2
    """
    check_class_count(classes, 10)
    if is_parquet(path):
        return from_parquet(
            "cifar10",
            path,
            TEN,
            classes,
            max_side=max_side,
        )
    batches = [f"data_batch_{number}" for number in range(1, 6)]
    files = _Batches(
        path,
        "cifar-10-batches-py",
        "cifar-10-python.tar.gz",
        [*batches, "test_batch"],
        "batches.meta",
    )
    return build(
        "cifar10",
        files.names("label_names", TEN),
        classes,
        files.read(batches, "labels", 10),
        files.read(["test_batch"], "labels", 10),
    )


def cifar100(
    path: str | os.PathLike[str], *, classes: int = 100, max_side: int | None = None
) -> Dataset:
    """The files train and test, in cifar-100-python or in cifar-100-python.tar.gz, with the fine
    labels.

    classes  K of the K-class rule; the paper's is 10
    """
    check_class_count(classes, 100)
    if is_parquet(path):
        # By default the column would be found by its name, and these files have two.
        label = "fine_label" if "fine_label" in column_names(path) else None
        return from_parquet(
            "cifar100",
            path,
            _NUMBERED,
            classes,
            label=label,
            max_side=max_side,
        )
    files = _Batches(
        path,
        "cifar-100-python",
        "cifar-100-python.tar.gz",
        ["train", "test"],
        "meta",
    )
    return build(
        "cifar100",
        files.names("fine_label_names", _NUMBERED),
        classes,
        files.read(["train"], "fine_labels", 100),
        files.read(["test"], "fine_labels", 100),
    )


class _Batches:
    """The named files of a folder or of an archive, as bytes. Nothing is unpacked onto the disk.

    inner    the folder inside the archive, which may have been unpacked
    wanted   files that must be there
    meta     the file with the names of the classes, which may be missing
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        inner: str,
        archive: str,
        wanted: list[str],
        meta: str,
    ) -> None:
        root = Path(path)
        folder = root / inner
        if not folder.is_dir():
            folder = root
        self.meta = meta
        self.place = folder
        self.raw: dict[str, bytes] = {}
        # Unpacked files first: they are read sooner than the archive is.
        is_unpacked = (folder / wanted[0]).is_file()
        if not is_unpacked and (root / archive).is_file():
            self.place = root / archive
        names = {*wanted, meta}
        if self.place.is_file():
            self._from_archive(self.place, names)
        else:
            self._from_folder(self.place, names)
        for name in wanted:
            if name not in self.raw:
                raise InputError(
                    f"missing file {self.place / name}: expected {', '.join(wanted)} there, or "
                    f"{archive} in {path}; "
                    f"get it from {WHERE}"
                )

    def _from_folder(self, folder: Path, names: set[str]) -> None:
        for name in names:
            file = folder / name
            if file.is_file():
                self.raw[name] = file.read_bytes()

    def _from_archive(self, archive: Path, names: set[str]) -> None:
        try:
            with tarfile.open(archive) as opened:
                for member in opened:
                    name = member.name.rpartition("/")[2]
                    if not member.isfile() or name not in names:
                        continue
                    file = opened.extractfile(member)
                    if file is not None:
                        self.raw[name] = file.read()
        except (OSError, EOFError, tarfile.TarError) as problem:
            raise damaged(
                archive,
                problem,
                "a whole .tar.gz archive",
                WHERE,
            ) from None

    def names(self, key: str, default: Sequence[str]) -> list[str]:
        """The classes in order, as the file of names has them under a key."""
        if self.meta not in self.raw:
            return list(default)
        place = self.place / self.meta
        content = read_pickle(self.raw[self.meta], str(place))
        names = content.get(key)
        if not isinstance(names, list) or len(names) != len(default):
            raise damaged(
                place,
                f"no {len(default)} names under {key!r}",
                "the names of the classes",
                WHERE,
            )
        return [_as_text(name) for name in names]

    def read(self, batches: Sequence[str], key: str, size: int) -> tuple[Arrays, np.ndarray]:
        """The pictures as (n, 32, 32, 3), and their classes (n,)."""
        pixels = []
        classes = []
        for name in batches:
            batch_pixels, batch_classes = self._read_batch(name, key, size)
            pixels.append(batch_pixels)
            classes.append(batch_classes)
        # One batch as it is: a copy of CIFAR-100's 150 MB would be for nothing.
        flat = pixels[0] if len(pixels) == 1 else np.concatenate(pixels)
        planes = flat.reshape(-1, 3, 32, 32)
        pictures = planes.transpose(0, 2, 3, 1)
        return Arrays(pictures), np.concatenate(classes)

    def _read_batch(self, name: str, key: str, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Pixels (n, 3072) and classes (n,) of one file."""
        place = self.place / name
        batch = read_pickle(self.raw[name], str(place))
        pixels = _checked_pixels(batch.get("data"), place)
        numbers = _checked_numbers(batch.get(key), key, place)
        classes = checked_classes(
            np.array(numbers, np.int64),
            size,
            len(pixels),
            place,
            WHERE,
        )
        return pixels, classes


def _as_text(name: Any) -> str:
    """Names that Python 2 wrote come as bytes."""
    if isinstance(name, bytes):
        return name.decode("utf-8", "replace")
    return str(name)


def _checked_pixels(data: Any, place: Path) -> np.ndarray:
    """What a batch has as its pictures, where it is (n, 3072)."""
    is_array = isinstance(data, np.ndarray)
    if not is_array or data.shape[1:] != (3072,) or len(data) == 0:
        raise damaged(
            place,
            "no array 'data' of shape (n, 3072)",
            "pictures of 32 x 32 x 3 bytes",
            WHERE,
        )
    pixels: np.ndarray = data
    return pixels


def _checked_numbers(labels: Any, key: str, place: Path) -> list[int]:
    """What a batch has as its labels, where they are numbers."""
    if isinstance(labels, list) and all(isinstance(label, int) for label in labels):
        return labels
    raise damaged(
        place,
        f"no list {key!r} of numbers",
        "one class a picture",
        WHERE,
    )
