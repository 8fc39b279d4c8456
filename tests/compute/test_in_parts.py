"""What weak-supervision and bald need of a model, computed shard by shard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from point_runs import MODEL, begin, rounds

from tailor import InputError, MultiClass, MultiLabel
from tailor.common import memory
from tailor.compute import whole_pool
from tailor.compute.prediction_shards import PROBS
from tailor.models import make_model, sklearn_model
from tailor.models.base import Model, Notice, quiet
from tailor.models.targets import Targets
from tailor.pools import open_pool
from tailor.run.engine_model_runner import EngineModelRunner

CLASSES = ["red", "green", "blue", "dark"]
TASK = f'kind = "multi-label"\nclasses = {CLASSES}'
FAMILIES = ["uncertainty", "weak-supervision", "bald"]


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """300 vectors, each with some of four labels."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    truth = rng.random((300, 4)) < 0.4
    rows = (np.eye(4, 8)[None] * truth[:, :, None]).sum(1) * 2 + rng.normal(size=(300, 8))
    labels = [[c for c, has in zip(CLASSES, row) if has] for row in truth]
    path = tmp_path_factory.mktemp("points") / "points.parquet"
    pq.write_table(pa.table({"x": list(rows.astype(np.float32)), "label": labels}), path)
    return path


def two_rounds(points, folder, model=MODEL):
    """A session over local shards."""
    given = {
        "model": model,
        "strategies": FAMILIES,
        "task": TASK,
        "selection": "dropout_passes = 3",
    }
    return rounds(begin(folder, points, "local", **given), 2)[0]


def trained(points, **options):
    pool = open_pool(points)
    model = make_model("probe", MultiLabel(CLASSES), pool, device="cpu", **options)
    labels = np.random.default_rng(1).integers(0, 2, (40, 4)).astype(np.float32)
    model.fit(np.arange(40), labels, seed=1)
    return model


@pytest.mark.parametrize(
    "head", [{"head": "hidden", "hidden": 8, "steps": 20}, {"class_weights": "balanced"}]
)
def test_targets_read_in_parts_train_the_same_copy(points, head):
    model = trained(points, batch=32, **head)
    wanted = np.random.default_rng(2).random((300, 4), np.float32)
    largest = 0

    def read(positions):
        nonlocal largest
        largest = max(largest, len(positions))
        return wanted[positions]

    before = model.predict(np.arange(300)).probs
    tuned = model.tuned(Targets(read, np.arange(300), 4), 2, seed=3)
    assert np.array_equal(tuned.predict(np.arange(300)).probs, model.finetune(wanted, 2, seed=3))
    assert largest <= (
        300 if "class_weights" in head else 32
    )  # weights are summed over parts of 16,384 rows
    assert np.array_equal(model.predict(np.arange(300)).probs, before)


@pytest.mark.parametrize("task", [MultiLabel(CLASSES), MultiClass(CLASSES)], ids=lambda t: t.kind)
def test_scikit_learn_reads_few_targets_at_a_time(points, task, monkeypatch):
    """Three classes of four at once, and 64 rows: the copy is the same."""
    model = make_model("sklearn", task, open_pool(points), device="cpu")
    model.fit(np.arange(40), np.eye(4, dtype=np.float32)[np.arange(40) % 4], seed=1)
    wanted = np.random.default_rng(2).random((300, 4), np.float32)
    reads = []
    plain = model.finetune(wanted, 2, seed=3)
    monkeypatch.setattr(sklearn_model, "CHUNK", 64)
    monkeypatch.setattr(sklearn_model, "COLUMNS", 3)

    def read(positions):
        reads.append(len(positions))
        return wanted[positions]

    tuned = model.tuned(Targets(read, np.arange(300), 4), 2, seed=3)
    assert np.array_equal(tuned.predict(np.arange(300)).probs, plain)
    assert reads == [64, 64, 64, 64, 44] * (2 if task.kind == "multi-label" else 1)
    assert [len(probs) for probs in model.dropout_at(np.array([]), 2, seed=1)] == [
        0,
        0,
    ]  # of nothing, too


def test_dropout_at_all_positions_is_dropout(points):
    model = trained(points)
    for ours, wanted in zip(
        model.dropout_at(np.arange(300), 3, seed=5), model.dropout(3, seed=5), strict=True
    ):
        assert np.array_equal(ours, wanted)
    (some,) = model.dropout_at(np.array([7, 250, 3]), 1, seed=5)
    assert some.shape == (3, 4)


def predicted(points, folder, seed):
    """A run, and its predictions with what fine-tuning and dropout make of them."""
    session = two_rounds(points, folder)
    sharded = session.model_runner.predict_all(session.run_state.task)[0]
    session.model_runner.finetune(session.run_state, seed)
    session.model_runner.dropout(session.run_state, 2, seed)
    return session, sharded


def test_the_shards_hold_what_the_model_says(points, tmp_path):
    """The fine-tuned copy's probabilities are those of finetune() on the same targets, up to half
    precision.
    """
    session, sharded = predicted(points, tmp_path / "a", 11)
    targets = sharded.predictions.take(PROBS, slice(0, 300)).astype(np.float32)
    targets[session.run_state.label_table.labelled] = session.run_state.label_table.labels
    found = sharded.finetune(2).take(PROBS, slice(0, 300))
    assert np.abs(found - session.model.finetune(targets, 2, seed=11)).max() < 1e-3
    passes = [one.take(PROBS, slice(0, 300)) for one in sharded.dropout()]
    assert len(passes) == 2
    assert not np.array_equal(*passes)
    alone = [p.mean(0) for p in session.model.dropout(2, seed=0)]
    assert np.abs(np.mean(passes, (0, 1)) - np.mean(alone, 0)).max() < 0.02


def test_shards_of_a_round_that_is_gone_through_again_are_kept(points, tmp_path):
    session, sharded = predicted(points, tmp_path / "a", 0)

    def stamps():
        made = [sharded.finetune(1), *sharded.dropout()]
        return [os.stat(shard.probs).st_mtime_ns for one in made for shard in one]

    first = stamps()
    assert stamps() == first
    os.unlink(list(sharded.dropout())[1][2].probs)
    again = stamps()
    assert [a != b for a, b in zip(first, again)].count(True) == 2  # all passes of that shard
    session.model_runner.dropout(session.run_state, 2, 1)
    assert not set(stamps()[5:]) & set(again)


@pytest.mark.parametrize("name", ["probe", "sklearn"])
def test_nobody_holds_all_rows(name, tmp_path):
    """A pool of 20,000 with 64 classes: 5 MB as float32, and no more than 2 MB at any time."""
    # In a process of its own: memory is counted for all threads, those of other tests' servers too.
    script = Path(__file__).with_name("peak_memory.py")
    measured = subprocess.run(
        [sys.executable, str(script), name, str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert measured.returncode == 0, measured.stderr
    report = json.loads(measured.stdout)
    assert report["shapes"] == [[20_000, 64]] * 3
    assert report["peak"] < 2e6


class Whole(Model):
    """A model of somebody's own, with what was there before models worked in parts."""

    can_finetune = True
    can_dropout = True

    def __init__(self, inner):
        super().__init__(inner.task, inner.pool)
        self._inner = inner
        for name in ("fit", "predict", "save", "load"):
            setattr(self, name, getattr(inner, name))

    def fit(self, *given, **more): ...

    def predict(self, *given, **more): ...

    def save(self, folder): ...

    def load(self, folder): ...

    def finetune(self, targets, epochs, *, seed):
        assert isinstance(targets, np.ndarray)
        return self._inner.finetune(targets, epochs, seed=seed)

    def dropout(self, passes, *, seed):
        return self._inner.dropout(passes, seed=seed)


def test_a_model_that_gives_all_at_once_is_asked_where_there_is_room(points, tmp_path, monkeypatch):
    session = two_rounds(points, tmp_path / "a")
    whole = Whole(session.model)
    model_runner = EngineModelRunner(
        session.pool,
        whole,
        quiet,
        replace(session.model_runner._engine_setup, folder=tmp_path / "whole"),
    )
    model_runner.connect(session.run_state.ids)
    wanted = session.model_runner.predict_all(session.run_state.task)[0]
    ours = model_runner.predict_all(session.run_state.task)[0]
    for one in (session.model_runner, model_runner):
        one.finetune(session.run_state, 3)
        one.dropout(session.run_state, 2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Notice)  # little is held without a word
        tuned = [made.finetune(1).take(PROBS, slice(0, 300)) for made in (wanted, ours)]
    assert np.array_equal(*tuned)
    monkeypatch.setattr(whole_pool, "MUCH", 2 * 4 * 300 * 4 - 1)
    said = (
        r"Whole has no tuned\(\), so 300 examples x 4 classes are held at once, which takes "
        r".* weak-supervision out"
    )
    with pytest.warns(Notice, match=said):
        ours.finetune(1)
    assert len(list(ours.dropout())) == 2  # half as much
    monkeypatch.setattr(memory, "available_memory", lambda: 4 * 300 * 4 - 1)
    said = (
        r"no dropout_at\(\), so 300 .* takes 0.0 GiB of memory and 0.0 GiB are free: give "
        r"Whole .* or leave bald out"
    )
    with pytest.raises(InputError, match=said):
        ours.dropout()


def test_scikit_learn_says_that_it_needs_all_vectors(points, monkeypatch):
    pool = open_pool(points)
    model = make_model("sklearn", MultiLabel(CLASSES), pool, device="cpu")
    model.fit(
        np.arange(40), np.random.default_rng(1).integers(0, 2, (40, 4)).astype(np.float32), seed=1
    )
    monkeypatch.setattr(memory, "available_memory", lambda: 4 * 300 * 8 - 1)
    with pytest.raises(
        InputError,
        match=r"training scikit-learn on 300 vectors of 8 numbers takes .* take a network",
    ):
        model.finetune(np.full((300, 4), 0.5, np.float32), 1, seed=0)
    monkeypatch.setattr(memory, "available_memory", lambda: 4 * 300 * 8)
    with pytest.raises(
        InputError, match="a fine-tuned copy of a scikit-learn model can't be saved"
    ):
        model.tuned(np.full((300, 4), 0.5, np.float32), 1, seed=0).save(None)


@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("model", ["probe(head=hidden, hidden=16, steps=40)", "sklearn"])
def test_a_cluster_says_what_local_shards_say(engine, model, points, tmp_path):
    """Of the fine-tuned copy; bald's passes on a cluster: test_session."""
    session = two_rounds(points, tmp_path / "a", model)
    local = session.model_runner
    found = []
    cluster = EngineModelRunner(
        session.pool,
        session.model,
        quiet,
        replace(local._engine_setup, engine=engine, folder=tmp_path / "cluster"),
    )
    cluster.connect(session.run_state.ids)
    made = local.predict_all(session.run_state.task)[0].predictions
    for model_runner in (local, cluster):
        model_runner.finetune(session.run_state, 3)
        found.append(model_runner._tuned(made)(1).take(PROBS, slice(0, 300)))
    assert np.array_equal(*found)
