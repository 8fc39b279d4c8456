"""Rows for some of many positions: against a dictionary, with copies that go their own way."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tailor.selection.sparse_rows import SparseRows

SIZE = 6
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["set", "clear", "copy", "swap"]),
        st.lists(st.integers(0, SIZE - 1), unique=True, max_size=3),
        st.integers(1, 9),
    ),
    max_size=30,
)


def same(rows, expected):
    everything = np.arange(SIZE)
    values = [expected.get(position, [0, 0]) for position in range(SIZE)]
    assert rows.get(everything).tolist() == values
    assert rows.positions.tolist() == sorted(expected)
    assert rows.has(everything).tolist() == rows.mask.tolist()


@given(CHANGES)
def test_a_copy_and_its_original_go_their_own_ways(changes):
    rows = SparseRows(2, np.uint8)
    rows.grow(SIZE)
    expected = {}
    other, expected_of_other = rows.copy(), {}
    for change, listed, value in changes:
        positions = np.array(listed, np.int64)
        if change == "set":
            new = np.array([[value, position] for position in listed], np.uint8).reshape(-1, 2)
            rows.set(positions, new)
            expected.update(zip(listed, new.tolist()))
        elif change == "clear":
            rows.clear(positions)
            for position in listed:
                expected.pop(position, None)
        elif change == "copy":
            other, expected_of_other = rows.copy(), dict(expected)
        else:
            rows, other = other, rows
            expected, expected_of_other = expected_of_other, expected
        same(rows, expected)
        same(other, expected_of_other)


def test_converted_rows_stay_where_they_are():
    rows = SparseRows(2, np.float32)
    rows.grow(3)
    rows.set(np.array([2, 0]), np.array([[0.25, 0.5], [0.5, 0.125]]))
    twin = rows.copy()
    rows.convert(lambda values: values.sum(1, keepdims=True))
    assert rows.get(np.arange(3)).tolist() == [[0.625], [0], [0.75]]
    assert twin.get(np.arange(3)).tolist() == [[0.5, 0.125], [0, 0], [0.25, 0.5]]
    rows.set(np.array([1]), np.array([[2.0]]))
    assert rows.get(np.arange(3)).tolist() == [[0.625], [2], [0.75]]
