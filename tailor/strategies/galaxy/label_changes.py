"""Where labels change along a line, without sorting it: the fewer ones are sorted, the others only
find their place.
"""

from __future__ import annotations

import numpy as np

from tailor.common.compiled import njit
from tailor.strategies.galaxy.line_segment import LineSegment, Ranges


@njit(cache=True, nogil=True)
def _gaps(key, second, ties, few, fews_key, fews_second, fews_ties):  # type: ignore[no-untyped-def]
    """The lowest and the highest key of the many in each gap between the sorted few: (p + 1,), (p +
    1,); in an empty gap the lowest is above the highest.
    """
    lowest = np.full(len(fews_key) + 1, np.inf, key.dtype)
    highest = np.full(len(fews_key) + 1, -np.inf, key.dtype)
    for i in range(len(key)):
        if few[i]:
            continue
        # how many of the few stand below
        first = 0
        last = len(fews_key)
        while first < last:
            middle = (first + last) >> 1
            below = fews_key[middle] < key[i]
            if fews_key[middle] == key[i]:
                below = fews_second[middle] < second[i]
                if fews_second[middle] == second[i]:
                    below = fews_ties[middle] < ties[i]
            if below:
                first = middle + 1
            else:
                last = middle
        lowest[first] = min(lowest[first], key[i])
        highest[first] = max(highest[first], key[i])
    return lowest, highest


def changes(known: LineSegment, labels: np.ndarray) -> Ranges:
    """The keys of neighbours whose labels (n,), 0 or 1, differ, lowest first. The examples come in
    any order.
    """
    few = labels == (2 * np.count_nonzero(labels) <= len(labels))
    sparse = known[np.flatnonzero(few)].sorted()
    lowest, highest = _gaps(
        known.key, known.second, known.ties, few, sparse.key, sparse.second, sparse.ties
    )
    # One of the few, then the lowest of the gap above it; the highest of a gap, then one of the
    # few.
    low = np.stack([highest[:-1], sparse.key], 1).ravel()
    high = np.stack([sparse.key, lowest[1:]], 1).ravel()
    full = lowest <= highest
    there = np.stack([full[:-1], full[1:]], 1).ravel()
    return low[there], high[there]
