"""Where labels change along a line, without sorting it: the fewer ones are sorted, the others only
find their place.
"""

from __future__ import annotations

import numpy as np

from tailor.common.compiled import njit
from tailor.strategies.galaxy.line_segment import LineSegment, Ranges


@njit(cache=True, nogil=True, inline="always")
def _is_below(
    low_key,
    low_prob,
    low_ties,
    key,
    prob,
    ties,
):
    """Whether an example stands below another on the line: as line_order."""
    if low_key != key:
        return low_key < key
    if low_prob != prob:
        return low_prob < prob
    return low_ties < ties


@njit(cache=True, nogil=True)
def _gaps(
    key,
    prob,
    ties,
    is_few,
    few_key,
    few_prob,
    few_ties,
):
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
        # A binary search: how many of the few stand below is the number of the gap.
        gap = 0
        last = len(few_key)
        while gap < last:
            middle = (gap + last) >> 1
            below = _is_below(
                few_key[middle],
                few_prob[middle],
                few_ties[middle],
                current_key,
                prob[i],
                ties[i],
            )
            if below:
                gap = middle + 1
            else:
                last = middle
        lowest[gap] = min(lowest[gap], current_key)
        highest[gap] = max(highest[gap], current_key)
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
    is_filled = lowest <= highest
    # Each of the few has two neighbours: the highest of the gap below it, then the lowest of the
    # gap above it. A gap that is empty has none: another of the few follows, with the same label.
    low = _in_turn(highest[:-1], few.key)
    high = _in_turn(few.key, lowest[1:])
    has_neighbour = _in_turn(is_filled[:-1], is_filled[1:])
    return low[has_neighbour], high[has_neighbour]


def _in_turn(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(n,), (n,) -> (2n,): one of each in turn."""
    pairs = np.stack([first, second], 1)
    return pairs.ravel()
