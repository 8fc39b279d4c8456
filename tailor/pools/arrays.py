"""NumPy arrays: in memory, or in .npy and .npz files of which only the asked rows are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools import convert
from tailor.pools.base import Pool, Unreadable, check_positions, check_unique
from tailor.pools.image_decoding import pixels
from tailor.pools.npy import NpyRows
from tailor.pools.npz import open_npz


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
        self._rows: Any = data
        named_options = {"labels": labels, "array": array}
        self._options = {name: value for name, value in named_options.items() if value is not None}
        self._has_own_ids = ids is not None
        if isinstance(data, (str, os.PathLike)):
            self._path = Path(data).absolute()
            if not self._path.is_file():
                raise InputError(f"no file at {self._path}: give an existing .npy or .npz file")
            if self._path.suffix.lower() == ".npz":
                self._rows, ids, labels = open_npz(self._path, array, ids, labels)
            else:
                self._rows = NpyRows(self._path)
            if isinstance(labels, (str, os.PathLike)):
                labels = NpyRows(Path(labels)).all()
        elif not isinstance(data, np.ndarray):
            raise InputError(f"{type(data).__name__} is not an array: give a numpy array or a path")
        self.kind = _kind(self._rows.shape, self._rows.dtype)
        size = self._rows.shape[0]
        self._ids = [str(example_id) for example_id in (range(size) if ids is None else ids)]
        if len(self._ids) != size:
            raise InputError(f"{len(self._ids)} ids for {size} rows: give one id a row")
        check_unique(self._ids)
        self._labels = None if labels is None else np.asarray(labels)
        if self._labels is not None and len(self._labels) != size:
            raise InputError(f"{len(self._labels)} labels for {size} rows: give one label a row")

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def read(self, positions: Sequence[int]) -> list[np.ndarray | Unreadable]:
        checked = check_positions(positions, len(self))
        if isinstance(self._rows, NpyRows):
            rows = self._rows.rows(checked)
        else:
            rows = [self._rows[position] for position in checked]
        to_example = convert.vector if self.kind == "vector" else pixels
        return [row if isinstance(row, Unreadable) else to_example(row) for row in rows]

    def content_keys(self, positions: Sequence[int]) -> list[str] | None:
        checked = check_positions(positions, len(self))
        if self._path is None:
            return None  # an array in memory may be changed in place
        try:
            status = os.stat(self._path)
        except OSError:
            return [f"{self._path}|missing|{position}" for position in checked]
        array = self._options.get("array", "")
        version = f"{self._path}|{array}|{status.st_size}|{status.st_mtime_ns}"
        return [f"{version}|{position}" for position in checked]

    def refresh(self) -> int:
        if self._path is None or self._path.suffix.lower() == ".npz" or self._has_own_ids:
            return 0
        try:
            current = NpyRows(self._path)
        except InputError:
            return 0  # gone, or being written: what is known stays
        if current.shape[1:] != self._rows.shape[1:] or current.dtype != self._rows.dtype:
            return 0
        known = len(self._ids)
        added = max(0, current.shape[0] - known)
        self._rows = current
        self._ids.extend(str(row) for row in range(known, known + added))
        return added

    def labels(self) -> dict[str, Any] | None:
        if self._labels is None:
            return None
        if self._labels.ndim == 2:
            return {
                example_id: [str(index) for index in np.flatnonzero(row)]
                for example_id, row in zip(self._ids, self._labels)
            }
        return convert.labels_by_id(self._ids, self._labels.tolist(), None)

    def describe(self) -> dict[str, Any]:
        are_plain = all(isinstance(value, (str, os.PathLike)) for value in self._options.values())
        if self._path is None or self._has_own_ids or not are_plain:
            raise InputError(
                "arrays in memory can't be opened by name: hand them in again, or save them as "
                ".npz with the arrays 'x', 'ids' and 'labels' and give its path"
            )
        options = {name: os.fspath(value) for name, value in self._options.items()}
        return {"kind": "arrays", "path": str(self._path), **options}


def _kind(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    """ "vector" or "image", by shape and dtype; InputError for any other array."""
    if not shape or shape[0] == 0:
        raise InputError(f"an array of shape {shape} has no rows: give at least one example")
    is_numeric = np.issubdtype(dtype, np.number) or dtype.kind == "b"
    if len(shape) == 2 and shape[1] > 0 and is_numeric:
        if np.issubdtype(dtype, np.complexfloating):
            raise InputError(f"vectors of dtype {dtype}: give real numbers")
        return "vector"
    has_image_shape = len(shape) == 3 or (len(shape) == 4 and shape[3] in (1, 3))
    if has_image_shape and dtype == np.uint8 and all(shape):
        return "image"
    raise InputError(
        f"an array of shape {shape} and dtype {dtype}: give vectors (N, d) of numbers, or uint8 "
        "images (N, H, W) or (N, H, W, 3), channels last"
    )
