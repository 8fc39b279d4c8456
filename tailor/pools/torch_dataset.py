"""Any torch map-style Dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools import convert
from tailor.pools.base import Pool, Unreadable, check_positions, check_unique

#: So many entries are tried to learn what kind they are.
_TRIED = 16


class TorchDataset(Pool):
    """Items of a Dataset: a tensor, an array, a PIL image or a text; or a tuple of that and its
    label.

    Arrays of one dimension are vectors. Images may be (H, W), (H, W, C) or (C, H, W), uint8 or
    floats from 0 to 1: give a dataset whose transform does not normalise. An item that raises an
    error is Unreadable.

    ids      one a row; else row numbers as text
    classes  names of the classes, for labels that are numbers; by itself `dataset.classes`
    """

    def __init__(
        self,
        dataset: Any,
        *,
        ids: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
    ) -> None:
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise InputError(
                f"{type(dataset).__name__} has no length or no items by index: give a map-style "
                "Dataset"
            )
        self.dataset = dataset
        size = len(dataset)
        if size == 0:
            raise InputError(f"{type(dataset).__name__} is empty: give at least one example")
        self._ids = [str(i) for i in (range(size) if ids is None else ids)]
        self._ids_given = ids is not None
        if len(self._ids) != size:
            raise InputError(f"{len(self._ids)} ids for {size} items: give one id an item")
        check_unique(self._ids)
        names = getattr(dataset, "classes", None) if classes is None else classes
        self.classes = None if names is None else [str(n) for n in names]
        self._length: int | None = None
        self.kind = self._first_kind()

    def _first_kind(self) -> str:
        reason = ""
        for position in range(min(_TRIED, len(self._ids))):
            kind, example = self._example(position)
            if isinstance(example, Unreadable):
                reason = reason or example.reason
                continue
            self._length = len(example) if kind == "vector" else None
            return kind
        raise InputError(
            f"none of the first items of {type(self.dataset).__name__} can be used: {reason}"
        )

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def read(self, positions: Sequence[int]) -> list[Any]:
        return [self._read(p) for p in check_positions(positions, len(self._ids))]

    def _read(self, position: int) -> Any:
        kind, example = self._example(position)
        if kind != self.kind and not isinstance(example, Unreadable):
            return Unreadable(f"{kind} among items of kind {self.kind}")
        return example

    def _example(self, position: int) -> tuple[str, Any]:
        if position >= len(self.dataset):
            return "", Unreadable("missing")
        try:
            item = self.dataset[position]
        except Exception as problem:  # the dataset's own code: anything may come
            return "", Unreadable(f"{type(problem).__name__}: {problem}")
        if isinstance(item, (tuple, list)) and item and not _is_number(item[0]):
            item = item[0]
        return to_example(item, self._length)

    def refresh(self) -> int:
        new = 0 if self._ids_given else max(0, len(self.dataset) - len(self._ids))
        self._ids.extend(str(i) for i in range(len(self._ids), len(self._ids) + new))
        return new

    def labels(self) -> dict[str, Any] | None:
        """From the dataset's `targets`, `labels` or second tensor where it has them; else item by
        item.
        """
        known: dict[str, Any] = {}
        stored = self._stored()
        if stored is None and all(
            self._second(p) is None for p in range(min(_TRIED, len(self._ids)))
        ):
            return None
        for position, one in enumerate(self._ids):
            value = stored[position] if stored is not None else self._second(position)
            name = self._label(value)
            if name is not None:
                known[one] = name
        return known or None

    def _stored(self) -> Any:
        tensors = getattr(self.dataset, "tensors", None)
        choices = [getattr(self.dataset, "targets", None), getattr(self.dataset, "labels", None)]
        if isinstance(tensors, (tuple, list)) and len(tensors) > 1:
            choices.append(tensors[1])
        fitting: list[Any] = [
            c for c in choices if hasattr(c, "__getitem__") and hasattr(c, "__len__")
        ]
        return next((c for c in fitting if len(c) == len(self._ids)), None)

    def _second(self, position: int) -> Any:
        try:
            item = self.dataset[position]
        except Exception:  # Unreadable when it is read; no label here
            return None
        return (
            item[1]
            if isinstance(item, (tuple, list)) and len(item) > 1 and not _is_number(item[0])
            else None
        )

    def _label(self, value: Any) -> Any:
        if hasattr(value, "numpy"):
            value = value.detach().cpu().numpy()
        if isinstance(value, np.ndarray):
            value = (
                np.flatnonzero(value).tolist()
                if value.ndim == 1
                else value.item()
                if value.ndim == 0
                else value
            )
        return convert.label(value, self.classes)


def to_example(item: Any, length: int | None = None) -> tuple[str, Any]:
    """A tensor, array, PIL image, list of numbers or text -> its kind, and what `Pool.read` gives
    for it.
    """
    if isinstance(item, str):
        return "text", convert.text(item)
    if hasattr(item, "convert") and hasattr(item, "getexif"):
        try:
            return "image", convert.rgb(item)
        except Exception as problem:  # a lazily opened file may be broken
            return "image", Unreadable(f"broken image: {problem}")
    if hasattr(item, "numpy") and hasattr(item, "detach"):
        item = item.detach().cpu()
        item = (item.float() if item.is_floating_point() else item).numpy()
    if isinstance(item, (tuple, list)):
        return "vector", convert.vector(item, length)
    if isinstance(item, np.ndarray):
        return (
            ("vector", convert.vector(item, length))
            if item.ndim == 1
            else ("image", convert.pixels(item))
        )
    if item is None:
        return "", Unreadable("missing")
    return "", Unreadable(
        f"an item of type {type(item).__name__}: give a tensor, an array, a PIL image or a text"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))
