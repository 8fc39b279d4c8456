"""Sets of positions as bits with summaries (64 to one), compiled: every question costs O(log N).

A set is an array of words. The first level has a bit for each position; each further level has a
bit for each word of the level below, set where that word has any. `levels` says where each level
begins in the array.
"""

from __future__ import annotations

import numpy as np

from tailor.common.compiled import njit


def level_starts(size: int) -> np.ndarray:
    """(levels + 1,) int64: where each level of a set over `size` positions begins, and its end."""
    words = max(1, -(-size // 64))
    starts = [0, words]
    while words > 1:
        words = -(-words // 64)
        starts.append(starts[-1] + words)
    return np.array(starts, np.int64)


@njit(cache=True, nogil=True)
def lowest_bit(word):
    """The place of the lowest bit that is set, by halving."""
    place = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word & np.uint64((1 << step) - 1) == np.uint64(0):
            word >>= np.uint64(step)
            place += step
    return place


@njit(cache=True, nogil=True)
def highest_bit(word):
    """The place of the highest bit that is set, by halving."""
    place = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(step) != np.uint64(0):
            word >>= np.uint64(step)
            place += step
    return place


@njit(cache=True, nogil=True)
def add(bits, levels, position):
    for level in range(len(levels) - 1):
        word = levels[level] + (position >> 6)
        bit = np.uint64(1) << np.uint64(position & 63)
        bits[word] |= bit
        position >>= 6


@njit(cache=True, nogil=True)
def remove(bits, levels, position):
    """Clears the summaries too, up to the first word that still has a member."""
    for level in range(len(levels) - 1):
        word = levels[level] + (position >> 6)
        bit = np.uint64(1) << np.uint64(position & 63)
        bits[word] &= ~bit
        if bits[word] != np.uint64(0):
            return
        position >>= 6


@njit(cache=True, nogil=True)
def _lowest_below(bits, levels, level, position):
    """The lowest position that a bit of a summary at this level stands for."""
    while level > 0:
        level -= 1
        word = bits[levels[level] + position]
        position = (position << 6) + lowest_bit(word)
    return position


@njit(cache=True, nogil=True)
def _highest_below(bits, levels, level, position):
    """The highest position that a bit of a summary at this level stands for."""
    while level > 0:
        level -= 1
        word = bits[levels[level] + position]
        position = (position << 6) + highest_bit(word)
    return position


@njit(cache=True, nogil=True)
def last_up_to(bits, levels, position):
    """The highest member at or below position, or -1."""
    if position < 0:
        return -1
    for level in range(len(levels) - 1):
        if position < 0:
            return -1
        word = position >> 6
        at_or_below = ~np.uint64(0) >> np.uint64(63 - (position & 63))
        kept = bits[levels[level] + word] & at_or_below
        if kept != np.uint64(0):
            position = (word << 6) + highest_bit(kept)
            return _highest_below(bits, levels, level, position)
        position = word - 1
    return -1


@njit(cache=True, nogil=True)
def first_from(bits, levels, position):
    """The lowest member at or above position, or -1."""
    for level in range(len(levels) - 1):
        word = position >> 6
        if word >= levels[level + 1] - levels[level]:
            return -1
        at_or_above = ~np.uint64(0) << np.uint64(position & 63)
        kept = bits[levels[level] + word] & at_or_above
        if kept != np.uint64(0):
            position = (word << 6) + lowest_bit(kept)
            return _lowest_below(bits, levels, level, position)
        position = word + 1
    return -1
