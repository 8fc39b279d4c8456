"""Columns of a table that grows: one array a column, one value a row."""

from __future__ import annotations

import numpy as np


def extended(column: np.ndarray, count: int, value: float) -> np.ndarray:
    """(n,) -> (n + count,): the column with `count` more rows that hold the value.

    >>> extended(np.array([4, 5]), 2, -1)
    array([ 4,  5, -1, -1])
    """
    # Of the column's type: a value of another would widen the whole column.
    new_rows = np.full(count, value, column.dtype)
    return np.concatenate([column, new_rows])
