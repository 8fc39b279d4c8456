"""From stored vectors, texts and labels to what `Pool.read` and `Pool.labels` give."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Unreadable


def vector(value: Any, length: int | None = None) -> np.ndarray | Unreadable:
    """A list or array of numbers -> float32 (d,).

    Unreadable where it is missing, empty, not finite, or not of this length.
    """
    if value is None:
        return Unreadable("missing")
    try:
        # What is too large becomes infinite, which is told below.
        with np.errstate(over="ignore"):
            array = np.array(value, dtype=np.float32)
    except (TypeError, ValueError):
        return Unreadable("vector with a missing value, or one that is no number")
    if array.size == 0:
        return Unreadable("empty")
    if array.ndim != 1:
        return Unreadable(f"vector of shape {array.shape}: give (d,)")
    own_length = len(array)
    if length is not None and own_length != length:
        return Unreadable(f"vector of length {own_length}: the others have {length}")
    is_finite = np.isfinite(array)
    if not is_finite.all():
        return Unreadable("vector with a value that is not finite, or too large for float32")
    return array


def first_vector_length(values: Iterable[Any]) -> int | None:
    """The length of the first readable vector; None where there is none."""
    for value in values:
        array = vector(value)
        if not isinstance(array, Unreadable):
            return len(array)
    return None


def text(value: Any) -> str | Unreadable:
    """The text itself; Unreadable where it is missing, blank or no text."""
    if value is None:
        return Unreadable("missing")
    if not isinstance(value, str):
        type_name = type(value).__name__
        return Unreadable(f"not text but {type_name}")
    if not value.strip():
        return Unreadable("empty")
    return value


def key_ids(values: Iterable[Any], file_name: str = "") -> tuple[list[str], list[int]]:
    """The values of a key column as ids, and the rows that have none: their id says which row it
    is.

    >>> key_ids(["a", None])
    (['a', 'row 1'], [1])
    """
    place = ""
    if file_name:
        place = f" of {file_name}"
    ids = []
    keyless_rows = []
    for row, value in enumerate(values):
        if value is None or value == "":
            keyless_rows.append(row)
            value = f"row {row}{place}"
        ids.append(str(value))
    return ids, keyless_rows


def label(value: Any, class_names: Sequence[str] | None) -> Any:
    """A stored label (name, class index, or several of them) -> a class name, or a list of names.

    None where there is no label: null, an empty text, or -1 where classes are named. Without
    class_names a number becomes its text. Raises InputError for an index outside class_names and
    for values of other types.
    """
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, str):
        return value or None
    is_bytes = isinstance(value, bytes)
    if isinstance(value, Iterable) and not is_bytes:
        return _several_labels(value, class_names)
    # Before the whole numbers: to Python, True is one of them.
    if isinstance(value, (bool, np.bool_)):
        return _truth_name(bool(value), class_names)
    if isinstance(value, (float, np.floating)):
        return _float_label(float(value), value, class_names)
    if isinstance(value, (int, np.integer)):
        return _class_name(int(value), class_names)
    type_name = type(value).__name__
    raise InputError(f"label {value!r} is a {type_name}: labels are class names or whole numbers")


def _several_labels(values: Iterable[Any], class_names: Sequence[str] | None) -> list[Any]:
    names = []
    for value in values:
        name = label(value, class_names)
        if name is not None:
            names.append(name)
    return names


def _truth_name(value: bool, class_names: Sequence[str] | None) -> str:
    if class_names is not None:
        return class_names[value]
    if value:
        return "true"
    return "false"


def _float_label(number: float, stored: Any, class_names: Sequence[str] | None) -> str | None:
    """A column of whole numbers with gaps is often stored as floats, NaN in the gaps.

    stored  the number as it was, whose type decides how it is written
    """
    if np.isnan(number):
        return None
    if not number.is_integer():
        return str(stored)
    return _class_name(int(number), class_names)


def _class_name(index: int, class_names: Sequence[str] | None) -> str | None:
    if class_names is None:
        return str(index)
    if index == -1:  # how datasets mark a missing label
        return None
    count = len(class_names)
    if not 0 <= index < count:
        raise InputError(
            f"label {index} is outside 0 .. {count - 1}: {count} class names are given"
        )
    return class_names[index]


def label_cell(cell: Any, separator: str | None) -> Any:
    """A cell of a text file -> a class name, or a list of names; None where it is empty.

    separator  splits a text into several labels. A JSON list gives several too.

    >>> label_cell("cat|dog", "|"), label_cell('["cat"]', None), label_cell("", None)
    (['cat', 'dog'], ['cat'], None)
    """
    if not isinstance(cell, str):
        return label(cell, None)
    cell = cell.strip()
    if cell.startswith("["):
        try:
            names = json.loads(cell)
        except ValueError:
            pass  # a class may be called "[unknown]"
        else:
            return label(names, None)
    if cell and separator is not None:
        parts = cell.split(separator)
        names = [part.strip() for part in parts]
        return label(names, None)
    return label(cell, None)


def labels_by_id(
    ids: Iterable[str], values: Iterable[Any], class_names: Sequence[str] | None
) -> dict[str, Any]:
    """Stored labels, one for each id, as `Pool.labels` gives them; ids without a label are left
    out.
    """
    labels = {}
    for example_id, value in zip(ids, values):
        name = label(value, class_names)
        if name is not None:
            labels[example_id] = name
    return labels
