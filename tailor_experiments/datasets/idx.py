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
from tailor_experiments.datasets.parts import Part

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
    return build(
        "fashion-mnist",
        CLOTHES,
        classes,
        _read(folder, "train"),
        _read_test(folder),
    )


def _read_test(folder: Path) -> Part | None:
    """The test part, where it is there."""
    if _find(folder, "t10k-images-idx3-ubyte").is_file():
        return _read(folder, "t10k")
    return None


def _read(folder: Path, part: str) -> Part:
    """The pictures of a part, and their classes (n,)."""
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
    """The file as it is, or compressed."""
    plain = folder / name
    if plain.is_file():
        return plain
    return folder / f"{name}.gz"


def read_idx(path: Path, axes: int, source: str) -> np.ndarray:
    """An IDX file of bytes: two zeros, type 8, the number of axes, their lengths (big-endian), the
    values.
    """
    expected = f"an IDX file of bytes with {axes} axes"
    need(path, f"{expected} (.gz or plain)", source)
    try:
        raw = _uncompressed(path)
    except (OSError, EOFError, zlib.error) as problem:
        raise damaged(
            path,
            problem,
            expected,
            source,
        ) from None
    # Four bytes of magic number, then four for the length of each axis.
    start = 4 + 4 * axes
    has_header = len(raw) >= start
    if not has_header or raw[:4] != bytes((0, 0, 8, axes)):
        beginning = f"it begins with {raw[:4].hex()}"
        raise damaged(
            path,
            beginning,
            expected,
            source,
        )
    shape = _shape(raw, axes)
    size = len(raw) - start
    # An empty axis would make a broken file pass for one without examples.
    if size != int(np.prod(shape)) or 0 in shape:
        wrong_size = f"{size} bytes for the shape {shape}"
        raise damaged(
            path,
            wrong_size,
            expected,
            source,
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def _uncompressed(path: Path) -> bytes:
    raw = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(raw)
    return raw


def _shape(raw: bytes, axes: int) -> tuple[int, ...]:
    """The length of each axis, from an IDX file's header."""
    lengths = np.frombuffer(
        raw,
        ">u4",
        axes,
        4,
    )
    return tuple(lengths.tolist())
