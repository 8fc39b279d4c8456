"""What every loader gives, and the rules that several of them share."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Pool
from tailor.task import Task

#: The class into which the K-class versions merge all others.
OTHER = "other"


@dataclass(frozen=True)
class Dataset:
    """A training pool with its labels, and a test set where the dataset has one.

    labels       (N, K) uint8, in the order of the pool
    test_labels  (n, K) uint8, in the order of the test pool

    Raises InputError where examples and labels do not belong together.
    """

    name: str
    task: Task
    pool: Pool
    labels: np.ndarray
    test_pool: Pool | None = None
    test_labels: np.ndarray | None = None

    def __post_init__(self) -> None:
        self._check("pool", self.pool, self.labels)
        self._check("test set", self.test_pool, self.test_labels)

    def _check(self, part: str, pool: Pool | None, labels: np.ndarray | None) -> None:
        if pool is None and labels is None:
            return
        if pool is None or labels is None:
            raise InputError(
                f"{self.name}: the {part} needs examples and labels, one of them is missing"
            )
        # Examples and labels often come in files of their own, and these of different releases.
        if labels.shape != (len(pool), self.task.size):
            raise InputError(
                f"{self.name}: labels of the {part} have shape {labels.shape}, expected "
                f"({len(pool)}, {self.task.size}): the files of examples and of labels do not "
                "belong together"
            )


def need(
    path: Path,
    what: str,
    source: str,
    *,
    folder: bool = False,
) -> Path:
    """The path if it is there, else an error that says what it should be and where to get it."""
    is_there = path.is_dir() if folder else path.is_file()
    if is_there:
        return path
    kind = "folder" if folder else "file"
    raise InputError(f"missing {kind} {path}: {what}; get it from {source}")


def damaged(
    path: str | os.PathLike[str],
    problem: object,
    expected: str,
    source: str,
) -> InputError:
    """The error for a file that is there but not what it must be."""
    return InputError(
        f"damaged file {path} ({problem}): expected {expected}; get it again from {source}"
    )


def first_folder(path: str | os.PathLike[str], names: Sequence[str]) -> Path:
    """The folder given, or the one of these names inside it: archives unpack into a folder of their
    own.
    """
    # The folder itself comes last: it is there in any case.
    root = Path(path)
    if not root.exists():
        raise InputError(f"nothing at {root}: give the folder that holds the dataset's files")
    for name in names:
        folder = root / name
        if folder.is_dir():
            return folder
    return root


def one_hot(classes: np.ndarray | Sequence[int], size: int) -> np.ndarray:
    """classes (n,) from 0 to size - 1 -> labels (n, size) uint8."""
    indices = np.asarray(classes, dtype=np.int64).reshape(-1)
    # NumPy would take -1 for the last class.
    is_outside = (indices < 0) | (indices >= size)
    if is_outside.any():
        outside = indices[is_outside]
        raise InputError(f"class {outside[0]} is outside 0 .. {size - 1}")
    labels = np.zeros((len(indices), size), np.uint8)
    rows = np.arange(len(indices))
    labels[rows, indices] = 1
    return labels


def checked_classes(
    values: np.ndarray,
    size: int,
    rows: int,
    path: str | os.PathLike[str],
    source: str,
) -> np.ndarray:
    """values (n,) as read from a file -> int64, or an error naming the file: n must be rows, each
    value below size.
    """
    values = np.asarray(values).reshape(-1)
    if len(values) != rows:
        raise damaged(
            path,
            f"{len(values)} labels for {rows} examples",
            "one label an example",
            source,
        )
    if not _are_classes(values, size):
        raise damaged(
            path,
            "a label is out of range",
            f"classes 0 to {size - 1}",
            source,
        )
    return values.astype(np.int64)


def _are_classes(values: np.ndarray, size: int) -> bool:
    """Whether all are numbers from 0 to size - 1."""
    if values.dtype.kind not in "iuf":
        return False
    # Not "none is out of range", which is true of a NaN.
    is_inside = (values >= 0) & (values < size)
    return bool(is_inside.all())


def check_class_count(classes: int, size: int) -> None:
    if not 2 <= classes <= size:
        raise InputError(f"classes is {classes}: it must be from 2 to {size}, which keeps them all")


def merge_classes(
    classes: np.ndarray, names: Sequence[str], keep: int
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The paper's K-class rule: classes 0 to K-2 stay, all others become class K-1.

    >>> merged, names = merge_classes(np.array([0, 3, 1, 2]), ["a", "b", "c", "d"], 2)
    >>> merged.tolist(), names
    ([0, 1, 1, 1], ('a', 'other'))
    """
    check_class_count(keep, len(names))
    # With nothing to merge, no class is called OTHER.
    if keep == len(names):
        return classes, tuple(names)
    last = keep - 1
    merged = np.minimum(classes, last)
    return merged, (*names[:last], OTHER)


def fixed_order(ids: Sequence[str], salt: str) -> np.ndarray:
    """(n,) positions in an order that depends on the ids alone: the same with any version, on any
    machine.

    >>> sorted(fixed_order(["a", "b", "c"], "demo").tolist())
    [0, 1, 2]
    """
    keys = []
    for example_id in ids:
        text = f"{salt}:{example_id}"
        # NumPy's generators may change with a version, a hash does not.
        keys.append(hashlib.sha256(text.encode()).digest())
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return np.array(order, dtype=np.int64)


def fixed_split(ids: Sequence[str], salt: str, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the first round(share * n) of the fixed order, and of the rest, both sorted."""
    order = fixed_order(ids, salt)
    cut = round(share * len(order))
    if cut < 1:
        raise InputError(f"{len(order)} examples are too few to split: at least 2 are needed")
    # Sorted: reading a pool in its own order is fastest.
    return np.sort(order[:cut]), np.sort(order[cut:])
