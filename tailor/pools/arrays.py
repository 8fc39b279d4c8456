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
from tailor.pools.npy import NpyRows, open_npz


class Arrays(Pool):
    """Rows of an array: vectors (N, d), grey images (N, H, W) or RGB images (N, H, W, 3), images as
    uint8.

    Given as an array (a memory map too) or as the path of a .npy or .npz file. A .npy file that
    gets longer grows the pool.

    ids     (N,) the ids; else row numbers as text, or the array `ids` of an .npz
    labels  (N,) classes, or (N, K) of 0 and 1; or the path of a .npy file; in an .npz the array's
            name, by itself `y`, `label` or `labels`
    array   which array of an .npz holds the examples; found when only one can be it
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
        self._options = {
            k: v for k, v in {"labels": labels, "array": array}.items() if v is not None
        }
        self._ids_given = ids is not None
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
        self._ids = [str(i) for i in range(size)] if ids is None else [str(i) for i in ids]
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
        raw = (
            self._rows.rows(checked)
            if isinstance(self._rows, NpyRows)
            else [self._rows[p] for p in checked]
        )
        turn = convert.vector if self.kind == "vector" else convert.pixels
        return [one if isinstance(one, Unreadable) else turn(one) for one in raw]

    def content_keys(self, positions: Sequence[int]) -> list[str] | None:
        checked = check_positions(positions, len(self))
        if self._path is None:
            return None  # an array in memory may be changed in place
        try:
            status = os.stat(self._path)
        except OSError:
            return [f"{self._path}|missing|{p}" for p in checked]
        array = self._options.get("array", "")
        return [f"{self._path}|{array}|{status.st_size}|{status.st_mtime_ns}|{p}" for p in checked]

    def refresh(self) -> int:
        if self._path is None or self._path.suffix.lower() == ".npz" or self._ids_given:
            return 0
        try:
            now = NpyRows(self._path)
        except InputError:
            return 0  # gone, or being written: what is known stays
        if now.shape[1:] != self._rows.shape[1:] or now.dtype != self._rows.dtype:
            return 0
        new = max(0, now.shape[0] - len(self._ids))
        self._rows = now
        self._ids.extend(str(i) for i in range(len(self._ids), len(self._ids) + new))
        return new

    def labels(self) -> dict[str, Any] | None:
        if self._labels is None:
            return None
        if self._labels.ndim == 2:
            return {
                one: [str(k) for k in np.flatnonzero(row)]
                for one, row in zip(self._ids, self._labels)
            }
        named = (
            (one, convert.label(value, None))
            for one, value in zip(self._ids, self._labels.tolist())
        )
        return {one: value for one, value in named if value is not None}

    def describe(self) -> dict[str, Any]:
        plain = all(isinstance(v, (str, os.PathLike)) for v in self._options.values())
        if self._path is None or self._ids_given or not plain:
            raise InputError(
                "arrays in memory can't be opened by name: hand them in again, or save them as "
                ".npz with the arrays "
                "'x', 'ids' and 'labels' and give its path"
            )
        return {"kind": "arrays", "path": str(self._path)} | {
            k: os.fspath(v) for k, v in self._options.items()
        }


def _kind(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    if not shape or shape[0] == 0:
        raise InputError(f"an array of shape {shape} has no rows: give at least one example")
    if len(shape) == 2 and shape[1] > 0 and (np.issubdtype(dtype, np.number) or dtype.kind == "b"):
        if np.issubdtype(dtype, np.complexfloating):
            raise InputError(f"vectors of dtype {dtype}: give real numbers")
        return "vector"
    image = (len(shape) == 3 or (len(shape) == 4 and shape[3] in (1, 3))) and dtype == np.uint8
    if image and all(shape):
        return "image"
    raise InputError(
        f"an array of shape {shape} and dtype {dtype}: give vectors (N, d) of numbers, or uint8 "
        "images (N, H, W) or "
        "(N, H, W, 3), channels last"
    )
