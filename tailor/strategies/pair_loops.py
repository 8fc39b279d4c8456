"""Distances of single pairs of rows, compiled. pair_distances() in feature_kernel is the function
around it.
"""

from __future__ import annotations

import numpy as np

from tailor.common.compiled import njit


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def squared_pair_distances(
    points,
    centres,
    rows,
    columns,
):
    """(p,) float64: points[rows] from centres[columns], both (n, d) float64 and contiguous."""
    width = points.shape[1]
    squared = np.empty(len(rows), np.float64)
    for pair in range(len(rows)):
        row = rows[pair]
        column = columns[pair]
        total = 0.0
        for feature in range(width):
            difference = points[row, feature] - centres[column, feature]
            total += difference * difference
        squared[pair] = total
    return squared
