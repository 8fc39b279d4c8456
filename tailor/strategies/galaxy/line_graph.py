"""The line graph of galaxy: a sorted pool with walls (labelled or pending examples) and free ones
between them.

Every answer costs O(log N): walls and free examples are kept in bit sets with summaries (64 to
one), open cuts in a heap whose stale entries are dropped when they come up. All of it is compiled.

A position on the line is FREE, PENDING (taken, label not known) or LABELLED. Each wall carries the
nearest known label at or below it and at or above it, so that whether the gap between two walls is
an open cut is one comparison, however many pending examples lie in between. A label that arrives
late, or is withdrawn, changes only the walls up to the next labelled one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailor.common.compiled import njit

FREE, PENDING, LABELLED = 0, 1, 2
NO_LABEL = -1
WITHDRAWN = -2
_POSITIONS = 0x7FFFFFFF  # positions fit in 31 bits


class _State(NamedTuple):
    kind: np.ndarray  # (s,) int8
    below: np.ndarray  # (s,) int8, of walls: the nearest known label at or below
    above: np.ndarray  # (s,) int8, of walls: the nearest known label at or above
    walls: np.ndarray  # bit set with summaries
    frees: np.ndarray  # bit set with summaries
    levels: np.ndarray  # where each summary level of a bit set begins


class LineGraph:
    """The line over `ids`, lowest first.

    ids    (s,) int64: the examples in order
    kind   (s,) int8: FREE, PENDING or LABELLED
    label  (s,) int8: 0 or 1 where LABELLED
    """

    def __init__(self, ids: np.ndarray, kind: np.ndarray, label: np.ndarray) -> None:
        self.ids = ids
        order = np.argsort(ids)
        self._sorted_ids = ids[order]
        self._position = order
        levels = _levels(len(ids))
        self._state = _State(
            kind.copy(),
            np.full(len(ids), NO_LABEL, np.int8),
            np.full(len(ids), NO_LABEL, np.int8),
            np.zeros(levels[-1], np.uint64),
            np.zeros(levels[-1], np.uint64),
            levels,
        )
        self._cuts = np.empty(64, np.int64)
        self._cuts, self._size = _build(self._state, label, self._cuts)
        self._near: np.ndarray | None = None
        self._near_size = 0

    def mark(self, indices: np.ndarray, labels: np.ndarray) -> None:
        """Examples were taken, or labels came or went: labels (n,) int8 of 0, 1, NO_LABEL or
        WITHDRAWN. Unknown ids are ignored.
        """
        self._cuts, self._size, relabelled = _mark(
            self._state, self._sorted_ids, self._position, self._cuts, self._size, indices, labels
        )
        if relabelled:
            self._near = None

    def places(self, ids: np.ndarray) -> np.ndarray:
        """(n,) where these stand on the line, -1 where they don't."""
        if len(self.ids) == 0:
            return np.full(len(ids), -1)
        at = np.minimum(np.searchsorted(self._sorted_ids, ids), len(self.ids) - 1)
        return np.where(self._sorted_ids[at] == ids, self._position[at], -1)

    def shortest_cut(self) -> tuple[int, int]:
        """(free examples in it, the example in its middle) of the shortest open cut, or (-1,
        -1).
        """
        self._size, position, length = _shortest(self._state, self._cuts, self._size)
        return (-1, -1) if position < 0 else (length, int(self.ids[position]))

    def nearest_to_closed(self) -> tuple[int, int]:
        """(distance by rank, the free example nearest to a closed cut), or (-1, -1) with no closed
        cut.
        """
        if self._near is None:
            self._near, self._near_size = _closed(self._state)
        self._near_size, position, distance = _nearest(self._state, self._near, self._near_size)
        return (-1, -1) if position < 0 else (distance, int(self.ids[position]))


def _levels(size: int) -> np.ndarray:
    starts = [0]
    words = max(1, -(-size // 64))
    starts.append(words)
    while words > 1:
        words = -(-words // 64)
        starts.append(starts[-1] + words)
    return np.array(starts, np.int64)


# ------------------------------------------------------------------ bit sets


@njit(cache=True, nogil=True)
def _lowest_bit(word):  # type: ignore[no-untyped-def]
    place = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word & np.uint64((1 << step) - 1) == np.uint64(0):
            word >>= np.uint64(step)
            place += step
    return place


@njit(cache=True, nogil=True)
def _highest_bit(word):  # type: ignore[no-untyped-def]
    place = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(step) != np.uint64(0):
            word >>= np.uint64(step)
            place += step
    return place


@njit(cache=True, nogil=True)
def _set(bits, levels, position):  # type: ignore[no-untyped-def]
    for level in range(len(levels) - 1):
        bits[levels[level] + (position >> 6)] |= np.uint64(1) << np.uint64(position & 63)
        position >>= 6


@njit(cache=True, nogil=True)
def _clear(bits, levels, position):  # type: ignore[no-untyped-def]
    for level in range(len(levels) - 1):
        word = levels[level] + (position >> 6)
        bits[word] &= ~(np.uint64(1) << np.uint64(position & 63))
        if bits[word] != np.uint64(0):
            return
        position >>= 6


@njit(cache=True, nogil=True)
def _down(bits, levels, level, position):  # type: ignore[no-untyped-def]
    while level > 0:
        level -= 1
        position = (position << 6) + _lowest_bit(bits[levels[level] + position])
    return position


@njit(cache=True, nogil=True)
def _up_to(bits, levels, position):  # type: ignore[no-untyped-def]
    """The highest member at or below position, or -1."""
    if position < 0:
        return -1
    for level in range(len(levels) - 1):
        if position < 0:
            return -1
        word = position >> 6
        kept = bits[levels[level] + word] & (~np.uint64(0) >> np.uint64(63 - (position & 63)))
        if kept != np.uint64(0):
            position = (word << 6) + _highest_bit(kept)
            while level > 0:
                level -= 1
                position = (position << 6) + _highest_bit(bits[levels[level] + position])
            return position
        position = word - 1
    return -1


@njit(cache=True, nogil=True)
def _from(bits, levels, position):  # type: ignore[no-untyped-def]
    """The lowest member at or above position, or -1."""
    for level in range(len(levels) - 1):
        word = position >> 6
        if word >= levels[level + 1] - levels[level]:
            return -1
        kept = bits[levels[level] + word] & (~np.uint64(0) << np.uint64(position & 63))
        if kept != np.uint64(0):
            return _down(bits, levels, level, (word << 6) + _lowest_bit(kept))
        position = word + 1
    return -1


# ------------------------------------------------------------------ heap of int64 keys


@njit(cache=True, nogil=True)
def _push(heap, size, key):  # type: ignore[no-untyped-def]
    if size == len(heap):
        larger = np.empty(2 * size + 64, np.int64)
        larger[:size] = heap
        heap = larger
    child = size
    while child > 0:
        parent = (child - 1) >> 1
        if heap[parent] <= key:
            break
        heap[child] = heap[parent]
        child = parent
    heap[child] = key
    return heap, size + 1


@njit(cache=True, nogil=True)
def _pop(heap, size):  # type: ignore[no-untyped-def]
    size -= 1
    key = heap[size]
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[parent] = heap[child]
        parent = child
    if size > 0:
        heap[parent] = key
    return size


# ------------------------------------------------------------------ the line


@njit(cache=True, nogil=True)
def _is_open(state, low, high):  # type: ignore[no-untyped-def]
    below = state.below[low]
    above = state.above[high]
    return below != NO_LABEL and above != NO_LABEL and below != above


@njit(cache=True, nogil=True)
def _push_cut(state, cuts, size, low, high):  # type: ignore[no-untyped-def]
    """Shortest first; of equally short ones the highest on the line, where the class is
    likelier.
    """
    length = high - low - 1
    if length > 0 and _is_open(state, low, high):
        return _push(cuts, size, (length << 31) | (_POSITIONS - low))
    return cuts, size


@njit(cache=True, nogil=True)
def _build(state, label, cuts):  # type: ignore[no-untyped-def]
    size = 0
    count = len(label)
    known = NO_LABEL
    for i in range(count):
        if state.kind[i] == LABELLED:
            known = label[i]
        if state.kind[i] == FREE:
            _set(state.frees, state.levels, i)
        else:
            _set(state.walls, state.levels, i)
            state.below[i] = known
    known = NO_LABEL
    high = -1
    for i in range(count - 1, -1, -1):
        if state.kind[i] == LABELLED:
            known = label[i]
        if state.kind[i] != FREE:
            state.above[i] = known
            if high >= 0:
                cuts, size = _push_cut(state, cuts, size, i, high)
            high = i
    return cuts, size


@njit(cache=True, nogil=True)
def _spread(state, cuts, size, position, label):  # type: ignore[no-untyped-def]
    """The wall at position has a label now: tell the pending walls on both sides, and open what it
    opens.
    """
    state.kind[position] = LABELLED
    return _tell_both_sides(state, cuts, size, position, label, label)


@njit(cache=True, nogil=True)
def _withdraw(state, cuts, size, position):  # type: ignore[no-untyped-def]
    """The wall at position has no label any more: it and the pending walls beside it know what
    those beyond know.
    """
    state.kind[position] = PENDING
    low = _up_to(state.walls, state.levels, position - 1)
    high = _from(state.walls, state.levels, position + 1)
    from_below = state.below[low] if low >= 0 else NO_LABEL
    from_above = state.above[high] if high >= 0 else NO_LABEL
    return _tell_both_sides(state, cuts, size, position, from_below, from_above)


@njit(cache=True, nogil=True)
def _tell_both_sides(state, cuts, size, position, from_below, from_above):  # type: ignore[no-untyped-def]
    """The nearest known labels at the wall at position are these: so they are for the pending walls
    up to the next labelled one on each side. What that opens is pushed.
    """
    state.below[position] = from_below
    state.above[position] = from_above
    high = position
    while True:
        low = _up_to(state.walls, state.levels, high - 1)
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
        high = _from(state.walls, state.levels, low + 1)
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
def _mark(state, sorted_ids, positions, cuts, size, indices, labels):  # type: ignore[no-untyped-def]
    relabelled = False
    for i in range(len(indices)):
        place = np.searchsorted(sorted_ids, indices[i])
        if place == len(sorted_ids) or sorted_ids[place] != indices[i]:
            continue
        position = positions[place]
        if labels[i] == WITHDRAWN:
            if state.kind[position] == LABELLED:
                cuts, size = _withdraw(state, cuts, size, position)
                relabelled = True
            continue
        if state.kind[position] == FREE:
            _clear(state.frees, state.levels, position)
            _set(state.walls, state.levels, position)
            state.kind[position] = PENDING
            if labels[i] == NO_LABEL:
                low = _up_to(state.walls, state.levels, position - 1)
                high = _from(state.walls, state.levels, position + 1)
                if low >= 0:
                    state.below[position] = state.below[low]
                if high >= 0:
                    state.above[position] = state.above[high]
                if low >= 0:
                    cuts, size = _push_cut(state, cuts, size, low, position)
                if high >= 0:
                    cuts, size = _push_cut(state, cuts, size, position, high)
        if labels[i] != NO_LABEL:
            cuts, size = _spread(state, cuts, size, position, labels[i])
            relabelled = True
    return cuts, size, relabelled


@njit(cache=True, nogil=True)
def _shortest(state, cuts, size):  # type: ignore[no-untyped-def]
    while size > 0:
        length = cuts[0] >> 31
        low = _POSITIONS - (cuts[0] & _POSITIONS)
        high = low + length + 1
        if _from(state.walls, state.levels, low + 1) == high and _is_open(state, low, high):
            return size, low + 1 + length // 2, length
        size = _pop(cuts, size)
    return size, -1, -1


@njit(cache=True, nogil=True)
def _push_near(heap, size, place, distance, upward):  # type: ignore[no-untyped-def]
    """Nearest first; of equally near ones the highest on the line. The last bit is the direction of
    search.
    """
    return _push(heap, size, (distance << 32) | ((_POSITIONS - place) << 1) | upward)


@njit(cache=True, nogil=True)
def _closed(state):  # type: ignore[no-untyped-def]
    """All closed cuts: a negative below a positive with no free example between. For each the
    nearest free ones.
    """
    heap = np.empty(64, np.int64)
    size = 0
    low = _from(state.walls, state.levels, 0)
    while low >= 0:
        high = _from(state.walls, state.levels, low + 1)
        while high >= 0 and state.kind[high] == PENDING:
            high = _from(state.walls, state.levels, high + 1)
        if high < 0:
            break
        if (
            state.kind[low] == LABELLED
            and state.below[low] == 0
            and state.above[high] == 1
            and not 0 <= _from(state.frees, state.levels, low) < high
        ):
            place = _up_to(state.frees, state.levels, low)
            if place >= 0:
                heap, size = _push_near(heap, size, place, low - place, 0)
            place = _from(state.frees, state.levels, high)
            if place >= 0:
                heap, size = _push_near(heap, size, place, place - high, 1)
        low = high
    return heap, size


@njit(cache=True, nogil=True)
def _nearest(state, heap, size):  # type: ignore[no-untyped-def]
    while size > 0:
        key = heap[0]
        distance = key >> 32
        place = _POSITIONS - ((key >> 1) & _POSITIONS)
        upward = key & 1
        if state.kind[place] == FREE:
            return size, place, distance
        size = _pop(heap, size)
        if upward:
            further = _from(state.frees, state.levels, place)
        else:
            further = _up_to(state.frees, state.levels, place)
        if further >= 0:
            heap, size = _push_near(heap, size, further, distance + abs(further - place), upward)
    return size, -1, -1
