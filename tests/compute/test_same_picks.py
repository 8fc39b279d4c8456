"""A round over shards in this process picks what the same round in memory picks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from cases import cases, many
from hypothesis import given
from hypothesis import strategies as st

from tailor import InputError, Learner, MultiClass, MultiLabel
from tailor.bandits import registry as selectors
from tailor.compute import LocalEngine, Predictions, Sharded, part_view
from tailor.compute.sharded_view import ShardedView
from tailor.selection.pool_view import PoolView
from tailor.strategies import direct, registry
from tailor.strategies.galaxy import sharded_graph
from tailor.testing import make_pool
from tailor.testing.engines import check_same_learning, check_same_picks, families_for

KINDS = {kind.kind: kind for kind in (MultiClass, MultiLabel)}
PAIRS = [(name, kind) for name in registry for kind in sorted(registry.find(name).tasks)]
MODES = [(f"galaxy(pending={mode})", kind) for mode in ("predicted", "revealed") for kind in KINDS]


LEARNERS = [name for name in selectors if selectors.find(name).needs_fit]


def check(case, families, shard, dtype=np.float64):
    state = {
        "labelled": case.labelled,
        "pending": case.pending,
        "skipped": case.skipped,
        "never": case.never,
    }
    with tempfile.TemporaryDirectory() as folder:
        check_same_picks(
            LocalEngine(),
            case.pool,
            families,
            Path(folder),
            seed=case.seed,
            shard=shard,
            dtype=dtype,
            **state,
        )


@pytest.fixture
def short_parts(monkeypatch):
    """Several parts to a shard; galaxy looks only one rank around its cuts at first, and direct has
    one example to spare.
    """
    monkeypatch.setattr(part_view, "CHUNK", 3)
    monkeypatch.setattr(sharded_graph, "REACH", 1)
    monkeypatch.setattr(direct, "SPARE", 1)


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize(("name", "kind"), PAIRS + MODES)
def test_every_family(name, kind):
    @many(40)
    @given(cases(kinds=(KINDS[kind],)), st.sampled_from([1, 4, 7, 100]))
    def run(case, shard):
        check(case, [name], shard)

    run()


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("kind", KINDS)
def test_all_families_in_one_round(kind):
    @many(30)
    @given(cases(kinds=(KINDS[kind],), sizes=(20, 60)), st.sampled_from([5, 16]))
    def run(case, shard):
        check(case, families_for(case.task), shard)

    run()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_a_round_that_covers_what_its_arms_propose(kind, dtype, tmp_path):
    pool = make_pool(KINDS[kind](4), 300, seed=3, dims=8)
    check_same_picks(
        LocalEngine(),
        pool,
        ["auto", "random"],
        tmp_path,
        seed=5,
        shard=64,
        dtype=dtype,
        labelled=0.05,
        cover=True,
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_a_larger_pool(kind, dtype, tmp_path):
    pool = make_pool(KINDS[kind](6), 2000, seed=3, dims=8)
    families = [f for f in families_for(pool.task) if f != "cluster-margin"]
    check_same_picks(
        LocalEngine(), pool, families, tmp_path, seed=5, shard=300, dtype=dtype, labelled=0.05
    )


@pytest.mark.parametrize("kind", KINDS)
def test_rounds_of_a_loop(kind, tmp_path):
    """Asked and told for three rounds, a loop over shards and one over arrays ask for the same
    examples.
    """
    pool = make_pool(KINDS[kind](4), 200, seed=9)
    families = [f for f in families_for(pool.task) if f not in ("weak-supervision", "bald")]
    probs = pool.probs.astype(np.float32)
    features = pool.features.astype(np.float32)
    made = Predictions(str(tmp_path), 200, 4, features.shape[1], "float32", shard=64).write_all(
        probs, features
    )
    sharded = Sharded(made, LocalEngine())
    assert len(sharded) == 200
    assert np.array_equal(sharded[7], probs[7])
    assert np.array_equal(sharded[[150, 3]], probs[[150, 3]])
    learners = [
        Learner(pool.task, 200, strategies=families, batch=15, selector="albl") for _ in range(2)
    ]
    for learner in learners:
        learner.tell(np.arange(10), pool.truth[:10])
    for _ in range(3):
        first = learners[0].ask(probs, features)
        second = learners[1].ask(sharded)
        assert first.indices.tolist() == second.indices.tolist()
        for learner in learners:
            learner.tell(first.indices, pool.truth[first.indices])


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("selector", LEARNERS)
@pytest.mark.parametrize("kind", KINDS)
def test_selectors_that_ask_how_the_model_fares(selector, kind, tmp_path):
    """No process reads all predictions for them, and they learn the same to the last bit."""
    pool = make_pool(KINDS[kind](4), 90, seed=9, grid=64)
    check_same_learning(LocalEngine(), pool, selector, tmp_path)


def test_the_contract_finds_who_reads_all_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(ShardedView, "count_predicted", PoolView.count_predicted)
    with pytest.raises(
        AssertionError, match="90 rows of probs were taken at once, of a pool of 90"
    ):
        check_same_learning(LocalEngine(), make_pool(MultiClass(4), 90, seed=9), "comb", tmp_path)


def test_the_wrong_shape_and_bad_numbers_are_named(tmp_path):
    pool = make_pool(MultiClass(4), 50, seed=9)
    made = Predictions(str(tmp_path), 50, 4, dtype="float64", shard=16).write_all(pool.probs)
    with pytest.raises(InputError, match=r"shape \(50, 4\): 3 columns are needed"):
        Sharded(made, LocalEngine()).round_view(MultiClass(3))
    bad = pool.probs.copy()
    bad[40, 2] = np.nan
    made.write_all(bad)
    with pytest.raises(InputError, match="probability nan of example 40, class '2', is not finite"):
        Sharded(made, LocalEngine()).round_view(pool.task)
