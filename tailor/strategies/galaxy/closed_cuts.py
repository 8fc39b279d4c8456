"""Closed cuts on a line, compiled: where to look when no cut is open. LineGraph is the class around
it.

A closed cut is a negative below a positive with no free example between. A heap holds the free
examples nearest to each; one that was taken meanwhile is replaced when it comes up.
"""

from __future__ import annotations

import numpy as np

from tailor.common.compiled import njit
from tailor.strategies.galaxy.bit_set import first_from, last_up_to
from tailor.strategies.galaxy.cut_search import wall_above
from tailor.strategies.galaxy.heap import pop, push
from tailor.strategies.galaxy.marks import (
    FREE,
    LABELLED,
    PENDING,
    POSITION_MASK,
)


@njit(cache=True, nogil=True)
def _free_up_to(state, position):
    """The nearest free position at or below this one, or -1."""
    return last_up_to(state.frees, state.levels, position)


@njit(cache=True, nogil=True)
def _free_from(state, position):
    """The nearest free position at or above this one, or -1."""
    return first_from(state.frees, state.levels, position)


@njit(cache=True, nogil=True)
def _push_near(
    heap,
    size,
    place,
    distance,
    upward,
):
    """Nearest first; of equally near ones the highest on the line. The last bit is the direction of
    search.
    """
    from_the_top = POSITION_MASK - place
    key = (distance << 32) | (from_the_top << 1) | upward
    return push(heap, size, key)


@njit(cache=True, nogil=True)
def _labelled_above(state, position):
    """The nearest labelled wall above a position, or -1."""
    wall = wall_above(state, position)
    while wall >= 0:
        if state.kind[wall] != PENDING:
            break
        wall = wall_above(state, wall)
    return wall


@njit(cache=True, nogil=True)
def _is_closed(state, low, high):
    """Whether a wall is negative, the labelled wall next above it positive, and nothing between
    them free.
    """
    # The lowest wall on the line may be a pending one.
    if state.kind[low] != LABELLED:
        return False
    if state.below[low] != 0:
        return False
    if state.above[high] != 1:
        return False
    next_free = _free_from(state, low)
    return next_free < 0 or next_free >= high


@njit(cache=True, nogil=True)
def closed_cuts(state):
    """A heap of the free positions nearest to each closed cut, and its size."""
    heap = np.empty(64, np.int64)
    size = 0
    low = first_from(state.walls, state.levels, 0)
    while low >= 0:
        high = _labelled_above(state, low)
        if high < 0:
            break
        if _is_closed(state, low, high):
            place = _free_up_to(state, low)
            if place >= 0:
                distance = low - place
                heap, size = _push_near(
                    heap,
                    size,
                    place,
                    distance,
                    0,
                )
            place = _free_from(state, high)
            if place >= 0:
                distance = place - high
                heap, size = _push_near(
                    heap,
                    size,
                    place,
                    distance,
                    1,
                )
        low = high
    return heap, size


@njit(cache=True, nogil=True)
def nearest_to_closed(state, heap, size):
    """-> (how many are left in the heap, the free position nearest to a closed cut, its distance);
    -1 where there is none. A position that was taken meanwhile is replaced by the next free one in
    the same direction.
    """
    while size > 0:
        key = heap[0]
        distance = key >> 32
        from_the_top = (key >> 1) & POSITION_MASK
        place = POSITION_MASK - from_the_top
        upward = key & 1
        if state.kind[place] == FREE:
            return size, place, distance
        size = pop(heap, size)
        if upward:
            further = _free_from(state, place)
        else:
            further = _free_up_to(state, place)
        if further >= 0:
            distance += abs(further - place)
            # There is room, since one was popped: the heap stays in its array.
            heap, size = _push_near(
                heap,
                size,
                further,
                distance,
                upward,
            )
    return size, -1, -1
