"""Reading the pool in pieces, and looking at few candidates, changes no pick: with very small
pieces.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import many, open_arm
from hypothesis import given
from hypothesis import strategies as st

import tailor.selection.pool_view
import tailor.strategies.coreset
import tailor.strategies.lazy_maximum
from tailor.strategies import registry
from tailor.strategies.lazy_maximum import LazyLargest
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view, take_all

PAIRS = [
    (name, task)
    for name in registry
    for task in (MultiClass(7), MultiLabel(7))
    if task.kind in registry.find(name).tasks
]


def make_small(monkeypatch):
    monkeypatch.setattr(tailor.selection.pool_view, "CHUNK", 7)
    monkeypatch.setattr(tailor.selection.pool_view, "COLUMNS", 2)
    monkeypatch.setattr(tailor.strategies.lazy_maximum, "BUFFER", 5)
    monkeypatch.setattr(tailor.strategies.lazy_maximum, "MOST", 20)
    monkeypatch.setattr(tailor.strategies.coreset, "FIRST", 3)


@pytest.mark.parametrize(("name", "task"), PAIRS, ids=lambda v: getattr(v, "kind", v))
def test_small_pieces_give_the_same_picks(name, task, monkeypatch):
    def picks(seed, others):
        view = make_view(make_pool(task, 60, seed=seed), seed, pending=0.1, skipped=0.1)
        return take_all(registry.make(name).arms(task)[-1], view, seed, others)

    rounds = [(seed, others) for seed in range(4) for others in (0.0, 0.4)]
    whole = [picks(*each) for each in rounds]
    make_small(monkeypatch)
    assert [picks(*each) for each in rounds] == whole


@pytest.mark.parametrize("kind", [MultiClass, MultiLabel])
def test_class_columns_are_read_right_whichever_are_wanted(kind, monkeypatch):
    view = make_view(make_pool(kind(11), 20, seed=0), 0)
    for columns in (32, 3):
        monkeypatch.setattr(tailor.selection.pool_view, "COLUMNS", columns)
        for wanted in ([0], [10, 2], [0, 10, 5, 1], list(range(11)), [7, 3, 3]):
            found = list(view.columns(wanted))
            assert [k for k, _ in found] == wanted
            assert all(torch.equal(column, view.probs[:, k]) for k, column in found)


class Rows:
    """Values that the test lowers, and a count of those that were loaded."""

    def __init__(self, values):
        self.values = values
        self.ids = None
        self.loaded = 0

    def load(self, ids):
        assert len(ids)
        self.ids = ids
        self.loaded = self.loaded + len(ids)
        return self.renew()

    def renew(self):
        return torch.from_numpy(self.values[self.ids.numpy()])


@many(400)
@given(
    st.integers(0, 2**32),
    st.integers(1, 60),
    st.sampled_from([2, 5, 1000]),
    st.sampled_from([1, 4, 2048]),
)
def test_lazy_search_finds_the_largest_of_falling_values(seed, size, grid, buffer):
    """Values fall by random steps, many are equal; ties go to the smallest key."""
    rng = np.random.default_rng(seed)
    values = rng.integers(grid, size=size) / grid
    bounds = np.where(rng.random(size) < 0.2, -np.inf, values + rng.integers(2, size=size) / grid)
    values[bounds == -np.inf] = -np.inf
    ties = rng.permutation(size)
    rows = Rows(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tailor.strategies.lazy_maximum, "BUFFER", buffer)
        patch.setattr(tailor.strategies.lazy_maximum, "MOST", 4 * buffer)
        search = LazyLargest(torch.from_numpy(bounds), rows, ties)
        for _ in range(size):
            index, value = search.largest()
            assert value == values.max()
            if value == -np.inf:
                break
            assert index == min(np.flatnonzero(values == values.max()), key=lambda i: ties[i])
            values[index] = -np.inf
            values -= (rng.random(size) < 0.3) * rng.integers(1, 3, size=size) / grid
            search.remove(torch.tensor([index]))


def test_lazy_search_looks_at_few():
    """20,000 values that never fall: 50 picks load one small buffer, not the pool."""
    values = np.random.default_rng(0).random(20_000)
    rows = Rows(values)
    search = LazyLargest(torch.from_numpy(values.copy()), rows, np.arange(20_000))
    for _ in range(50):
        index, value = search.largest()
        assert value == values.max()
        values[index] = -np.inf
        search.remove(torch.tensor([index]))
    assert 0 < rows.loaded <= 1000


@pytest.mark.parametrize("name", ["badge", "coreset", "submodular"])
def test_a_pool_larger_than_the_buffer(name, monkeypatch):
    """3,000 examples, a third of them copies: as with a buffer that holds them all."""
    picks = []
    for buffer in (64, 256, 10_000):
        monkeypatch.setattr(tailor.strategies.lazy_maximum, "BUFFER", buffer)
        view = make_view(make_pool(MultiClass(3), 3000, seed=5, copies=0.3), 5, labelled=0.02)
        cursor = open_arm(registry.make(name), view, pulls=60)
        for _ in range(60):
            view.ledger.take(cursor.take())
        picks.append(view.ledger.taken.tolist())
    assert picks[0] == picks[1] == picks[2]
