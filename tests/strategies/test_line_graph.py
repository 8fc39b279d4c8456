"""The compiled line graph against a walk over the whole line; long enough for all levels of its bit
sets.
"""

from __future__ import annotations

import numpy as np
import pytest
from cases import many
from hypothesis import given
from hypothesis import strategies as st
from oracles import NaiveLine

from tailor.strategies.galaxy.line_graph import LineGraph
from tailor.strategies.galaxy.marks import FREE, LABELLED, NO_LABEL, PENDING, WITHDRAWN


def random_line(rng, size, walls, noise):
    """ids in a random order, labels that mostly grow along the line."""
    ids = rng.permutation(3 * size)[:size]
    kind = rng.choice(
        [FREE, PENDING, LABELLED], size, p=[1 - walls, walls / 3, 2 * walls / 3]
    ).astype(np.int8)
    label = ((np.arange(size) > size / 2) ^ (rng.random(size) < noise)).astype(np.int8)
    return ids, kind, label


def play(rng, ids, kind, label, steps, reveal):
    """Take, interfere, reveal and withdraw at random; the two must agree after every step."""
    fast = LineGraph(ids, kind, label)
    slow = NaiveLine(ids, kind, label)
    answers = {"cut": 0, "closed": 0}
    for _ in range(steps):
        cut = fast.shortest_cut()
        assert cut == slow.shortest_cut()
        pick = cut[1]
        if pick < 0:
            near = fast.nearest_to_closed()
            assert near == slow.nearest_to_closed()
            pick = near[1]
            answers["closed"] += pick >= 0
        else:
            answers["cut"] += 1
        taken = [pick] if pick >= 0 else []
        left = [i for i in slow.ids if slow.free[i] and i != pick]
        if left and (rng.random() < 0.3 or pick < 0):
            taken += rng.choice(left, min(len(left), 3), replace=False).tolist()
        taken.append(3 * len(ids) + 7)  # an example that is not on the line
        _mark(fast, slow, taken, [NO_LABEL] * len(taken))
        waiting = [
            i for i in slow.ids if not slow.free[i] and (i not in slow.known or rng.random() < 0.01)
        ]
        if waiting and rng.random() < reveal:
            some = rng.choice(waiting, min(len(waiting), 2), replace=False).tolist()
            _mark(fast, slow, some, rng.integers(2, size=len(some)).tolist())
        if slow.known and rng.random() < reveal:
            some = rng.choice(list(slow.known), min(len(slow.known), 2), replace=False).tolist()
            _mark(fast, slow, [*some, *waiting[:1]], [WITHDRAWN] * (len(some) + len(waiting[:1])))
        if len(taken) == 1:
            break
    return answers


def _mark(fast, slow, indices, labels):
    for line in (fast, slow):
        line.mark(np.array(indices, np.int64), np.array(labels, np.int8))


@many(400)
@given(
    st.integers(0, 2**32),
    st.integers(0, 90),
    st.sampled_from([0.0, 0.1, 0.5, 0.9]),
    st.sampled_from([0, 0.5]),
)
def test_short_lines(seed, size, walls, reveal):
    rng = np.random.default_rng(seed)
    ids, kind, label = random_line(rng, size, walls, noise=0.2)
    given_kind = kind.copy()
    given_label = label.copy()
    play(rng, ids, kind, label, size + 1, reveal)
    assert (kind == given_kind).all()  # what was handed in is as it was
    assert (label == given_label).all()


@pytest.mark.parametrize(
    ("size", "walls", "noise"), [(5000, 0.01, 0.3), (5000, 0.4, 0.02), (9001, 0.002, 0.5)]
)
@pytest.mark.parametrize("reveal", [0.0, 0.5])
def test_long_lines(size, walls, noise, reveal):
    rng = np.random.default_rng(size)
    ids, kind, label = random_line(rng, size, walls, noise)
    answers = play(rng, ids, kind, label, 60, reveal)
    assert answers["cut"] + answers["closed"] > 50


def test_a_line_of_three_levels_with_a_gap_of_many_words():
    """262,144 = 64^3 positions; the only two labels are at the ends."""
    size = 64**3 + 5
    kind = np.full(size, FREE, np.int8)
    label = np.zeros(size, np.int8)
    kind[[0, -1]], label[-1] = LABELLED, 1
    line = LineGraph(np.arange(size), kind, label)
    low = 0
    high = size - 1
    marked = {0, size - 1}
    while high - low > 1:
        length, middle = line.shortest_cut()
        assert (length, middle) == (high - low - 1, low + 1 + (high - low - 1) // 2)
        known = int(middle > 70_000)
        marked.add(middle)
        line.mark(np.array([middle]), np.array([known], np.int8))
        low, high = (low, middle) if known else (middle, high)
    assert (low, high) == (70_000, 70_001)
    assert line.shortest_cut() == (-1, -1)
    free = [i for i in range(69_900, 70_100) if i not in marked]
    nearest = min(free, key=lambda i: (max(70_000 - i, i - 70_001), -i))
    assert line.nearest_to_closed() == (max(70_000 - nearest, nearest - 70_001), nearest)


def test_an_empty_line_has_no_cut():
    nothing = np.empty(0, np.int64)
    line = LineGraph(nothing, nothing.astype(np.int8), nothing.astype(np.int8))
    line.mark(np.array([3]), np.array([1], np.int8))
    assert line.shortest_cut() == line.nearest_to_closed() == (-1, -1)
