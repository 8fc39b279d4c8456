"""Kuzushiji-49 from its .npz files, or Parquet: one tenth of the training file, as in the paper."""

from __future__ import annotations

import csv
import os
import zipfile
import zlib
from pathlib import Path

import numpy as np

from tailor.errors import InputError
from tailor.pools.arrays import Arrays
from tailor.pools.base import Pool
from tailor.pools.npz import read_npz
from tailor_experiments.datasets.base import (
    Dataset,
    checked_classes,
    damaged,
    first_folder,
    fixed_order,
    need,
)
from tailor_experiments.datasets.hugging import is_parquet, open_splits
from tailor_experiments.datasets.multiclass import build
from tailor_experiments.datasets.parts import Part, Parts, rows_of, with_classes

WHERE = "http://codh.rois.ac.jp/kmnist/ (Kuzushiji-49, NumPy format)"
SIZE = 49
#: what classes are called where no class map says it
_NUMBERS = [str(number) for number in range(SIZE)]
_PICTURES = "pictures (n, 28, 28) of bytes as arr_0"
_CLASSES = "classes (n,) as arr_0"
#: what reading a broken .npz file raises
_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
)


def kuzushiji49(
    path: str | os.PathLike[str], *, whole: bool = False, max_side: int | None = None
) -> Dataset:
    """49 characters on grey pictures of 28 x 28: k49-train-imgs.npz, k49-train-labels.npz, the same
    for test.

    whole  all 232,365 training examples, not the first 23,236 of a fixed shuffle
    """
    if is_parquet(path):
        (train, test), names = _from_parquet(path, max_side)
    else:
        folder = first_folder(path, ("k49", "kuzushiji49", "KMNIST"))
        (train, test), names = _from_arrays(folder)
    # The paper's N is a tenth of what is published.
    if not whole:
        train = _tenth(train)
    return build(
        "kuzushiji49",
        names,
        SIZE,
        train,
        test,
    )


def _from_parquet(path: str | os.PathLike[str], max_side: int | None) -> tuple[Parts, list[str]]:
    train, test = open_splits(path, max_side=max_side)
    names = train.names or _NUMBERS
    return with_classes(train, test, names), names


def _from_arrays(folder: Path) -> tuple[Parts, list[str]]:
    train = _read(folder, "train")
    test: Part | None = None
    if (folder / "k49-test-imgs.npz").is_file():
        test = _read(folder, "test")
    names = _names(folder / "k49_classmap.csv") or _NUMBERS
    return (train, test), names


def _tenth(part: Part) -> Part:
    """The first tenth of a fixed shuffle."""
    pool, _ = part
    size = len(pool) // 10
    if size == 0:
        raise InputError(
            f"{len(pool)} training examples: a tenth of them is none; give at least 10, or "
            "whole=True"
        )
    shuffled = fixed_order(pool.ids, "kuzushiji49")
    chosen = shuffled[:size]
    # In the order of the file, in which neighbours are read together.
    return rows_of(part, np.sort(chosen))


def _read(folder: Path, part: str) -> Part:
    """The pictures of a part, and their classes (n,)."""
    images = folder / f"k49-{part}-imgs.npz"
    labels = folder / f"k49-{part}-labels.npz"
    # Both before either is opened: reading the pictures takes long.
    need(images, _PICTURES, WHERE)
    need(labels, _CLASSES, WHERE)
    pool = _pictures(images)
    classes = _classes(labels, len(pool))
    return pool, classes


def _pictures(path: Path) -> Pool:
    try:
        pool = Arrays(path, array="arr_0")
    except InputError as problem:
        raise damaged(
            path,
            problem,
            _PICTURES,
            WHERE,
        ) from None
    if pool.kind != "image":
        raise damaged(
            path,
            "the array is not of pictures",
            _PICTURES,
            WHERE,
        )
    return pool


def _classes(path: Path, count: int) -> np.ndarray:
    """(count,) int64"""
    try:
        values = read_npz(path, "arr_0")
    except _UNREADABLE as problem:
        raise damaged(
            path,
            problem,
            _CLASSES,
            WHERE,
        ) from None
    return checked_classes(
        values,
        SIZE,
        count,
        path,
        WHERE,
    )


def _names(path: Path) -> list[str] | None:
    """The characters themselves, where the class map is there."""
    if not path.is_file():
        return None
    try:
        characters = _characters(path)
        return [characters[number] for number in range(SIZE)]
    except (OSError, KeyError, TypeError, ValueError) as problem:
        raise damaged(
            path,
            problem,
            "columns index, codepoint and char, 49 rows",
            WHERE,
        ) from None


def _characters(path: Path) -> dict[int, str]:
    """number of a class -> its character"""
    # The published file begins with a byte order mark.
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        return {int(row["index"]): row["char"] for row in rows}
