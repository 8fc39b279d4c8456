"""Where labels change along a line, without sorting it: the fewer ones are sorted, the others only
find their place.
"""

from __future__ import annotations

import numpy as np

from tailor.common.compiled import njit
from tailor.strategies.galaxy.line_segment import LineSegment, Ranges


@njit(cache=True, nogil=True)
def _gaps(key, prob, ties, is_few, few_key, few_prob, few_ties):
    """The lowest and the highest key of the many in each gap between the sorted few: (p + 1,), (p +
    1,); in an empty gap the lowest is above the highest.
    """
    gaps = len(few_key) + 1
    lowest = np.full(gaps, np.inf, key.dtype)
    highest = np.full(gaps, -np.inf, key.dtype)
    for i in range(len(key)):
        if is_few[i]:
            continue
        current_key = key[i]
        # how many of the few stand below
        first = 0
        last = len(few_key)
        while first < last:
            middle = (first + last) >> 1
            middle_key = few_key[middle]
            below = middle_key < current_key
            if middle_key == current_key:
                below = few_prob[middle] < prob[i]
                if few_prob[middle] == prob[i]:
                    below = few_ties[middle] < ties[i]
            if below:
                first = middle + 1
            else:
                last = middle
        lowest[first] = min(lowest[first], current_key)
        highest[first] = max(highest[first], current_key)
    return lowest, highest


def label_changes(known: LineSegment, labels: np.ndarray) -> Ranges:
    """The keys of neighbours whose labels (n,), 0 or 1, differ, lowest first. The examples come in
    any order.
    """
    positives = np.count_nonzero(labels)
    # True, or 1, where at most half are positive. Only the rarer ones are sorted.
    rarer_label = 2 * positives <= len(labels)
    is_few = labels == rarer_label
    few_rows = np.flatnonzero(is_few)
    few = known[few_rows].sorted()
    lowest, highest = _gaps(
        known.key,
        known.prob,
        known.ties,
        is_few,
        few.key,
        few.prob,
        few.ties,
    )
    # One of the few, then the lowest of the gap above it; the highest of a gap, then one of the
    # few.
    low = np.stack([highest[:-1], few.key], 1).ravel()
    high = np.stack([few.key, lowest[1:]], 1).ravel()
    is_filled = lowest <= highest
    has_neighbour = np.stack([is_filled[:-1], is_filled[1:]], 1).ravel()
    return low[has_neighbour], high[has_neighbour]
