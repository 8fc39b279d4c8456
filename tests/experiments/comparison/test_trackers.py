"""Trackers, against the real packages: what was handed on can be read back."""

from __future__ import annotations

import subprocess
import sys

import parts
import pytest

from tailor.errors import InputError
from tailor_experiments.comparison import trackers
from tailor_experiments.comparison.trackers import make_tracker


def fail(text):
    raise AssertionError(text)


def track(name, out, rows):
    tracker = make_tracker(name, out, fail)
    for row in rows:
        tracker.row(row)
    tracker.close()


@pytest.fixture
def rows(whole):
    """The four rows of one trial."""
    return [r for r in whole[1] if r["contender"] == "TAILOR" and r["seed"] == 0]


def test_tensorboard(rows, tmp_path):
    parts.need("TensorBoard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    track("tensorboard", tmp_path, rows[:2])
    track("tensorboard", tmp_path, rows[2:])  # taken up again
    events = EventAccumulator(str(tmp_path / "tensorboard" / "small" / "TAILOR" / "0"))
    events.Reload()
    found = [(event.step, event.value) for event in events.Scalars("score")]
    assert found == [(r["labels"], pytest.approx(r["score"])) for r in rows]
    arm, count = next(iter(rows[-1]["pulls"].items()))
    assert events.Scalars(f"pulls/{arm}")[-1].value == count


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory):
    parts.need("MLflow")
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}")
    yield mlflow
    mlflow.set_tracking_uri(before)


def test_mlflow(rows, tmp_path, mlflow):
    track("mlflow", tmp_path, rows[:2])
    track("mlflow", tmp_path, rows[2:])  # taken up again: the same run
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("small").experiment_id])
    assert (run.info.run_name, run.info.status) == ("small/TAILOR/0", "FINISHED")
    assert (run.data.params["contender"], run.data.params["config"]) == (
        "TAILOR",
        rows[0]["config"],
    )
    found = [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, "score")]
    assert sorted(found) == [(r["labels"], pytest.approx(r["score"])) for r in rows]
    assert any(key.startswith("pulls/galaxy") for key in run.data.metrics)


OFFLINE = """
import json, sys
from pathlib import Path
from tailor_experiments.comparison.trackers import TRACKERS
tracker = TRACKERS["wandb"](Path(sys.argv[1]))
for row in json.load(sys.stdin):
    tracker.row(row)
(run,) = tracker.runs.values()
scores = [run.summary["score"], run.summary["labels"]]
print(json.dumps([run.name, run.project, *scores, run.config["contender"]]))
tracker.close()
"""


def test_weights_and_biases_offline(rows, tmp_path):
    """In a process of its own: W&B leaves a service behind that outlives a run."""
    parts.need("Weights & Biases")
    import json
    import os

    environment = {
        **os.environ,
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(tmp_path / "out")],
        input=json.dumps(rows),
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    last = rows[-1]
    expected = ["small/TAILOR/0", "small", pytest.approx(last["score"]), last["labels"], "TAILOR"]
    assert json.loads(done.stdout.splitlines()[-1]) == expected
    (kept,) = (tmp_path / "out" / "wandb").glob("offline-run-*/*.wandb")
    assert kept.stat().st_size > 500


def test_one_that_is_not_installed(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(trackers, "import_module", missing)
    for name in trackers.TRACKERS:
        with pytest.raises(InputError, match="is not installed: pip install"):
            make_tracker(name, tmp_path, fail)


def test_one_that_fails_does_not_end_the_run(rows, tmp_path, mlflow):
    """Its run is deleted in the middle: said once, and the rows go on."""
    said = []
    rows = [{**row, "experiment": "deleted"} for row in rows]
    tracker = make_tracker("mlflow", tmp_path, said.append)
    tracker.row(rows[0])
    tracker._tracker.client.delete_run(*tracker._tracker.runs.values())
    for row in rows[1:]:
        tracker.row(row)
    tracker.close()
    assert len(said) == 1
    assert said[0].startswith("mlflow gets no more rows, the trials go on: ")
