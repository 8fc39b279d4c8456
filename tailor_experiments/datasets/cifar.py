"""CIFAR-10 and CIFAR-100 from the python batches (a folder, or the archive as downloaded) or
Parquet.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tailor.errors import InputError
from tailor.pools.arrays import Arrays
from tailor_experiments.datasets.base import Dataset, check_class_count, checked_classes, damaged
from tailor_experiments.datasets.hugging import column_names, is_parquet
from tailor_experiments.datasets.multiclass import build, from_parquet
from tailor_experiments.datasets.pickles import read_pickle

WHERE = "https://www.cs.toronto.edu/~kriz/cifar.html (the python version)"
TEN = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


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
    batches = [f"data_batch_{k}" for k in range(1, 6)]
    files = _Batches(
        path,
        "cifar-10-batches-py",
        "cifar-10-python.tar.gz",
        [*batches, "test_batch"],
        "batches.meta",
    )
    names = files.names("batches.meta", "label_names", TEN)
    train = files.read(batches, "labels", 10)
    test = files.read(["test_batch"], "labels", 10)
    return build("cifar10", names, classes, train, test)


def cifar100(
    path: str | os.PathLike[str], *, classes: int = 100, max_side: int | None = None
) -> Dataset:
    """The files train and test, in cifar-100-python or in cifar-100-python.tar.gz, with the fine
    labels.

    classes  K of the K-class rule; the paper's is 10
    """
    check_class_count(classes, 100)
    numbered = tuple(f"class {k}" for k in range(100))
    if is_parquet(path):
        label = "fine_label" if "fine_label" in column_names(path) else None
        return from_parquet(
            "cifar100",
            path,
            numbered,
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
    names = files.names("meta", "fine_label_names", numbered)
    train = files.read(["train"], "fine_labels", 100)
    test = files.read(["test"], "fine_labels", 100)
    return build("cifar100", names, classes, train, test)


class _Batches:
    """The named files of a folder or of an archive, as bytes. Nothing is unpacked onto the disk."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        inner: str,
        archive: str,
        wanted: list[str],
        meta: str,
    ) -> None:
        root = Path(path)
        self.place = root
        self.raw: dict[str, bytes] = {}
        folder = root / inner if (root / inner).is_dir() else root
        if root.is_dir() and not (folder / wanted[0]).is_file() and (root / archive).is_file():
            root = root / archive
        if root.is_file():
            self.place = root
            self._from_archive(root, {*wanted, meta})
        elif root.is_dir():
            self.place = folder
            for name in (*wanted, meta):
                file = folder / name
                if file.is_file():
                    self.raw[name] = file.read_bytes()
        missing = [name for name in wanted if name not in self.raw]
        if missing:
            raise InputError(
                f"missing file {self.place / missing[0]}: expected {', '.join(wanted)} there, or "
                f"{archive} in {path}; "
                f"get it from {WHERE}"
            )

    def _from_archive(self, archive: Path, wanted: set[str]) -> None:
        try:
            with tarfile.open(archive) as opened:
                for member in opened:
                    name = member.name.rpartition("/")[2]
                    if not member.isfile() or name not in wanted:
                        continue
                    file = opened.extractfile(member)
                    if file is not None:
                        self.raw[name] = file.read()
        except (OSError, EOFError, tarfile.TarError) as problem:
            raise damaged(archive, problem, "a whole .tar.gz archive", WHERE) from None

    def names(self, meta: str, key: str, default: Sequence[str]) -> list[str]:
        if meta not in self.raw:
            return list(default)
        place = self.place / meta
        names = read_pickle(self.raw[meta], str(place)).get(key)
        if not isinstance(names, list) or len(names) != len(default):
            raise damaged(
                place,
                f"no {len(default)} names under {key!r}",
                "the names of the classes",
                WHERE,
            )
        return [
            name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
            for name in names
        ]

    def read(self, batches: Sequence[str], key: str, size: int) -> tuple[Arrays, np.ndarray]:
        """The pictures as (n, 32, 32, 3), and their classes (n,)."""
        pixels = []
        classes = []
        for name in batches:
            place = self.place / name
            batch = read_pickle(self.raw[name], str(place))
            data = batch.get("data")
            labels = batch.get(key)
            if not isinstance(data, np.ndarray) or data.shape[1:] != (3072,) or len(data) == 0:
                raise damaged(
                    place,
                    "no array 'data' of shape (n, 3072)",
                    "pictures of 32 x 32 x 3 bytes",
                    WHERE,
                )
            if not isinstance(labels, list) or not all(isinstance(k, int) for k in labels):
                raise damaged(
                    place,
                    f"no list {key!r} of numbers",
                    "one class a picture",
                    WHERE,
                )
            pixels.append(data)
            values = np.array(labels, np.int64)
            classes.append(checked_classes(values, size, len(data), place, WHERE))
        # One batch as it is: a copy of CIFAR-100's 150 MB would be for nothing.
        flat = pixels[0] if len(pixels) == 1 else np.concatenate(pixels)
        planes = flat.reshape(-1, 3, 32, 32)
        return Arrays(planes.transpose(0, 2, 3, 1)), np.concatenate(classes)
