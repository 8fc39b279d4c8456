"""Any torch map-style Dataset."""

from __future__ import annotations

from collections.abc import Sequence
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
)
from tailor.pools.image_decoding import pixels, to_rgb

#: Items that are looked at to find out what kind they are and whether they have labels.
_ITEMS_TRIED = 16


class TorchDataset(Pool):
    """Items of a Dataset: a tensor, an array, a PIL image or a text; or a tuple of that and its
    label.

    Arrays of one dimension are vectors. Images may be (H, W), (H, W, C) or (C, H, W), uint8 or
    floats from 0 to 1: give a dataset whose transform does not normalise. An item that raises an
    error is Unreadable.

    dataset  any object with `__len__` and items by index
    ids      one id an item; else row numbers as text
    classes  names of the classes, for labels that are numbers; else `dataset.classes` where it is

    Raises InputError where the dataset is empty, is no map-style dataset, or has no item among the
    first that can be used.

    Cost: that of the dataset's items; each is read again to find its cached features.

    When to use: you have a map-style Dataset already. It can't be named in tailor.toml: hand it in
    from Python.

    >>> pool = TorchDataset([("good", 1), ("bad", 0)], classes=["no", "yes"])
    >>> pool.kind, pool.read([0]), pool.labels()
    ('text', ['good'], {'0': 'yes', '1': 'no'})
    """

    def __init__(
        self,
        dataset: Any,
        *,
        ids: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
    ) -> None:
        type_name = type(dataset).__name__
        if not _is_sequence(dataset):
            raise InputError(
                f"{type_name} has no length or no items by index: give a map-style Dataset"
            )
        size = len(dataset)
        if size == 0:
            raise InputError(f"{type_name} is empty: give at least one example")
        self.dataset = dataset
        self._has_own_ids = ids is not None
        self._ids = ids_or_row_numbers(ids, size)
        if classes is None:
            classes = getattr(dataset, "classes", None)  # as torchvision's datasets have it
        self.classes: list[str] | None = None
        if classes is not None:
            self.classes = list(map(str, classes))
        self._vector_length: int | None = None
        self.kind = self._first_kind()

    def _first_kind(self) -> str:
        first_reason = ""
        for position in self._first_positions():
            kind, example = self._example(position)
            if isinstance(example, Unreadable):
                first_reason = first_reason or example.reason
                continue
            if kind == "vector":
                self._vector_length = len(example)
            return kind
        type_name = type(self.dataset).__name__
        raise InputError(f"none of the first items of {type_name} can be used: {first_reason}")

    def _first_positions(self) -> range:
        count = min(_ITEMS_TRIED, len(self._ids))
        return range(count)

    @property
    def ids(self) -> Sequence[str]:
        return self._ids

    def read(self, positions: Sequence[int]) -> list[Any]:
        checked = check_positions(positions, len(self._ids))
        return [self._read(position) for position in checked]

    def _read(self, position: int) -> Any:
        kind, example = self._example(position)
        if isinstance(example, Unreadable):
            return example
        if kind != self.kind:
            return Unreadable(f"{kind} among items of kind {self.kind}")
        return example

    def _example(self, position: int) -> tuple[str, Any]:
        """The kind of an item and the example in it."""
        if position >= len(self.dataset):
            return "", Unreadable("missing")
        try:
            item = self.dataset[position]
        except Exception as problem:  # the dataset's own code: anything may come
            type_name = type(problem).__name__
            return "", Unreadable(f"{type_name}: {problem}")
        if _is_tuple_of_parts(item):
            item = item[0]
        return to_example(item, self._vector_length)

    def refresh(self) -> int:
        if self._has_own_ids:
            return 0
        size_before = len(self._ids)
        added = max(0, len(self.dataset) - size_before)
        new_ids = row_numbers(size_before, added)
        self._ids.extend(new_ids)
        return added

    def labels(self) -> dict[str, Any] | None:
        """From the dataset's `targets`, `labels` or second tensor where it has them, without
        loading the examples; else from its items.
        """
        stored = self._stored_labels()
        # Loading every item for its label may take hours: not done where the first have none.
        if stored is None and not self._first_have_labels():
            return None
        labels = {}
        for position, example_id in enumerate(self._ids):
            if stored is None:
                value = self._item_label(position)
            else:
                value = stored[position]
            plain_value = _plain_label(value)
            name = convert.label(plain_value, self.classes)
            if name is not None:
                labels[example_id] = name
        return labels or None

    def _first_have_labels(self) -> bool:
        positions = self._first_positions()
        return any(self._item_label(position) is not None for position in positions)

    def _stored_labels(self) -> Any:
        """All labels at once, as torchvision's datasets and TensorDataset hold them; else None."""
        candidates: list[Any] = [
            getattr(self.dataset, "targets", None),
            getattr(self.dataset, "labels", None),
        ]
        tensors = getattr(self.dataset, "tensors", None)
        if isinstance(tensors, (tuple, list)):
            # The first of a TensorDataset holds the examples.
            candidates.extend(tensors[1:2])
        size = len(self._ids)
        for candidate in candidates:
            # Such an attribute may be anything; labels are one an item.
            if not _is_sequence(candidate):
                continue
            if len(candidate) == size:
                return candidate
        return None

    def _item_label(self, position: int) -> Any:
        try:
            item = self.dataset[position]
        except Exception:  # Unreadable when it is read; no label here
            return None
        if _is_tuple_of_parts(item) and len(item) > 1:
            return item[1]
        return None


def _is_sequence(value: Any) -> bool:
    has_items = hasattr(value, "__getitem__")
    return has_items and hasattr(value, "__len__")


def to_example(item: Any, vector_length: int | None = None) -> tuple[str, Any]:
    """A tensor, array, PIL image, list of numbers or text -> its kind ("" where it has none), and
    the example or Unreadable that `Pool.read` gives.
    """
    if isinstance(item, str):
        return "text", convert.text(item)
    # Told by their methods: PIL and torch are not imported for datasets that use neither.
    if hasattr(item, "convert") and hasattr(item, "getexif"):
        try:
            return "image", to_rgb(item)
        except Exception as problem:  # a lazily opened file may be broken
            return "image", Unreadable(f"broken image: {problem}")
    if hasattr(item, "numpy") and hasattr(item, "detach"):
        item = _tensor_values(item)
    if isinstance(item, (tuple, list)):
        return "vector", convert.vector(item, vector_length)
    if isinstance(item, np.ndarray):
        if item.ndim == 1:
            return "vector", convert.vector(item, vector_length)
        return "image", pixels(item)
    if item is None:
        return "", Unreadable("missing")
    type_name = type(item).__name__
    return "", Unreadable(
        f"an item of type {type_name}: give a tensor, an array, a PIL image or a text"
    )


def _tensor_values(tensor: Any) -> np.ndarray:
    on_cpu = tensor.detach().cpu()
    if on_cpu.is_floating_point():
        # numpy knows no bfloat16.
        on_cpu = on_cpu.float()
    values: np.ndarray = on_cpu.numpy()
    return values


def _plain_label(value: Any) -> Any:
    """A label as `convert.label` takes it. An array of 0 and 1 becomes the indices of its ones."""
    if hasattr(value, "numpy"):
        value = value.detach().cpu().numpy()
    if not isinstance(value, np.ndarray):
        return value
    if value.ndim == 0:
        return value.item()
    if value.ndim == 1:
        class_indices = np.flatnonzero(value)
        return class_indices.tolist()
    return value


def _is_tuple_of_parts(item: Any) -> bool:
    """Whether an item is (example, label, ...) and not a plain list of numbers."""
    if not isinstance(item, (tuple, list)):
        return False
    if not item:
        return False
    is_number = isinstance(item[0], (int, float, np.number))
    return not is_number
