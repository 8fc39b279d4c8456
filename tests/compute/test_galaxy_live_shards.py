"""galaxy over shards where labels stand in or come during the round: the picks are those in
memory.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from cases import cases, many, others, reveal_some, walk
from hypothesis import given
from hypothesis import strategies as st

from tailor.compute import LocalEngine, part_view
from tailor.compute.sharded_view import ShardedView
from tailor.strategies.galaxy import sharded_graph
from tailor.strategies.galaxy.galaxy import Galaxy
from tailor.strategies.galaxy.galaxy_all import GalaxyAll
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view
from tailor.testing.engines import in_shards

MODES = ["predicted", "revealed"]


@pytest.fixture
def short_parts(monkeypatch):
    """Several parts to a shard, and galaxy looks only one rank around its cuts at first."""
    monkeypatch.setattr(part_view, "CHUNK", 3)
    monkeypatch.setattr(sharded_graph, "REACH", 1)


def tell_again(view, pool, share):
    """A step that tells labels of earlier rounds anew, some of them changed, and of what is
    pending, and withdraws some.
    """
    others = [*view.labelled.tolist(), *view.pending.tolist()]

    def step(rng):
        for i in others:
            if rng.random() < share / 20:
                view.ledger.reveal(i, np.roll(pool.truth[i], int(rng.integers(2))))
            if rng.random() < share / 20:
                view.ledger.withdraw(i)

    return step


def picks(view, case, strategy, klass, share, reveal):
    """All picks of an arm, with others taking in between and labels coming."""
    cursor = strategy.arms(view.task)[klass].open(view, 3, np.random.default_rng(0))
    found = []
    some = reveal_some(view, case.pool, reveal)
    again = tell_again(view, case.pool, reveal)

    def after(rng):
        some(rng)
        again(rng)

    walk(view, cursor, case.seed, share, found.append, after)
    return found


def check(case, strategy, klass, share, reveal, shard):
    with tempfile.TemporaryDirectory() as folder:
        sharded = in_shards(LocalEngine(), case.pool, case.view(), Path(folder), shard, case.seed)
        assert isinstance(sharded, ShardedView)
        sharded.columns = None  # no whole column is ever asked for
        ours = picks(sharded, case, strategy, klass, share, reveal)
    assert ours == picks(case.view(), case, strategy, klass, share, reveal)


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("mode", MODES)
@many(150)
@given(cases(), others, st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([4, 100]))
def test_one_class(mode, case, share, reveal, shard):
    check(case, Galaxy(pending=mode), case.seed % case.task.size, share, reveal, shard)


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("mode", MODES)
@many(50)
@given(cases(kinds=(MultiClass,)), others, st.sampled_from([0.0, 0.3, 1.0]))
def test_all_classes(mode, case, share, reveal):
    check(case, GalaxyAll(pending=mode), 0, share, reveal, 7)


@pytest.mark.parametrize("kind", [MultiClass, MultiLabel])
@pytest.mark.parametrize("mode", MODES)
def test_a_line_holds_a_small_part_of_the_pool(mode, kind, tmp_path):
    """With 200 of 4,000 labelled and 60 taken: less than half of the columns. The model's own
    labels open no cut that was not fetched at first; others do, now and then.
    """
    pool = make_pool(kind(5), 4000, seed=3, dims=8)
    view = in_shards(LocalEngine(), pool, make_view(pool, 3, labelled=0.05), tmp_path, 500, 3)
    visits = []
    visit = view.visit
    view.visit = lambda job, *more: (visits.append(job), visit(job, *more))[1]
    graphs = []
    for klass in range(5):
        cursor = open_arm_over(view, Galaxy(pending=mode), klass)
        for _ in range(12):
            index = cursor.take()
            view.ledger.take(index)
            view.ledger.reveal(index, pool.truth[index])
        graphs += cursor._graphs
    assert sum(len(graph.line.ids) for graph in graphs) < 0.5 * 5 * 4000
    assert len(visits) == 5 if mode == "predicted" else 5 < len(visits) < 15


def open_arm_over(view, strategy, klass):
    return strategy.arms(view.task)[klass].open(view, 12, np.random.default_rng(0))
