"""Which examples lie in an open stretch of which class's line: one compiled pass over the rows for
all classes.
"""

from __future__ import annotations

import numpy as np

from tailor.common.compiled import njit, prange
from tailor.strategies.galaxy.bit_set import bit_of

#: a class's scores fall into so many bins: most bins have no stretch in them, and in the others the
#: search is short
_BINS = 1024


@njit(cache=True, nogil=True, inline="always")
def _score(p, row_max, i):
    """As line_key: p - max p, or p where that is 0; without row_max, p."""
    if len(row_max) > 0:
        largest = row_max[i]
        if p < largest:
            return p - largest
    return p


@njit(cache=True, nogil=True, inline="always")
def _bin(score, bottom, scale):
    """Never falls where the score rises, rounding included: a score in a stretch lies in the bins
    between its ends.
    """
    bins_above = (score - bottom) * scale
    number = np.int64(bins_above)
    # The top itself would fall beyond the last bin.
    return min(number, _BINS - 1)


@njit(cache=True, nogil=True)
def _index(
    bottoms,
    tops,
    starts,
    lows,
    highs,
):
    """(bins a unit of the score (c,), bit sets of the bins that a stretch reaches into (c, BINS /
    64), the last stretch that begins before each bin, else the first (c, BINS + 1))
    """
    count = len(bottoms)
    scales = np.zeros_like(bottoms)
    reached = np.zeros((count, _BINS // 64), np.uint64)
    before = np.empty((count, _BINS + 1), np.int32)
    for j in range(count):
        bottom = bottoms[j]
        width = tops[j] - bottom
        if width > 1e-30:  # else all in one bin
            scales[j] = _BINS / width
        scale = scales[j]
        first_stretch = starts[j]
        end_stretch = starts[j + 1]
        next_bin = 0
        for stretch in range(first_stretch, end_stretch):
            first = _bin(lows[stretch], bottom, scale)
            last = _bin(highs[stretch], bottom, scale)
            for place in range(first, last + 1):
                word = place >> 6
                reached[j, word] |= bit_of(place)
            stretch_before = max(stretch - 1, first_stretch)
            while next_bin <= first:
                before[j, next_bin] = stretch_before
                next_bin += 1
        before[j, next_bin:] = end_stretch - 1
    return scales, reached, before


@njit(cache=True, nogil=True)
def _within(
    score,
    lows,
    highs,
    first,
    last,
):
    """Whether the score, not below the first range, lies in one of the ranges first to last, ends
    included.
    """
    while first < last:  # the last range that begins at or below the score
        middle = (first + last + 1) >> 1
        if lows[middle] <= score:
            first = middle
        else:
            last = middle - 1
    return score <= highs[first]


@njit(cache=True, nogil=True, parallel=True)
def find_hits(
    probs,
    row_max,
    classes,
    bottoms,
    tops,
    starts,
    lows,
    highs,
):
    """(rows (h,), which (h,), scores (h,)): rows[t] lies in a stretch of classes[which[t]].

    probs (n, K). row_max (n,), or empty in a multi-label task. classes (c,) with the ends of all
    their stretches, bottoms (c,) and tops (c,). Stretches of class j: lows and highs from starts[j]
    to starts[j + 1], ascending.
    """
    scales, reached, before = _index(
        bottoms,
        tops,
        starts,
        lows,
        highs,
    )
    unit = np.uint64(1)
    count = len(classes)
    words = -(-count // 64)
    hit = np.zeros((len(probs), words), np.uint64)  # a bit for each row and class
    counts = np.zeros(len(probs) + 1, np.int64)
    for i in prange(len(probs)):
        for word in range(words):
            hits = np.uint64(0)
            first_class = word << 6
            end_class = min(first_class + 64, count)
            for j in range(first_class, end_class):
                column = classes[j]
                p = probs[i, column]
                score = _score(p, row_max, i)
                # From the cheapest test to the dearest: most scores fail the first two.
                bottom = bottoms[j]
                if not bottom <= score <= tops[j]:
                    continue
                place = _bin(score, bottom, scales[j])
                bins = reached[j, place >> 6]
                if not bins & bit_of(place):
                    continue
                first = before[j, place]
                last = before[j, place + 1]
                is_hit = _within(
                    score,
                    lows,
                    highs,
                    first,
                    last,
                )
                if is_hit:
                    hits |= bit_of(j)
                    counts[i + 1] += 1
            hit[i, word] = hits
    # Rows are counted first, so that each knows where to write and all can write at once.
    ends = np.cumsum(counts)
    total = ends[-1]
    rows = np.empty(total, np.int64)
    which = np.empty(total, np.int64)
    scores = np.empty(total, probs.dtype)
    for i in prange(len(probs)):
        place = ends[i]
        for word in range(words):
            hits = hit[i, word]
            j = word << 6
            while hits != np.uint64(0):
                if hits & unit:
                    column = classes[j]
                    p = probs[i, column]
                    rows[place] = i
                    which[place] = j
                    scores[place] = _score(p, row_max, i)
                    place += 1
                hits >>= unit
                j += 1
    return rows, which, scores
