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
    begins = np.zeros(count + 1, np.int64)
    for reference in references:
        begins[reference + 1] += 1
    for reference in range(count):
        begins[reference + 1] += begins[reference]
    ends = begins[:-1].copy()
    candidates = np.empty(len(rows), np.int32)
    grouped = np.empty(len(rows), np.int32)
    for pair in range(len(rows)):
        place = ends[references[pair]]
        candidates[place] = rows[pair]
        grouped[place] = values[pair]
        ends[references[pair]] += 1
    return begins[:-1].copy(), ends, candidates, grouped


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
            own = kept_values[place]
            if gains[candidate] >= 0:  # -1: it is taken
                gains[candidate] -= weight * (min(own, value) - before)
            if own > value:
                candidates[kept] = candidate
                kept_values[kept] = own
                kept += 1
        ends[reference] = kept
