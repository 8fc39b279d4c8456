"""The ray engine on a cluster of several nodes: the same picks, also when workers, nodes and the
driver are lost.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from losses import Losing, square, when

from tailor import InputError, MultiClass, MultiLabel
from tailor.compute import LocalEngine, Predictions, ray_engine
from tailor.compute.distributed_training import fit_together
from tailor.compute.ray_engine import RayEngine
from tailor.selection.array_view import ArrayView
from tailor.selection.round import Round
from tailor.strategies import make_arms
from tailor.testing import make_pool, make_view
from tailor.testing.engines import check_same_learning, check_same_picks, families_for, in_shards

pytestmark = pytest.mark.xdist_group("ray")


@pytest.mark.parametrize("task", [MultiClass(4), MultiLabel(3)], ids=lambda t: t.kind)
@pytest.mark.parametrize(
    "state", [{"labelled": 0.2, "pending": 0.1}, {"labelled": 0.0}], ids=["some", "none"]
)
def test_every_family_picks_the_same(engine, task, state, tmp_path):
    pool = make_pool(task, 60, seed=1, grid=64, copies=0.2)
    check_same_picks(engine, pool, families_for(task), tmp_path, seed=4, shard=16, **state)


@pytest.mark.parametrize(
    ("selector", "task"),
    [("albl", MultiLabel(3)), ("comb", MultiClass(4)), ("deal", MultiClass(4))],
    ids=lambda p: getattr(p, "kind", p),
)
def test_selectors_learn_the_same(engine, selector, task, tmp_path):
    check_same_learning(
        engine, make_pool(task, 60, seed=1, grid=64), selector, tmp_path, shard=30, rounds=2
    )


@pytest.mark.parametrize(
    ("mode", "task"),
    [("predicted", MultiClass(4)), ("revealed", MultiClass(4)), ("revealed", MultiLabel(3))],
    ids=lambda p: getattr(p, "kind", p),
)
def test_galaxy_with_labels_that_come_during_the_round(engine, mode, task, tmp_path):
    """Three picks, then their labels, and so on: the cluster's shards bring what local ones
    bring.
    """
    pool = make_pool(task, 90, seed=8)
    plan = np.random.default_rng(1).integers(0, task.size, 24)
    found = []
    visits = []
    for number, runs in enumerate((LocalEngine(), engine)):
        view = in_shards(
            runs, pool, make_view(pool, 3, labelled=0.2, pending=0.1), tmp_path / runs.name, 45, 3
        )
        visits.append(0)

        def counted(job, *more, number=number, visit=view.visit):
            visits[number] += 1
            return visit(job, *more)

        view.visit = counted
        walk = Round(view, make_arms([f"galaxy(pending={mode})"], task), plan, 5)
        picks = []
        while not walk.over:
            picks += (some := [walk.next() for _ in range(3)])
            for pick in some:
                walk.reveal(pick.index, pool.truth[pick.index])
        found.append([(pick.index, pick.arm) for pick in picks])
    assert found[0] == found[1]
    assert (
        visits[0] == visits[1] >= (2 if mode == "revealed" else 1)
    )  # a cut that opened elsewhere was fetched


@pytest.mark.usefixtures("engine")
def test_token_authentication_is_on_and_only_loopback_listens(nodes):
    from ray._raylet import AuthenticationMode, get_authentication_mode

    assert get_authentication_mode() == AuthenticationMode.TOKEN
    host, port = nodes.address.rsplit(":", 1)
    assert host == "127.0.0.1"
    outside = {a[4][0] for a in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in outside - {"127.0.0.1"}:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((address, int(port)), timeout=5)


def test_workers_killed_in_the_middle_of_a_round(engine, tmp_path):
    """SIGKILL of the process that runs a shard's task, in two passes over the pool."""
    killed = []

    def kill(pid, node):
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    losing = Losing(engine, tmp_path, kill)
    pool = make_pool(MultiClass(4), 60, seed=2)
    check_same_picks(
        losing, pool, families_for(pool.task), tmp_path, seed=6, shard=16, labelled=0.2
    )
    assert not losing.problems
    assert len(killed) == 2


def test_a_node_leaves_in_the_middle_of_a_round_and_one_joins(engine, nodes, tmp_path):
    def leave(pid, node):
        gone = next(n for n in nodes.nodes if n.node_id == node)
        nodes.remove(gone)
        nodes.nodes.remove(gone)

    def join():
        nodes.nodes.append(nodes.add())

    losing = Losing(engine, tmp_path, leave, at=(1,), after=join)
    pool = make_pool(MultiLabel(3), 60, seed=1)
    check_same_picks(
        losing, pool, families_for(pool.task), tmp_path, seed=2, shard=16, labelled=0.2
    )
    assert not losing.problems
    assert len(nodes.nodes) == 2
    when(lambda: engine.workers == 2)  # the cluster counts a dead node for a moment


def test_a_driver_that_is_killed_and_started_again(nodes, tmp_path):
    pool = make_pool(MultiClass(4), 80, seed=3)
    labelled = np.arange(0, 80, 5)
    plan = np.random.default_rng(0).integers(0, 7, 40)
    labels = pool.truth[labelled]
    view = ArrayView(pool.task, pool.probs, pool.features, labelled=labelled, labels=labels, seed=7)
    arms = make_arms(["galaxy", "confidence", "badge", "coreset"], pool.task)
    wanted = Round(view, arms, plan, 7).batch().indices.tolist()

    made = Predictions(
        str(tmp_path / "predictions"), 80, 4, pool.features.shape[1], "float64", shard=16
    )
    made.write_all(pool.probs, pool.features)
    np.savez(tmp_path / "state.npz", labelled=labelled, labels=labels, plan=plan)
    script = Path(__file__).with_name("restarted_driver.py")
    marker = tmp_path / "half"
    command = [sys.executable, script, nodes.address, made.folder, tmp_path / "state.npz", marker]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as first:
        when(lambda: marker.exists() or first.poll() is not None)
        first.kill()
        assert not first.stdout.read()
    second = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(second.stdout.splitlines()[-1]) == wanted


def test_map_keeps_the_order_and_raises_what_a_task_raised(engine):
    calls = [(number,) for number in range(9)]
    assert engine.map(square, calls, shared=2) == LocalEngine().map(square, calls, shared=2)
    with pytest.raises(InputError, match=r"^number -3 is no good$"):
        engine.map(square, [(1,), (-3,)], shared=1)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {"cpus": 64},
            "with cpus = 64 and gpus = 0; its largest node has cpus = 1 and gpus = 0: ask for "
            "less, or",
        ),
        (
            {"gpus": 2},
            "with cpus = 1 and gpus = 2; its largest node has cpus = 1 and gpus = 0: ask for "
            "less, or",
        ),
        ({"gpus": 0.5}, "with cpus = 1 and gpus = 0.5; its largest node"),
    ],
    ids=["cpus", "gpus", "half a GPU"],
)
def test_resources_that_no_node_has_are_named_at_once(nodes, asked, said):
    with pytest.raises(InputError, match=f"the Ray cluster has no room for a worker {said}"):
        RayEngine(nodes.address, **asked)


@pytest.mark.usefixtures("engine")
def test_a_node_that_is_needed_and_gone_is_missed(nodes, monkeypatch):
    """In the middle of a run."""
    monkeypatch.setattr(ray_engine, "PATIENCE", 1.0)
    large = nodes.add(num_cpus=2)
    engine = RayEngine(nodes.address, cpus=2)
    assert engine.workers == 1
    nodes.cluster.remove_node(large)
    with pytest.raises(
        InputError, match=r"no room for a worker with cpus = 2 and gpus = 0; .* has cpus = 1"
    ):
        engine.map(square, [(3,)], shared=1)
    with pytest.raises(InputError, match="no room for a worker with cpus = 2"):
        engine.map_with(list, square, [(3,)])


@pytest.mark.usefixtures("engine")
def test_a_node_that_goes_before_the_work_begins_is_missed(nodes, monkeypatch):
    large = nodes.add(num_cpus=2)
    engine = RayEngine(nodes.address, cpus=2)
    count = RayEngine._room
    seen = []

    def count_and_lose(engine, gpus):
        seen.append(count(engine, gpus))
        if len(seen) == 1:
            nodes.cluster.remove_node(large)
        return seen[-1]

    monkeypatch.setattr(RayEngine, "_room", count_and_lose)
    with pytest.raises(InputError, match="no room for a worker with cpus = 2"):
        engine.map_with(list, square, [(3,)])
    assert seen[:2] == [1, 0]


def test_more_training_workers_than_fit_are_named(engine, tmp_path):
    with pytest.raises(
        InputError, match="room for 2 of 3 workers with cpus = 1 and gpus = 0; its largest"
    ):
        fit_together(engine, None, np.arange(3), np.eye(3), seed=0, workers=3, folder=tmp_path)
