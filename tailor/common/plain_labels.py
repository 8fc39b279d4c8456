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
    if entries and all(_is_row_of_numbers(entry) for entry in entries):
        return check_array(entries, "labels")
    return entries


def _in_order(table: Any, classes: Sequence[str]) -> Any:
    """The table with its columns in the order of the classes, where they are named after them."""
    names = list(table.columns)
    if names == list(range(len(names))):  # columns without a name
        return table
    if sorted(map(str, names)) != sorted(classes):
        raise InputError(
            f"labels have the columns {shown(names)}: name them after the classes, "
            f"{shown(list(classes))}"
        )
    column_of = {str(name): name for name in names}
    return table[[column_of[name] for name in classes]]


def _is_row_of_numbers(entry: Any) -> bool:
    if isinstance(entry, np.ndarray):
        return entry.ndim > 0 and entry.dtype.kind in "biufc"
    if hasattr(entry, "detach"):
        return bool(entry.ndim > 0)
    if not isinstance(entry, (list, tuple)) or not entry:
        return False
    return all(isinstance(value, (Number, np.bool_)) for value in entry)
