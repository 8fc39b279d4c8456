"""The lists of candidates that could cover each reference better, compiled. CoverSearch is the
class around it.

The lists are four arrays: (begins (R,), ends (R,), candidates (p,), values (p,)); those of a
reference stand from its begin to its end, each with a value above the reference's cover.
"""

from __future__ import annotations

import numpy as np

from tailor.common.compiled import njit


@njit(cache=True, nogil=True)
def group_by_reference(
    rows,
    references,
    values,
    count,
):
    """Pairs (p,) of candidates and references, in any order -> the lists of `count` references."""
    sizes = np.zeros(count, np.int64)
    for reference in references:
        sizes[reference] += 1
    begins = np.cumsum(sizes) - sizes
    pairs = len(rows)
    candidates = np.empty(pairs, np.int32)
    grouped = np.empty(pairs, np.int32)
    # Each list grows from its begin on, and in the end has reached the next one's.
    ends = begins.copy()
    for pair in range(pairs):
        reference = references[pair]
        place = ends[reference]
        candidates[place] = rows[pair]
        grouped[place] = values[pair]
        ends[reference] += 1
    return (
        begins,
        ends,
        candidates,
        grouped,
    )


@njit(cache=True, nogil=True)
def cover_references(
    references,
    values,
    covered,
    weights,
    lists,
    gains,
):
    """Raise the cover of references (n,) to values (n,) where that is higher, and take from every
    candidate's gain what it would have added to that. Who adds nothing any more leaves the list.
    """
    begins, ends, candidates, kept_values = lists
    for number in range(len(references)):
        reference = references[number]
        value = values[number]
        before = covered[reference]
        if value <= before:
            continue
        covered[reference] = value
        weight = weights[reference]
        kept = begins[reference]
        for place in range(begins[reference], ends[reference]):
            candidate = candidates[place]
            candidate_value = kept_values[place]
            # A gain of -1 says that the candidate is taken.
            if gains[candidate] >= 0:
                lost = min(candidate_value, value) - before
                gains[candidate] -= weight * lost
            if candidate_value > value:
                # Moved up in the list, over those that have left it.
                candidates[kept] = candidate
                kept_values[kept] = candidate_value
                kept += 1
        ends[reference] = kept
