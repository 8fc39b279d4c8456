"""Which examples lie in an open stretch of which class's line: one compiled pass over the rows for all classes."""

from __future__ import annotations

import numpy as np
from numba import njit, prange


@njit(cache=True, nogil=True, inline="always")
def _score(p, row_max, i):  # type: ignore[no-untyped-def]
    """As galaxy's line_key: p - max p, or p where that is 0; without row_max, p."""
    if len(row_max) > 0 and p < row_max[i]:
        return p - row_max[i]
    return p


@njit(cache=True, nogil=True)
def _within(score, lows, highs, first, last):  # type: ignore[no-untyped-def]
    """Whether the score lies in one of the ranges first to last, ends included."""
    while first < last:  # the last range that begins at or below the score
        middle = (first + last + 1) >> 1
        if lows[middle] <= score:
            first = middle
        else:
            last = middle - 1
    return score <= highs[first]


@njit(cache=True, nogil=True, parallel=True)
def find_hits(probs, row_max, classes, bottoms, tops, starts, lows, highs):  # type: ignore[no-untyped-def]
    """(rows (h,), which (h,), scores (h,)): rows[t] lies in a stretch of classes[which[t]].

    probs (n, K). row_max (n,), or empty in a multi-label task. classes (c,) with the ends of all their stretches,
    bottoms (c,) and tops (c,). Stretches of class j: lows and highs from starts[j] to starts[j + 1], ascending.
    """
    counts = np.zeros(len(probs) + 1, np.int64)
    for i in prange(len(probs)):
        count = 0
        for j in range(len(classes)):
            score = _score(probs[i, classes[j]], row_max, i)
            if bottoms[j] <= score <= tops[j] and _within(score, lows, highs, starts[j], starts[j + 1] - 1):
                count += 1
        counts[i + 1] = count
    ends = np.cumsum(counts)
    rows, which = np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64)
    scores = np.empty(ends[-1], probs.dtype)
    for i in prange(len(probs)):
        at = ends[i]
        if counts[i + 1] == 0:
            continue
        for j in range(len(classes)):
            score = _score(probs[i, classes[j]], row_max, i)
            if bottoms[j] <= score <= tops[j] and _within(score, lows, highs, starts[j], starts[j + 1] - 1):
                rows[at], which[at], scores[at] = i, j, score
                at += 1
    return rows, which, scores
