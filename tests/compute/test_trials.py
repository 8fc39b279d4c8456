"""Benchmark trials as tasks of a cluster give the rows that they give in this process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from clusters import NODE
from losses import square

from tailor import InputError

pytestmark = pytest.mark.xdist_group("ray")
sys.path.insert(0, str(Path(__file__).parents[1] / "experiments" / "comparison"))


MEASURED = (
    "contender",
    "seed",
    "round",
    "labels",
    "score",
    "test_score",
    "pulls",
    "rarest",
    "positives",
)


def results(rows):
    """All that does not depend on the machine."""
    return sorted([str(row.get(name)) for name in MEASURED] for row in rows)


def test_trials_on_a_cluster(engine, tmp_path):
    from digits_experiment import SMALL, run_here

    from tailor_experiments.comparison.ray_runner import run
    from tailor_experiments.comparison.run import prepare

    wanted = run_here(SMALL, tmp_path / "here")
    full = prepare(SMALL, tmp_path / "there")
    found = list(run(engine, full, tmp_path / "there"))
    assert results(found) == results(wanted)
    assert list(run(engine, full, tmp_path / "there")) == []


TOML = """
[experiment]
name = "points"
batch = 10
rounds = 1
trials = 1
[data]
path = "points.parquet"
options = {label = "label"}
[model]
name = "probe(steps=5)"
device = "cpu"
[[contender]]
label = "random"
selector = "random-meta"
families = ["random"]
"""


@pytest.fixture
def bench_run(nodes, tmp_path):
    """`tailor bench run` with paths that only hold in its own folder, which is not the
    cluster's.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    labels = np.where(rows[:, 0] > 0, "a", "b")
    pq.write_table(pa.table({"x": list(rows), "label": labels}), tmp_path / "points.parquet")
    (tmp_path / "e.toml").write_text(TOML)

    def run(*more):
        words = [
            sys.executable,
            "-m",
            "tailor",
            "bench",
            "run",
            "e.toml",
            "--cache",
            "features",
            *more,
        ]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    return run


def test_the_command_in_another_folder_than_the_clusters(nodes, bench_run, tmp_path):
    from tailor_experiments.comparison.rows import load_rows

    there = bench_run("--ray", nodes.address, "--out", "there")
    here = bench_run("--out", "here")
    assert there.returncode == here.returncode == 0, there.stderr + here.stderr
    assert "2 rows in there" in there.stdout
    assert results(load_rows(tmp_path / "there")) == results(load_rows(tmp_path / "here"))
    assert not Path(
        "features"
    ).exists()  # of the workers' own, in the folder in which the cluster was started


def test_a_trial_gets_the_cores_and_gpus_that_it_asks_for(nodes, bench_run):
    """The nodes have a core each, and no GPU; then one joins that has what is asked for."""
    asked = ("--ray", nodes.address, "--cpus", "2", "--gpus", "0.5")
    refused = bench_run(*asked)
    assert refused.returncode == 2, refused.stderr
    assert "no room for a worker with cpus = 2 and gpus = 0.5" in refused.stderr
    node = nodes.cluster.add_node(**NODE, num_cpus=2, num_gpus=1)
    try:
        done = bench_run(*asked)
        assert done.returncode == 0, done.stderr
    finally:
        nodes.cluster.remove_node(node)


@pytest.mark.usefixtures("engine")
def test_a_node_that_trials_need_and_is_gone_is_missed(nodes, monkeypatch):
    from tailor.compute.ray_engine import RayEngine
    from tailor_experiments.comparison import ray_runner

    monkeypatch.setattr(ray_runner, "PATIENCE", 1.0)
    large = nodes.add(num_cpus=2)
    engine = RayEngine(nodes.address, cpus=2)
    nodes.cluster.remove_node(large)
    with pytest.raises(InputError, match="no room for a worker with cpus = 2"):
        list(ray_runner.run_all(engine, square, [(1, 3)]))


def test_what_a_trial_gets_on_a_cluster_needs_one(bench_run):
    for option in ("--cpus", "--gpus"):
        refused = bench_run(option, "1")
        assert refused.returncode == 2
        assert "give the cluster's address with --ray" in refused.stderr
