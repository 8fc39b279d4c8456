"""Where labels change along a line, against sorting all of it."""

from __future__ import annotations

import numpy as np
import pytest
from cases import many
from hypothesis import given
from hypothesis import strategies as st

from tailor.strategies.galaxy.label_changes import label_changes
from tailor.strategies.galaxy.line_segment import LineSegment


def by_sorting(known, labels):
    order = sorted(range(len(known)), key=lambda i: (known.key[i], known.prob[i], known.ties[i]))
    pairs = [(a, b) for a, b in zip(order, order[1:]) if labels[a] != labels[b]]
    return [known.key[a] for a, _ in pairs], [known.key[b] for _, b in pairs]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@many(200)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(0, 40),
    keys=st.sampled_from([1, 2, 5, 1000]),
    positive=st.sampled_from([0.0, 0.05, 0.5, 0.9, 1.0]),
)
def test_changes_are_those_of_the_sorted_line(dtype, seed, size, keys, positive):
    """With few keys nearly all tie, and the probability, then the ties, decide."""
    rng = np.random.default_rng(seed)
    key, prob = (rng.integers(0, keys, size).astype(dtype) / keys - 0.5 for _ in range(2))
    known = LineSegment(np.arange(size), key, prob, rng.permutation(size))
    labels = (rng.random(size) < positive).astype(np.int8)
    low, high = label_changes(known, labels)
    assert (low.tolist(), high.tolist()) == by_sorting(known, labels)
    assert low.dtype == high.dtype == dtype
