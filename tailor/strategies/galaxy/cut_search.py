"""Open cuts on a line, compiled. LineGraph is the class around it.

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
from tailor.strategies.galaxy.marks import (
    FREE,
    LABELLED,
    NO_LABEL,
    PENDING,
    POSITION_MASK,
    WITHDRAWN,
)


# numba's caches name it by its module: were it moved, those of earlier versions would not load.
class LineState(NamedTuple):
    """A line of s positions."""

    kind: np.ndarray  # (s,) int8: FREE, PENDING or LABELLED
    below: np.ndarray  # (s,) int8, of walls: the nearest known label at or below
    above: np.ndarray  # (s,) int8, of walls: the nearest known label at or above
    walls: np.ndarray  # bit set
    frees: np.ndarray  # bit set
    levels: np.ndarray  # of both sets


@njit(cache=True, nogil=True)
def wall_below(state, position):
    """The nearest wall below a position, or -1."""
    return last_up_to(state.walls, state.levels, position - 1)


@njit(cache=True, nogil=True)
def wall_above(state, position):
    """The nearest wall above a position, or -1."""
    return first_from(state.walls, state.levels, position + 1)


@njit(cache=True, nogil=True)
def _is_open(state, low, high):
    """Whether the known labels on the two sides of a gap differ."""
    below = state.below[low]
    above = state.above[high]
    if below == NO_LABEL:
        return False
    if above == NO_LABEL:
        return False
    return below != above


@njit(cache=True, nogil=True)
def _push_cut(
    state,
    cuts,
    size,
    low,
    high,
):
    """Push the gap between two walls if it is an open cut -> (cuts, how many).

    Shortest first; of equally short ones the highest on the line, where the class is likelier.
    """
    length = high - low - 1
    if length <= 0:
        return cuts, size
    if not _is_open(state, low, high):
        return cuts, size
    from_the_top = POSITION_MASK - low
    key = (length << 31) | from_the_top
    return push(cuts, size, key)


@njit(cache=True, nogil=True)
def build(state, label, cuts):
    """Fill in the state of a new line, and find its open cuts -> (cuts, how many)."""
    _fill_upwards(state, label)
    size = 0
    nearest = NO_LABEL
    high = -1
    for i in range(len(label) - 1, -1, -1):
        kind = state.kind[i]
        if kind == FREE:
            continue
        if kind == LABELLED:
            nearest = label[i]
        state.above[i] = nearest
        # The labels below are all filled in: a gap can be judged once its upper wall is known.
        if high >= 0:
            cuts, size = _push_cut(
                state,
                cuts,
                size,
                i,
                high,
            )
        high = i
    return cuts, size


@njit(cache=True, nogil=True)
def _fill_upwards(state, label):
    """Enter every position in its set, and the nearest known label below each wall."""
    nearest = NO_LABEL
    for i in range(len(label)):
        kind = state.kind[i]
        if kind == FREE:
            add(state.frees, state.levels, i)
            continue
        if kind == LABELLED:
            nearest = label[i]
        add(state.walls, state.levels, i)
        state.below[i] = nearest


@njit(cache=True, nogil=True)
def _spread(
    state,
    cuts,
    size,
    position,
    label,
):
    """The wall at position has a label now: tell the pending walls on both sides, and open what it
    opens.
    """
    state.kind[position] = LABELLED
    return _tell_both_sides(
        state,
        cuts,
        size,
        position,
        label,
        label,
    )


@njit(cache=True, nogil=True)
def _withdraw(
    state,
    cuts,
    size,
    position,
):
    """The wall at position has no label any more: it and the pending walls beside it know what
    those beyond know.
    """
    state.kind[position] = PENDING
    from_below = NO_LABEL
    low = wall_below(state, position)
    if low >= 0:
        from_below = state.below[low]
    from_above = NO_LABEL
    high = wall_above(state, position)
    if high >= 0:
        from_above = state.above[high]
    return _tell_both_sides(
        state,
        cuts,
        size,
        position,
        from_below,
        from_above,
    )


@njit(cache=True, nogil=True)
def _tell_both_sides(
    state,
    cuts,
    size,
    position,
    from_below,
    from_above,
):
    """The nearest known labels at the wall at position are these: so they are for the pending walls
    up to the next labelled one on each side. What that opens is pushed.
    """
    state.below[position] = from_below
    state.above[position] = from_above
    cuts, size = _tell_below(
        state,
        cuts,
        size,
        position,
        from_above,
    )
    return _tell_above(
        state,
        cuts,
        size,
        position,
        from_below,
    )


@njit(cache=True, nogil=True)
def _tell_below(
    state,
    cuts,
    size,
    position,
    from_above,
):
    """Tell the pending walls below position, down to the next labelled one, the nearest label
    above them.
    """
    high = position
    low = wall_below(state, high)
    while low >= 0:
        is_labelled = state.kind[low] == LABELLED
        if not is_labelled:
            state.above[low] = from_above
        cuts, size = _push_cut(
            state,
            cuts,
            size,
            low,
            high,
        )
        # Walls beyond a labelled one have that one's label.
        if is_labelled:
            break
        high = low
        low = wall_below(state, high)
    return cuts, size


@njit(cache=True, nogil=True)
def _tell_above(
    state,
    cuts,
    size,
    position,
    from_below,
):
    """Tell the pending walls above position, up to the next labelled one, the nearest label below
    them.
    """
    low = position
    high = wall_above(state, low)
    while high >= 0:
        is_labelled = state.kind[high] == LABELLED
        if not is_labelled:
            state.below[high] = from_below
        cuts, size = _push_cut(
            state,
            cuts,
            size,
            low,
            high,
        )
        if is_labelled:
            break
        low = high
        high = wall_above(state, low)
    return cuts, size


@njit(cache=True, nogil=True)
def _position_of(index, sorted_ids, positions):
    """Where an example stands on the line, or -1."""
    place = np.searchsorted(sorted_ids, index)
    if place == len(sorted_ids):
        return -1
    if sorted_ids[place] != index:
        return -1
    return positions[place]


@njit(cache=True, nogil=True)
def _make_wall(state, position):
    """A free example becomes a wall without a label."""
    remove(state.frees, state.levels, position)
    add(state.walls, state.levels, position)
    state.kind[position] = PENDING


@njit(cache=True, nogil=True)
def _split(
    state,
    cuts,
    size,
    position,
):
    """A new pending wall at position knows what its neighbours know; both halves of the gap that it
    stands in may be open cuts.
    """
    low = wall_below(state, position)
    high = wall_above(state, position)
    # Both labels have to be entered before either half is judged.
    if low >= 0:
        state.below[position] = state.below[low]
    if high >= 0:
        state.above[position] = state.above[high]
    if low >= 0:
        cuts, size = _push_cut(
            state,
            cuts,
            size,
            low,
            position,
        )
    if high >= 0:
        cuts, size = _push_cut(
            state,
            cuts,
            size,
            position,
            high,
        )
    return cuts, size


@njit(cache=True, nogil=True)
def mark(
    state,
    sorted_ids,
    positions,
    cuts,
    size,
    indices,
    labels,
):
    """As LineGraph.mark -> (cuts, how many, whether a label came or went)."""
    relabelled = False
    for i in range(len(indices)):
        label = labels[i]
        position = _position_of(indices[i], sorted_ids, positions)
        if position < 0:
            continue
        kind = state.kind[position]
        if label == WITHDRAWN:
            if kind == LABELLED:
                cuts, size = _withdraw(
                    state,
                    cuts,
                    size,
                    position,
                )
                relabelled = True
            continue
        if kind == FREE:
            _make_wall(state, position)
            # A label that comes at once opens cuts by itself, below.
            if label == NO_LABEL:
                cuts, size = _split(
                    state,
                    cuts,
                    size,
                    position,
                )
        if label != NO_LABEL:
            cuts, size = _spread(
                state,
                cuts,
                size,
                position,
                label,
            )
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
        from_the_top = key & POSITION_MASK
        low = POSITION_MASK - from_the_top
        high = low + length + 1
        # Stale where a wall has come between, or the labels on the two sides agree by now.
        is_whole = wall_above(state, low) == high
        if is_whole and _is_open(state, low, high):
            middle = low + 1 + length // 2
            return size, middle, length
        size = pop(cuts, size)
    return size, -1, -1
