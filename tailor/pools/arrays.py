"""NumPy arrays: in memory, or in .npy and .npz files of which only the asked rows are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools import convert
from tailor.pools.base import (
    Pool,
    Unreadable,
    check_positions,
    ids_or_row_numbers,
    row_numbers,
    without_none,
)
from tailor.pools.image_decoding import pixels
from tailor.pools.npy import NpyRows
from tailor.pools.npz import NpzArrays, open_npz


class Arrays(Pool):
    """Rows of an array: vectors (N, d), grey images (N, H, W) or RGB images (N, H, W, 3), images as
    uint8.

    data    the array (a memory map too), or the path of a .npy or .npz file. A .npy file that gets
            longer grows the pool
    ids     (N,) the ids; else row numbers as text, or the array `ids` of an .npz
    labels  (N,) classes, or (N, K) of 0 and 1; or the path of a .npy file of them; of an .npz the
            array's name, by default `y`, `label` or `labels`
    array   which array of an .npz holds the examples; found where only one can be it

    Raises InputError for other shapes and dtypes, and where ids or labels don't fit the rows.

    Cost: next to none: a .npy file is mapped into memory, not read.

    When to use: embeddings or small pictures that you have as NumPy arrays.

    >>> pool = Arrays(np.eye(2), ids=["a", "b"], labels=["cat", "dog"])
    >>> pool.read([1]), pool.labels()
    ([array([0., 1.], dtype=float32)], {'a': 'cat', 'b': 'dog'})
    """

    def __init__(
        self,
        data: np.ndarray | str | os.PathLike[str],
        *,
        ids: Sequence[str] | None = None,
        labels: Any = None,
        array: str | None = None,
    ) -> None:
        self._path: Path | None = None
        options = {"labels": labels, "array": array}
        self._options = without_none(options)
        self._has_own_ids = ids is not None
        if isinstance(data, (str, os.PathLike)):
            self._path = Path(data).absolute()
            opened = _open_file(
                self._path,
                array,
                ids,
                labels,
            )
        elif isinstance(data, np.ndarray):
            opened = NpzArrays(data, ids, labels)
        else:
            type_name = type(data).__name__
            raise InputError(f"{type_name} is not an array: give a numpy array or a path")
        self._rows = opened.examples
        shape = self._rows.shape
        self.kind = _kind(shape, self._rows.dtype)
        size = shape[0]
        self._ids = ids_or_row_numbers(opened.ids, size)
        self._labels = _checked_labels(opened.labels, size)

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def read(self, positions: Sequence[int]) -> list[np.ndarray | Unreadable]:
        checked = check_positions(positions, len(self))
        if isinstance(self._rows, NpyRows):
            rows = self._rows.rows(checked)
        else:
            # One by one: indexing with a list would copy all of them together first.
            rows = [self._rows[position] for position in checked]
        return [self._example(row) for row in rows]

    def _example(self, row: np.ndarray | Unreadable) -> np.ndarray | Unreadable:
        if isinstance(row, Unreadable):
            return row
        if self.kind == "vector":
            return convert.vector(row)
        return pixels(row)

    def content_keys(self, positions: Sequence[int]) -> list[str] | None:
        checked = check_positions(positions, len(self))
        if self._path is None:
            return None  # an array in memory may be changed in place
        try:
            status = os.stat(self._path)
        except OSError:
            return [f"{self._path}|missing|{position}" for position in checked]
        # Any change of the file changes all keys: nothing says which rows were written anew.
        array = self._options.get("array", "")
        size = status.st_size
        modified_ns = status.st_mtime_ns
        version = f"{self._path}|{array}|{size}|{modified_ns}"
        return [f"{version}|{position}" for position in checked]

    def refresh(self) -> int:
        # Rows that came later would have no id.
        if self._path is None or self._has_own_ids:
            return 0
        if self._path.suffix.lower() == ".npz":
            return 0
        try:
            current = NpyRows(self._path)
        except InputError:
            return 0  # gone, or being written: what is known stays
        # Another array has taken its place, with rows that don't fit those of before.
        row_shape = self._rows.shape[1:]
        if current.shape[1:] != row_shape:
            return 0
        if current.dtype != self._rows.dtype:
            return 0
        size_before = len(self._ids)
        # A file that has become shorter keeps its ids: the rows that are gone read as Unreadable.
        size_now = current.shape[0]
        added = max(0, size_now - size_before)
        new_ids = row_numbers(size_before, added)
        self._rows = current
        self._ids.extend(new_ids)
        return added

    def labels(self) -> dict[str, Any] | None:
        if self._labels is None:
            return None
        if self._labels.ndim != 2:
            values = self._labels.tolist()
            return convert.labels_by_id(self._ids, values, None)
        labels = {}
        for example_id, row in zip(self._ids, self._labels):
            class_indices = np.flatnonzero(row)
            labels[example_id] = [str(index) for index in class_indices]
        return labels

    def describe(self) -> dict[str, Any]:
        description: dict[str, Any] = {
            "kind": "arrays",
            "path": str(self._path),
        }
        is_in_memory = self._path is None or self._has_own_ids
        for name, value in self._options.items():
            if isinstance(value, (str, os.PathLike)):
                description[name] = os.fspath(value)
            else:
                is_in_memory = True
        if is_in_memory:
            raise InputError(
                "arrays in memory can't be opened by name: hand them in again, or save them as "
                ".npz with the arrays 'x', 'ids' and 'labels' and give its path"
            )
        return description


def _checked_labels(given_labels: Any, size: int) -> np.ndarray | None:
    if given_labels is None:
        return None
    labels = np.asarray(given_labels)
    count = len(labels)
    if count != size:
        raise InputError(f"{count} labels for {size} rows: give one label a row")
    return labels


def _open_file(
    path: Path,
    array: str | None,
    ids: Any,
    labels: Any,
) -> NpzArrays:
    """The arrays of a .npy or .npz file; labels may be the path of another .npy file."""
    if not path.is_file():
        raise InputError(f"no file at {path}: give an existing .npy or .npz file")
    if path.suffix.lower() == ".npz":
        opened = open_npz(path, array, ids, labels)
    else:
        opened = NpzArrays(NpyRows(path), ids, labels)
    if not isinstance(opened.labels, (str, os.PathLike)):
        return opened
    label_path = Path(opened.labels)
    label_rows = NpyRows(label_path)
    return replace(opened, labels=label_rows.all())


def _kind(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    """ "vector" or "image", by shape and dtype; InputError for any other array."""
    has_rows = len(shape) > 0 and shape[0] > 0
    if not has_rows:
        raise InputError(f"an array of shape {shape} has no rows: give at least one example")
    is_table = len(shape) == 2 and shape[1] > 0
    if is_table and _is_numeric(dtype):
        if np.issubdtype(dtype, np.complexfloating):
            raise InputError(f"vectors of dtype {dtype}: give real numbers")
        return "vector"
    if dtype == np.uint8 and _has_image_shape(shape):
        return "image"
    raise InputError(
        f"an array of shape {shape} and dtype {dtype}: give vectors (N, d) of numbers, or uint8 "
        "images (N, H, W) or (N, H, W, 3), channels last"
    )


def _is_numeric(dtype: np.dtype[Any]) -> bool:
    # numpy does not count booleans among the numbers.
    if dtype.kind == "b":
        return True
    return np.issubdtype(dtype, np.number)


def _has_image_shape(shape: tuple[int, ...]) -> bool:
    """Whether it is (N, H, W) or (N, H, W, 1 or 3), with at least one pixel."""
    if not all(shape):
        return False
    dimensions = len(shape)
    if dimensions == 4:
        return shape[3] in (1, 3)
    return dimensions == 3
