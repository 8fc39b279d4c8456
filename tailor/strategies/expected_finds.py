"""What a pick leads to in active search, compiled. Ens is the class around it.

The model of a class: an example with n known neighbours, m of which are in the class, is in it with
probability (prior + m) / (1 + n). Neighbours are kept the other way round, too: those who count an
example among their neighbours stand from starts[example] to starts[example + 1] in `counted_by`.
"""

from __future__ import annotations

import numpy as np

from tailor.common.compiled import njit


@njit(cache=True, nogil=True)
def upper_bounds(
    probs,
    positives,
    known,
    free,
    prior,
    threshold,
    total,
    graph,
):
    """(C,) float64: no score is larger; -inf for what is not free.

    A sum of the `ahead` largest is at most ahead * t plus what is above t, for any t, and exactly
    that for the `ahead`-th largest. So with t = `threshold`, the one of today, and `total`, the sum
    of today, each neighbour changes the bound by how far it moves above t, on its own.

    probs, positives, known, free  (C,) of each candidate
    """
    starts, counted_by = graph
    bounds = np.full(len(probs), -np.inf)
    for candidate in range(len(probs)):
        if not free[candidate]:
            continue
        if_positive = 0.0
        if_negative = 0.0
        for place in range(starts[candidate], starts[candidate + 1]):
            other = counted_by[place]
            if not free[other]:
                continue
            before = max(probs[other], threshold)
            lower = (prior + positives[other]) / (2.0 + known[other])
            higher = (prior + positives[other] + 1.0) / (2.0 + known[other])
            if_positive += max(higher, threshold) - before
            if_negative += max(lower, threshold) - before
        own = probs[candidate]
        # The example itself is no longer there to be found.
        left = total - (max(own, threshold) - threshold)
        expected = own * if_positive + (1.0 - own) * if_negative
        bounds[candidate] = own + left + expected
    return bounds


@njit(cache=True, nogil=True)
def exact_scores(
    candidates,
    probs,
    positives,
    known,
    free,
    prior,
    ahead,
    order,
    graph,
):
    """(n,) float64 of candidates (n,), all free: p + the expected sum of the `ahead` largest
    probabilities once its label is known.

    order  the free ones by probability, the largest first
    """
    starts, counted_by = graph
    scores = np.empty(len(candidates))
    is_changed = np.zeros(len(probs), np.bool_)
    for number in range(len(candidates)):
        candidate = candidates[number]
        begin = starts[candidate]
        end = starts[candidate + 1]
        lower = np.empty(end - begin)
        higher = np.empty(end - begin)
        count = 0
        is_changed[candidate] = True
        for place in range(begin, end):
            other = counted_by[place]
            if free[other]:
                is_changed[other] = True
                lower[count] = (prior + positives[other]) / (2.0 + known[other])
                higher[count] = (prior + positives[other] + 1.0) / (2.0 + known[other])
                count += 1
        own = probs[candidate]
        if_positive = _largest_sum(higher[:count], probs, is_changed, order, ahead)
        if_negative = _largest_sum(lower[:count], probs, is_changed, order, ahead)
        scores[number] = own + own * if_positive + (1.0 - own) * if_negative
        is_changed[candidate] = False
        for place in range(begin, end):
            is_changed[counted_by[place]] = False
    return scores


@njit(cache=True, nogil=True)
def _largest_sum(
    changed,
    probs,
    is_changed,
    order,
    ahead,
):
    """The sum of the `ahead` largest of changed (c,) and of the probabilities that did not
    change.
    """
    ascending = np.sort(changed)
    next_changed = len(ascending) - 1
    place = 0
    total = 0.0
    for _ in range(ahead):
        while place < len(order) and is_changed[order[place]]:
            place += 1
        has_unchanged = place < len(order)
        if next_changed < 0 and not has_unchanged:
            break
        takes_changed = next_changed >= 0
        if takes_changed and has_unchanged:
            takes_changed = ascending[next_changed] >= probs[order[place]]
        if takes_changed:
            total += ascending[next_changed]
            next_changed -= 1
        else:
            total += probs[order[place]]
            place += 1
    return total


@njit(cache=True, nogil=True)
def group_by_neighbour(neighbours, nodes):
    """neighbours (C, k) int32, nodes of each candidate -> (starts (nodes + 1,), counted_by): the
    candidates that count each node among their neighbours.
    """
    candidates, width = neighbours.shape
    starts = np.zeros(nodes + 1, np.int64)
    for candidate in range(candidates):
        for column in range(width):
            starts[neighbours[candidate, column] + 1] += 1
    starts = np.cumsum(starts)
    ends = starts[:-1].copy()
    counted_by = np.empty(candidates * width, np.int32)
    for candidate in range(candidates):
        for column in range(width):
            node = neighbours[candidate, column]
            counted_by[ends[node]] = candidate
            ends[node] += 1
    return starts, counted_by
