"""A heap of int64 keys in an array, smallest first, compiled."""

from __future__ import annotations

import numpy as np

from tailor.common.compiled import njit


@njit(cache=True, nogil=True)
def push(heap, size, key):
    """-> (the heap, perhaps in a larger array, its size)."""
    if size == len(heap):
        # Twice as long: pushing costs O(log n) on average, copies included.
        room = 2 * size + 64
        larger = np.empty(room, np.int64)
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
def pop(heap, size):
    """Drops the smallest key -> the size."""
    size -= 1
    key = heap[size]
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            break
        sibling = child + 1
        if sibling < size and heap[sibling] < heap[child]:
            child = sibling
        if heap[child] >= key:
            break
        heap[parent] = heap[child]
        parent = child
    if size > 0:
        heap[parent] = key
    return size
