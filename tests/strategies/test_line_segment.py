"""The pass that finds what can lie in an open cut, against a look at every example."""

from __future__ import annotations

import numpy as np
import pytest
from cases import cases, many
from hypothesis import given
from hypothesis import strategies as st

from tailor.selection.array_view import ArrayView
from tailor.strategies.galaxy.line_builder import LineBuilder
from tailor.strategies.galaxy.line_segment import (
    EMPTY_SEGMENT,
    RangeSearch,
    line_key,
    segments_in_ranges,
)
from tailor.task import MultiClass, MultiLabel


def in_memory(view):
    return lambda search: search.join([search.find(view, part) for part in view.chunks()])


def expected(view, klass, low, high):
    prob = view.rows(slice(None)).numpy()[:, klass]
    key = line_key(prob, view.row_max.numpy()) if isinstance(view.task, MultiClass) else prob
    inside = ((low <= key[:, None]) & (key[:, None] <= high)).any(1)
    return sorted(np.flatnonzero(inside).tolist(), key=lambda i: (key[i], prob[i], view.ties[i]))


def draw_ranges(rng, count, scores):
    """Ascending ranges between scores that occur, or nearly; some of no length, some that touch."""
    ends = np.sort(rng.choice(scores, 2 * count)) + rng.choice(
        [0, 0, 1e-7, -1e-7], 2 * count
    ).astype(scores.dtype)
    ends = np.sort(ends.astype(scores.dtype))
    return ends[::2], ends[1::2]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("kind", [MultiClass, MultiLabel])
@many(40)
@given(
    seed=st.integers(0, 2**32 - 1),
    classes=st.sampled_from([2, 3, 64, 130]),
    grid=st.sampled_from([None, 2, 16]),
    count=st.sampled_from([1, 2, 40]),
)
def test_every_example_in_a_range_is_found_and_no_other(kind, dtype, seed, classes, grid, count):
    rng = np.random.default_rng(seed)
    raw = (
        rng.random((50, classes))
        if grid is None
        else rng.integers(0, grid + 1, (50, classes)) / grid
    )
    if kind is MultiClass:
        raw = (raw + 1e-3) / (raw + 1e-3).sum(1, keepdims=True)
    view = ArrayView(kind(classes), raw.astype(dtype), seed=seed % 1000)
    rows = view.rows(slice(None)).numpy()
    asked = rng.choice(classes, rng.integers(1, classes + 1), replace=False).tolist()
    ranges = {}
    for k in asked:
        scores = line_key(rows[:, k], view.row_max.numpy()) if kind is MultiClass else rows[:, k]
        ranges[k] = draw_ranges(rng, count, scores)
    for k, found in segments_in_ranges(ranges, in_memory(view)).items():
        assert found.ids.tolist() == expected(view, k, *ranges[k])


def test_a_class_without_a_range_has_nothing():
    view = ArrayView(MultiLabel(2), np.array([[0.2, 0.3], [0.4, 0.6]]))
    none = np.empty(0)
    found = segments_in_ranges(
        {0: (none, none), 1: (np.array([0.5]), np.array([0.7]))}, in_memory(view)
    )
    assert found[0] is EMPTY_SEGMENT
    assert found[1].ids.tolist() == [1]
    assert segments_in_ranges({0: (none, none)}, in_memory(view)) == {0: EMPTY_SEGMENT}


@many(100)
@given(case=cases())
def test_the_way_of_a_device_gives_the_same_line(case):
    """The passes for a GPU, column by column, and for a CPU, all classes at once, keep the same
    examples in order.
    """
    view = case.view()
    builder = LineBuilder(view, "split")
    classes = list(range(case.task.size))
    ranges = {klass: builder.open_ranges(klass) for klass in classes}
    segments = segments_in_ranges(ranges, in_memory(view))
    for klass, column in view.columns(classes):
        on_device = builder.open_line(column, klass)
        on_cpu = builder.line(segments[klass].ids, klass)
        assert on_device.ids.tolist() == on_cpu.ids.tolist()


def test_a_search_asks_for_no_more_columns_than_it_needs():
    view = ArrayView(MultiLabel(50), np.full((4, 50), 0.5))
    search = RangeSearch(
        {7: (np.array([0.5]), np.array([0.5])), 30: (np.array([0.6]), np.array([0.7]))}
    )
    which, found = search.find(view, slice(1, 4))
    assert which.tolist() == [0, 0, 0]
    assert found.ids.tolist() == [1, 2, 3]
