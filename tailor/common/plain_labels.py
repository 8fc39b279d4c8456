"""Labels as other libraries hold them (pandas, torch, NumPy), made plain, without importing those
libraries.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from tailor.common.checks import check_array, check_list, shown
from tailor.errors import InputError


def plain_labels(labels: Any, classes: Sequence[str]) -> np.ndarray | list[Any]:
    """Labels in any container -> a NumPy array, or a list where its entries are no numbers.

    labels   a list, an array, a torch tensor, a pandas Series or DataFrame
    classes  the class names, in order; the columns of a table that are named after them are put
             into this order

    A list whose entries are all rows of numbers becomes an array (n, columns). Raises InputError
    for what is no collection, and for a table whose columns have other names.
    """
    if hasattr(labels, "columns"):
        labels = _in_order(labels, classes)
    if hasattr(labels, "to_numpy"):
        return np.asarray(labels.to_numpy())
    if isinstance(labels, np.ndarray) or hasattr(labels, "detach"):
        return check_array(labels, "labels")
    entries = check_list(labels, "labels", "labels, one an example,")
    if not entries:
        return entries
    for entry in entries:
        if not _is_row_of_numbers(entry):
            return entries
    return check_array(entries, "labels")


def _in_order(table: Any, classes: Sequence[str]) -> Any:
    """The table with its columns in the order of the classes, where they are named after them."""
    names = list(table.columns)
    numbers = list(range(len(names)))
    # Columns without a name are numbered, and taken as they stand.
    if names == numbers:
        return table
    # A column may be called 1 where the class is called "1".
    names_as_text = [str(name) for name in names]
    if sorted(names_as_text) != sorted(classes):
        listed_names = shown(names)
        listed_classes = shown(list(classes))
        raise InputError(
            f"labels have the columns {listed_names}: name them after the classes, {listed_classes}"
        )
    column_of = dict(zip(names_as_text, names))
    in_order = [column_of[name] for name in classes]
    return table[in_order]


def _is_row_of_numbers(entry: Any) -> bool:
    if isinstance(entry, np.ndarray):
        return entry.ndim > 0 and entry.dtype.kind in "biufc"
    if hasattr(entry, "detach"):
        return bool(entry.ndim > 0)
    if not isinstance(entry, (list, tuple)):
        return False
    for value in entry:
        if not isinstance(value, (Number, np.bool_)):
            return False
    # An empty list is a multi-label answer: none of the classes.
    return len(entry) > 0
