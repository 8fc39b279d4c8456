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
from tailor_experiments.datasets.files import Subset
from tailor_experiments.datasets.hugging import is_parquet, open_splits
from tailor_experiments.datasets.multiclass import build

WHERE = "http://codh.rois.ac.jp/kmnist/ (Kuzushiji-49, NumPy format)"
SIZE = 49


def kuzushiji49(
    path: str | os.PathLike[str], *, whole: bool = False, max_side: int | None = None
) -> Dataset:
    """49 characters on grey pictures of 28 x 28: k49-train-imgs.npz, k49-train-labels.npz, the same
    for test.

    whole  all 232,365 training examples, not the first 23,236 of a fixed shuffle
    """
    names: list[str] = [str(k) for k in range(SIZE)]
    if is_parquet(path):
        first, second = open_splits(path, max_side=max_side)
        names = first.names or names
        train: tuple[Pool, np.ndarray] = (first.pool, first.indices(names))
        test = None if second is None else (second.pool, second.indices(names))
        return build(
            "kuzushiji49",
            names,
            SIZE,
            train if whole else _tenth(*train),
            test,
        )
    folder = first_folder(path, ("k49", "kuzushiji49", "KMNIST"))
    train = _read(folder, "train")
    test = _read(folder, "test") if (folder / "k49-test-imgs.npz").is_file() else None
    names = _names(folder / "k49_classmap.csv") or names
    return build(
        "kuzushiji49",
        names,
        SIZE,
        train if whole else _tenth(*train),
        test,
    )


def _tenth(pool: Pool, classes: np.ndarray) -> tuple[Pool, np.ndarray]:
    if len(pool) < 10:
        raise InputError(
            f"{len(pool)} training examples: a tenth of them is none; give at least 10, or "
            "whole=True"
        )
    chosen = np.sort(fixed_order(pool.ids, "kuzushiji49")[: len(pool) // 10])
    return Subset(pool, chosen), classes[chosen]


def _read(folder: Path, part: str) -> tuple[Pool, np.ndarray]:
    images = folder / f"k49-{part}-imgs.npz"
    labels = folder / f"k49-{part}-labels.npz"
    need(images, "pictures (n, 28, 28) of bytes as arr_0", WHERE)
    need(labels, "classes (n,) as arr_0", WHERE)
    try:
        pool = Arrays(images, array="arr_0")
    except InputError as problem:
        raise damaged(
            images,
            problem,
            "pictures (n, 28, 28) of bytes as arr_0",
            WHERE,
        ) from None
    if pool.kind != "image":
        raise damaged(
            images,
            "the array is not of pictures",
            "pictures (n, 28, 28) of bytes as arr_0",
            WHERE,
        )
    try:
        values = read_npz(labels, "arr_0")
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
        raise damaged(labels, problem, "classes (n,) as arr_0", WHERE) from None
    return pool, checked_classes(values, SIZE, len(pool), labels, WHERE)


def _names(path: Path) -> list[str] | None:
    """The characters themselves, where the class map is there."""
    if not path.is_file():
        return None
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            named = {int(row["index"]): row["char"] for row in csv.DictReader(file)}
        return [named[k] for k in range(SIZE)]
    except (OSError, KeyError, TypeError, ValueError) as problem:
        raise damaged(
            path,
            problem,
            "columns index, codepoint and char, 49 rows",
            WHERE,
        ) from None
