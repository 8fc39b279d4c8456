"""Fashion-MNIST from its IDX files, compressed or not, or Parquet."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import numpy as np

from tailor.pools.arrays import Arrays
from tailor_experiments.datasets.base import (
    Dataset,
    check_class_count,
    checked_classes,
    damaged,
    first_folder,
    need,
)
from tailor_experiments.datasets.hugging import is_parquet
from tailor_experiments.datasets.multiclass import build, from_parquet

WHERE = (
    "https://github.com/zalandoresearch/fashion-mnist, or Debian's package dataset-fashion-mnist"
)
CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def fashion_mnist(
    path: str | os.PathLike[str], *, classes: int = 10, max_side: int | None = None
) -> Dataset:
    """60,000 and 10,000 grey pictures of 28 x 28.

    classes  K of the K-class rule: classes 0 to K-2 are kept, the others are merged
    """
    check_class_count(classes, 10)
    if is_parquet(path):
        return from_parquet(
            "fashion-mnist",
            path,
            CLOTHES,
            classes,
            max_side=max_side,
        )
    folder = first_folder(path, ("fashion-mnist", "FashionMNIST/raw", "raw"))
    test = _read(folder, "t10k") if _find(folder, "t10k-images-idx3-ubyte").is_file() else None
    return build(
        "fashion-mnist",
        CLOTHES,
        classes,
        _read(folder, "train"),
        test,
    )


def _read(folder: Path, part: str) -> tuple[Arrays, np.ndarray]:
    images = _find(folder, f"{part}-images-idx3-ubyte")
    labels = _find(folder, f"{part}-labels-idx1-ubyte")
    pixels = read_idx(images, 3, WHERE)
    values = read_idx(labels, 1, WHERE)
    classes = checked_classes(
        values,
        len(CLOTHES),
        len(pixels),
        labels,
        WHERE,
    )
    return Arrays(pixels), classes


def _find(folder: Path, name: str) -> Path:
    return folder / name if (folder / name).is_file() else folder / f"{name}.gz"


def read_idx(path: Path, axes: int, where: str) -> np.ndarray:
    """An IDX file of bytes: two zeros, type 8, the number of axes, their lengths (big-endian), the
    values.
    """
    expected = f"an IDX file of bytes with {axes} axes"
    need(path, f"{expected} (.gz or plain)", where)
    try:
        raw = path.read_bytes()
        if path.suffix == ".gz":
            raw = gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as problem:
        raise damaged(path, problem, expected, where) from None
    start = 4 + 4 * axes
    if len(raw) < start or raw[:4] != bytes((0, 0, 8, axes)):
        raise damaged(
            path,
            f"it begins with {raw[:4].hex()}",
            expected,
            where,
        )
    shape = tuple(np.frombuffer(raw, ">u4", axes, 4).tolist())
    size = len(raw) - start
    if size != int(np.prod(shape)) or 0 in shape:
        raise damaged(
            path,
            f"{size} bytes for the shape {shape}",
            expected,
            where,
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)
