"""Benchmark trials as tasks of a cluster give the rows that they give in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("ray")
sys.path.insert(0, str(Path(__file__).parents[1] / "experiment"))


MEASURED = ("contender", "seed", "round", "labels", "score", "test_score", "pulls", "rarest", "positives")


def results(rows):
    """All that does not depend on the machine."""
    return sorted([str(row[name]) for name in MEASURED] for row in rows)


def test_trials_on_a_cluster(engine, tmp_path):
    from digits_experiment import SMALL, run_here

    from tailor.bench.experiment.ray_runner import run
    from tailor.bench.experiment.run import prepare

    wanted = run_here(SMALL, tmp_path / "here")
    full = prepare(SMALL, tmp_path / "there")
    found = list(run(engine, full, tmp_path / "there"))
    assert results(found) == results(wanted)
    assert list(run(engine, full, tmp_path / "there")) == []
