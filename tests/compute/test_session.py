"""A whole run with its predictions in shards, by the setting of an engine."""

from __future__ import annotations

import numpy as np
import pytest
from point_runs import begin, make_points, rounds

from tailor import InputError
from tailor.compute.sharded_view import ShardedView
from tailor.run.project import Project


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    return make_points(tmp_path_factory.mktemp("points"))


def test_a_run_over_shards_goes_on_after_it_was_closed(points, tmp_path):
    session, asked = rounds(begin(tmp_path / "a", points, "local"), 3)
    assert isinstance(session.session_round.arms.view, ShardedView)
    assert all(len(ids) == 12 for ids in asked)
    folder = begin(tmp_path / "b", points, "local")
    first, _ = rounds(folder, 2)
    first.store.close()
    again = Project(folder).session()
    some = again.ask(5).ids
    again.store.close()  # in the middle of a round
    rest = Project(folder).session()
    assert some + rest.ask().ids == asked[2]
    assert isinstance(rest.session_round.arms.view, ShardedView)


def test_picks_are_those_of_memory_where_nothing_is_near(points, tmp_path):
    """float16 shards and float32 in memory agree on the seed round and on most of the next."""
    _, shards = rounds(begin(tmp_path / "a", points, "local"), 2)
    _, memory = rounds(begin(tmp_path / "b", points, "memory"), 2)
    assert shards[0] == memory[0]
    assert len(set(shards[1]) & set(memory[1])) >= 9


HEAD_FAMILIES = ["base", "deepfool(steps=2)", "bait", "lookahead", "committee(members=2)"]


@pytest.mark.parametrize("model", ["probe", "probe(head=hidden, hidden=16, steps=40)"])
@pytest.mark.parametrize("engine", ["memory", "local"])
def test_the_model_hands_its_head_and_its_gradients_to_the_arms(points, tmp_path, engine, model):
    folder = begin(tmp_path / "run", points, engine, model=model, strategies=HEAD_FAMILIES)
    session, asked = rounds(folder, 3)
    view = session.session_round.arms.view
    width = 16 if "hidden" in model else 8
    assert view.head.weights.shape == (3, width)
    assert (view.head.ridge is None) == ("hidden" in model)
    distances = view.boundary_distances(np.arange(5), 2)
    assert np.isfinite(distances).all()
    assert len({one for ids in asked for one in ids}) == 36


def test_a_model_without_gradients_is_refused_with_the_way_out(points, tmp_path):
    folder = begin(
        tmp_path / "run", points, "local", model="sklearn", strategies=["deepfool(steps=2)"]
    )
    with pytest.raises(InputError, match=r"take deepfool\(steps=0\)"):
        rounds(folder, 2)


@pytest.mark.parametrize(
    ("engine", "more", "message"),
    [
        ("rey", "", "unknown engine 'rey': did you mean 'ray'"),
        ("local", "workers = 0", "workers is 0: at least 1"),
    ],
)
def test_a_wrong_setting_is_named_with_its_line(points, tmp_path, engine, more, message):
    folder = begin(tmp_path / "a", points, engine, more)
    with pytest.raises(InputError, match=f"tailor.toml, line 1[1-9].*{message}"):
        Project(folder).session()


@pytest.mark.xdist_group("ray")
def test_a_run_on_a_cluster_picks_what_one_over_local_shards_picks(engine, nodes, points, tmp_path):
    folder = begin(tmp_path / "a", points, "ray", f'address = "{nodes.address}"')
    Project(folder, trust=True)
    session, cluster = rounds(folder, 2)
    assert session.session_round.arms.view.engine.name == "ray"
    assert cluster == rounds(begin(tmp_path / "b", points, "local"), 2)[1]
