"""Open and closed cuts on a line, compiled. LineGraph is the class around it.

Every answer costs O(log N): walls and free examples are kept in bit sets, open cuts in a heap whose
stale entries are dropped when they come up.

Each wall carries the nearest known label at or below it and at or above it, so that whether the gap
between two walls is an open cut is one comparison, however many pending examples lie in between. A
label that arrives late, or is withdrawn, changes only the walls up to the next labelled one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailor.common.compiled import njit
from tailor.strategies.galaxy.bit_set import add, first_from, last_up_to, remove
from tailor.strategies.galaxy.heap import pop, push

#: what stands at a position of the line
FREE, PENDING, LABELLED = 0, 1, 2
#: in place of a label
NO_LABEL = -1
WITHDRAWN = -2
#: positions fit in 31 bits, so that a heap's key holds one beside a length
POSITION_MASK = 0x7FFFFFFF


class LineState(NamedTuple):
    """A line of s positions."""

    kind: np.ndarray  # (s,) int8: FREE, PENDING or LABELLED
    below: np.ndarray  # (s,) int8, of walls: the nearest known label at or below
    above: np.ndarray  # (s,) int8, of walls: the nearest known label at or above
    walls: np.ndarray  # bit set
    frees: np.ndarray  # bit set
    levels: np.ndarray  # of both sets


@njit(cache=True, nogil=True)
def _is_open(state, low, high):
    """Whether the known labels on the two sides of a gap differ."""
    below = state.below[low]
    above = state.above[high]
    return below != NO_LABEL and above != NO_LABEL and below != above


@njit(cache=True, nogil=True)
def _push_cut(state, cuts, size, low, high):
    """Shortest first; of equally short ones the highest on the line, where the class is
    likelier.
    """
    length = high - low - 1
    if length > 0 and _is_open(state, low, high):
        from_the_top = POSITION_MASK - low
        key = (length << 31) | from_the_top
        return push(cuts, size, key)
    return cuts, size


@njit(cache=True, nogil=True)
def build(state, label, cuts):
    """Fill in the state of a new line, and find its open cuts -> (cuts, how many)."""
    size = 0
    count = len(label)
    # Upwards for the nearest label below each wall, then downwards for the nearest above.
    nearest = NO_LABEL
    for i in range(count):
        if state.kind[i] == LABELLED:
            nearest = label[i]
        if state.kind[i] == FREE:
            add(state.frees, state.levels, i)
        else:
            add(state.walls, state.levels, i)
            state.below[i] = nearest
    nearest = NO_LABEL
    high = -1
    for i in range(count - 1, -1, -1):
        if state.kind[i] == LABELLED:
            nearest = label[i]
        if state.kind[i] != FREE:
            state.above[i] = nearest
            if high >= 0:
                cuts, size = _push_cut(state, cuts, size, i, high)
            high = i
    return cuts, size


@njit(cache=True, nogil=True)
def _spread(state, cuts, size, position, label):
    """The wall at position has a label now: tell the pending walls on both sides, and open what it
    opens.
    """
    state.kind[position] = LABELLED
    return _tell_both_sides(state, cuts, size, position, label, label)


@njit(cache=True, nogil=True)
def _withdraw(state, cuts, size, position):
    """The wall at position has no label any more: it and the pending walls beside it know what
    those beyond know.
    """
    state.kind[position] = PENDING
    low = last_up_to(state.walls, state.levels, position - 1)
    high = first_from(state.walls, state.levels, position + 1)
    from_below = state.below[low] if low >= 0 else NO_LABEL
    from_above = state.above[high] if high >= 0 else NO_LABEL
    return _tell_both_sides(state, cuts, size, position, from_below, from_above)


@njit(cache=True, nogil=True)
def _tell_both_sides(state, cuts, size, position, from_below, from_above):
    """The nearest known labels at the wall at position are these: so they are for the pending walls
    up to the next labelled one on each side. What that opens is pushed.
    """
    state.below[position] = from_below
    state.above[position] = from_above
    high = position
    while True:
        low = last_up_to(state.walls, state.levels, high - 1)
        if low < 0:
            break
        if state.kind[low] == PENDING:
            state.above[low] = from_above
        cuts, size = _push_cut(state, cuts, size, low, high)
        if state.kind[low] == LABELLED:
            break
        high = low
    low = position
    while True:
        high = first_from(state.walls, state.levels, low + 1)
        if high < 0:
            break
        if state.kind[high] == PENDING:
            state.below[high] = from_below
        cuts, size = _push_cut(state, cuts, size, low, high)
        if state.kind[high] == LABELLED:
            break
        low = high
    return cuts, size


@njit(cache=True, nogil=True)
def mark(state, sorted_ids, positions, cuts, size, indices, labels):
    """As LineGraph.mark -> (cuts, how many, whether a label came or went)."""
    relabelled = False
    for i in range(len(indices)):
        index = indices[i]
        label = labels[i]
        place = np.searchsorted(sorted_ids, index)
        if place == len(sorted_ids) or sorted_ids[place] != index:
            continue
        position = positions[place]
        if label == WITHDRAWN:
            if state.kind[position] == LABELLED:
                cuts, size = _withdraw(state, cuts, size, position)
                relabelled = True
            continue
        if state.kind[position] == FREE:
            remove(state.frees, state.levels, position)
            add(state.walls, state.levels, position)
            state.kind[position] = PENDING
            if label == NO_LABEL:
                low = last_up_to(state.walls, state.levels, position - 1)
                high = first_from(state.walls, state.levels, position + 1)
                if low >= 0:
                    state.below[position] = state.below[low]
                if high >= 0:
                    state.above[position] = state.above[high]
                if low >= 0:
                    cuts, size = _push_cut(state, cuts, size, low, position)
                if high >= 0:
                    cuts, size = _push_cut(state, cuts, size, position, high)
        if label != NO_LABEL:
            cuts, size = _spread(state, cuts, size, position, label)
            relabelled = True
    return cuts, size, relabelled


@njit(cache=True, nogil=True)
def shortest_cut(state, cuts, size):
    """Drop stale cuts from the heap -> (how many are left, the middle of the shortest, its
    length); -1 where there is none.
    """
    while size > 0:
        key = cuts[0]
        length = key >> 31
        low = POSITION_MASK - (key & POSITION_MASK)
        high = low + length + 1
        # Stale where a wall has come between, or the labels on the two sides agree by now.
        next_wall = first_from(state.walls, state.levels, low + 1)
        if next_wall == high and _is_open(state, low, high):
            middle = low + 1 + length // 2
            return size, middle, length
        size = pop(cuts, size)
    return size, -1, -1


@njit(cache=True, nogil=True)
def _push_near(heap, size, place, distance, upward):
    """Nearest first; of equally near ones the highest on the line. The last bit is the direction of
    search.
    """
    from_the_top = POSITION_MASK - place
    key = (distance << 32) | (from_the_top << 1) | upward
    return push(heap, size, key)


@njit(cache=True, nogil=True)
def closed_cuts(state):
    """A heap of the free positions nearest to each closed cut, and its size. A closed cut is a
    negative below a positive with no free example between.
    """
    heap = np.empty(64, np.int64)
    size = 0
    low = first_from(state.walls, state.levels, 0)
    while low >= 0:
        high = first_from(state.walls, state.levels, low + 1)
        while high >= 0 and state.kind[high] == PENDING:
            high = first_from(state.walls, state.levels, high + 1)
        if high < 0:
            break
        negative_below = state.kind[low] == LABELLED and state.below[low] == 0
        positive_above = state.above[high] == 1
        if (
            negative_below
            and positive_above
            and not 0 <= first_from(state.frees, state.levels, low) < high
        ):
            place = last_up_to(state.frees, state.levels, low)
            if place >= 0:
                heap, size = _push_near(heap, size, place, low - place, 0)
            place = first_from(state.frees, state.levels, high)
            if place >= 0:
                heap, size = _push_near(heap, size, place, place - high, 1)
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
        place = POSITION_MASK - ((key >> 1) & POSITION_MASK)
        upward = key & 1
        if state.kind[place] == FREE:
            return size, place, distance
        size = pop(heap, size)
        if upward:
            further = first_from(state.frees, state.levels, place)
        else:
            further = last_up_to(state.frees, state.levels, place)
        if further >= 0:
            distance += abs(further - place)
            heap, size = _push_near(heap, size, further, distance, upward)
    return size, -1, -1
