"""Street View House Numbers, cropped digits, from train_32x32.mat and test_32x32.mat, or
Parquet.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tailor.pools.arrays import Arrays
from tailor_experiments.datasets.base import (
    Dataset,
    check_class_count,
    checked_classes,
    damaged,
    first_folder,
)
from tailor_experiments.datasets.hugging import is_parquet
from tailor_experiments.datasets.matlab import read_mat
from tailor_experiments.datasets.multiclass import build, from_parquet
from tailor_experiments.datasets.parts import Part

WHERE = "http://ufldl.stanford.edu/housenumbers/ (format 2, cropped digits)"
#: by class
DIGITS = tuple(str(digit) for digit in range(10))
_EXPECTED = "X (32, 32, 3, n) of bytes and y (n, 1) from 1 to 10"


def svhn(
    path: str | os.PathLike[str], *, classes: int = 10, max_side: int | None = None
) -> Dataset:
    """Class 0 is the digit 0, which the files write as 10.

    classes  K of the K-class rule: classes 0 to K-2 are kept, the others are merged; the paper's is
             2
    """
    check_class_count(classes, 10)
    if is_parquet(path):
        return from_parquet(
            "svhn",
            path,
            DIGITS,
            classes,
            max_side=max_side,
        )
    folder = first_folder(path, ("SVHN", "svhn"))
    return build(
        "svhn",
        DIGITS,
        classes,
        _read(folder / "train_32x32.mat"),
        _read_test(folder / "test_32x32.mat"),
    )


def _read_test(path: Path) -> Part | None:
    """The test part, where it is there."""
    if path.is_file():
        return _read(path)
    return None


def _read(path: Path) -> Part:
    """The pictures of a part, and their classes (n,)."""
    variables = read_mat(
        path,
        ("X", "y"),
        _EXPECTED,
        WHERE,
    )
    pixels = _checked_pixels(variables["X"], path)
    digits = variables["y"].reshape(-1)
    if digits.dtype.kind not in "iuf" or digits.min(initial=1) < 1:
        raise damaged(
            path,
            "a label is below 1",
            _EXPECTED,
            WHERE,
        )
    # MATLAB counts from 1, so these files have 10 where a 0 is seen.
    digits = np.where(digits == 10, 0, digits)
    classes = checked_classes(
        digits,
        len(DIGITS),
        len(pixels),
        path,
        WHERE,
    )
    return Arrays(pixels), classes


def _checked_pixels(pixels: np.ndarray, path: Path) -> np.ndarray:
    """X as the file has it -> (n, 32, 32, 3)."""
    if pixels.ndim == 3:  # MATLAB drops a last axis of one
        pixels = pixels[..., None]
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[:3] != (32, 32, 3):
        raise damaged(
            path,
            f"X is {pixels.dtype} of shape {pixels.shape}",
            _EXPECTED,
            WHERE,
        )
    return pixels.transpose(3, 0, 1, 2)
