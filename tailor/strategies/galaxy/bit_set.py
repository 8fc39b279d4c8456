"""Sets of positions as bits with summaries (64 to one), compiled: every question costs O(log N).

A set is an array of words. The first level has a bit for each position; each further level has a
bit for each word of the level below, set where that word has any. `levels` says where each level
begins in the array.
"""

from __future__ import annotations

import numpy as np

from tailor.common.compiled import njit

#: Words are uint64 throughout: what numba makes of a signed and an unsigned number is not.
_NO_BITS = np.uint64(0)
_ALL_BITS = ~np.uint64(0)
_FIRST_BIT = np.uint64(1)


def level_starts(size: int) -> np.ndarray:
    """(levels + 1,) int64: where each level of a set over `size` positions begins, and its end."""
    words = max(1, _words_for(size))
    starts = [0, words]
    while words > 1:
        words = _words_for(words)
        end = starts[-1] + words
        starts.append(end)
    return np.array(starts, np.int64)


def _words_for(bits: int) -> int:
    return -(-bits // 64)


@njit(cache=True, nogil=True)
def lowest_bit(word):
    """The place of the lowest bit that is set, by halving."""
    place = 0
    for step in (32, 16, 8, 4, 2, 1):
        lower_half = np.uint64((1 << step) - 1)
        low_bits = word & lower_half
        if low_bits == _NO_BITS:
            word >>= np.uint64(step)
            place += step
    return place


@njit(cache=True, nogil=True)
def highest_bit(word):
    """The place of the highest bit that is set, by halving."""
    place = 0
    for step in (32, 16, 8, 4, 2, 1):
        upper_half = word >> np.uint64(step)
        if upper_half != _NO_BITS:
            word = upper_half
            place += step
    return place


@njit(cache=True, nogil=True)
def bit_of(position):
    """The bit of a position in its word."""
    place = np.uint64(position & 63)
    return _FIRST_BIT << place


@njit(cache=True, nogil=True)
def add(bits, levels, position):
    for level in range(len(levels) - 1):
        start = levels[level]
        word = start + (position >> 6)
        bits[word] |= bit_of(position)
        position >>= 6


@njit(cache=True, nogil=True)
def remove(bits, levels, position):
    """Clears the summaries too, up to the first word that still has a member."""
    for level in range(len(levels) - 1):
        start = levels[level]
        word = start + (position >> 6)
        others = bits[word] & ~bit_of(position)
        bits[word] = others
        if others != _NO_BITS:
            return
        position >>= 6


@njit(cache=True, nogil=True)
def _lowest_below(
    bits,
    levels,
    level,
    position,
):
    """The lowest position that a bit of a summary at this level stands for."""
    while level > 0:
        level -= 1
        start = levels[level]
        word = bits[start + position]
        position = (position << 6) + lowest_bit(word)
    return position


@njit(cache=True, nogil=True)
def _highest_below(
    bits,
    levels,
    level,
    position,
):
    """The highest position that a bit of a summary at this level stands for."""
    while level > 0:
        level -= 1
        start = levels[level]
        word = bits[start + position]
        position = (position << 6) + highest_bit(word)
    return position


@njit(cache=True, nogil=True)
def last_up_to(bits, levels, position):
    """The highest member at or below position, or -1."""
    for level in range(len(levels) - 1):
        if position < 0:
            return -1
        word = position >> 6
        start = levels[level]
        place = position & 63
        unused = np.uint64(63 - place)
        at_or_below = _ALL_BITS >> unused
        members = bits[start + word] & at_or_below
        if members != _NO_BITS:
            highest = (word << 6) + highest_bit(members)
            return _highest_below(
                bits,
                levels,
                level,
                highest,
            )
        # None in this word: the summary says which of the words before has any.
        position = word - 1
    return -1


@njit(cache=True, nogil=True)
def first_from(bits, levels, position):
    """The lowest member at or above position, or -1."""
    for level in range(len(levels) - 1):
        word = position >> 6
        start = levels[level]
        words = levels[level + 1] - start
        if word >= words:
            return -1
        unused = np.uint64(position & 63)
        at_or_above = _ALL_BITS << unused
        members = bits[start + word] & at_or_above
        if members != _NO_BITS:
            lowest = (word << 6) + lowest_bit(members)
            return _lowest_below(
                bits,
                levels,
                level,
                lowest,
            )
        position = word + 1
    return -1
