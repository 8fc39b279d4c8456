"""What weak-supervision and bald need of a model, computed shard by shard."""

from __future__ import annotations

import os
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from tailor import MultiLabel
from tailor.engine import LocalEngine
from tailor.engine.bridge import EngineBridge, Plant
from tailor.engine.shards import PROBS
from tailor.journal import Journal
from tailor.models import make_model
from tailor.models.base import quiet
from tailor.models.targets import Targets
from tailor.pools import open_pool
from tailor.project import Project
from tailor.settings import Settings

CLASSES = ["red", "green", "blue", "dark"]
TOML = """
[task]
kind = "multi-label"
classes = ["red", "green", "blue", "dark"]
[pool]
path = "{pool}"
label = "label"
[model]
name = "probe(head=hidden, hidden=16, steps=40)"
[selection]
families = ["uncertainty", "weak-supervision", "bald"]
batch = 12
holdout = 0.0
dropout_passes = 3
[engine]
name = "local"
shard = 64
"""


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


def two_rounds(points, folder):
    """A session over local shards; everything is answered by the known labels."""
    folder.mkdir()
    (folder / "tailor.toml").write_text(TOML.format(pool=points))
    session = Project(folder).session()
    known = session.pool.labels()
    for _ in range(2):
        session.tell({one: known[one] for one in session.ask().ids})
    return session


def trained(points, **options):
    pool = open_pool(points)
    model = make_model("probe", MultiLabel(CLASSES), pool, device="cpu", **options)
    labels = np.random.default_rng(1).integers(0, 2, (40, 4)).astype(np.float32)
    model.fit(np.arange(40), labels, seed=1)
    return model


@pytest.mark.parametrize("head", [{"head": "hidden", "hidden": 8, "steps": 20}, {"class_weights": "balanced"}])
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
    assert largest <= (300 if "class_weights" in head else 32)  # weights are summed over parts of 16,384 rows
    assert np.array_equal(model.predict(np.arange(300)).probs, before)


def test_dropout_at_all_positions_is_dropout(points):
    model = trained(points)
    for ours, wanted in zip(model.dropout_at(np.arange(300), 3, seed=5), model.dropout(3, seed=5), strict=True):
        assert np.array_equal(ours, wanted)
    (some,) = model.dropout_at(np.array([7, 250, 3]), 1, seed=5)
    assert some.shape == (3, 4)


def predicted(points, folder, seed):
    """A run, and its predictions with what fine-tuning and dropout make of them."""
    session = two_rounds(points, folder)
    sharded = session.bridge.predict_all(session.journal.task)[0]
    session.bridge.finetune(session.journal, seed)
    session.bridge.dropout(session.journal, 2, seed)
    return session, sharded


def test_the_shards_hold_what_the_model_says(points, tmp_path):
    """The fine-tuned copy's probabilities are those of finetune() on the same targets, up to half precision."""
    session, sharded = predicted(points, tmp_path / "a", 11)
    targets = sharded.predictions.take(PROBS, slice(0, 300)).astype(np.float32)
    targets[session.journal.books.labelled] = session.journal.books.labels
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
    session.bridge.dropout(session.journal, 2, 1)
    assert not set(stamps()[5:]) & set(again)


def test_nobody_holds_all_rows(tmp_path):
    """A pool of 20,000 with 64 classes: 5 MB as float32, and no more than 2 MB at any time."""
    np.save(tmp_path / "points.npy", np.random.default_rng(0).normal(size=(20_000, 4)).astype(np.float16))
    pool, task = open_pool(tmp_path / "points.npy"), MultiLabel(64)
    model = make_model("probe", task, pool, head="hidden", hidden=8, steps=5, batch=512, device="cpu")
    model.fit(np.arange(50), np.random.default_rng(1).integers(0, 2, (50, 64)).astype(np.float32), seed=0)
    bridge = EngineBridge(pool, model, quiet, Plant(LocalEngine(), tmp_path, None, shard=1000))
    journal = Journal(Settings("multi-label", tuple(task.classes)))
    bridge.connect(list(pool.ids))
    tracemalloc.start()
    try:
        sharded = bridge.predict_all(task)[0]
        bridge.finetune(journal, 0)
        bridge.dropout(journal, 2, 0)
        made = [sharded.finetune(1), *sharded.dropout()]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [one.shape for one in made] == [(20_000, 64)] * 3
    assert peak < 2e6


@pytest.mark.xdist_group("ray")
def test_a_cluster_says_what_local_shards_say(engine, points, tmp_path):
    """Of the fine-tuned copy; bald's passes on a cluster: test_session."""
    session = two_rounds(points, tmp_path / "a")
    local, found = session.bridge, []
    cluster = EngineBridge(
        session.pool, session.model, quiet, replace(local._plant, engine=engine, folder=tmp_path / "cluster")
    )
    cluster.connect(session.journal.ids)
    made = local.predict_all(session.journal.task)[0].predictions
    for bridge in (local, cluster):
        bridge.finetune(session.journal, 3)
        found.append(bridge._tuned(made)(1).take(PROBS, slice(0, 300)))
    assert np.array_equal(*found)
