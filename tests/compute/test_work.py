"""Features, predictions and training over an engine."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tailor import InputError, MultiClass
from tailor.compute import LocalEngine, Predictions
from tailor.compute.model_work import Copy, predict, read_pool
from tailor.pools import open_pool

TASK = MultiClass(3)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Three blobs of vectors in a file, and their labels."""
    folder = tmp_path_factory.mktemp("blobs")
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    points = (np.eye(3, 8)[truth] * 4 + rng.normal(size=(300, 8))).astype(np.float32)
    np.save(folder / "points.npy", points)
    return folder, np.eye(3, dtype=np.float32)[truth]


@pytest.fixture
def copy(data, tmp_path):
    """A small probe with a hidden layer, trained on the first 60 examples and saved."""
    folder, labels = data
    options = {
        "head": "hidden",
        "hidden": 16,
        "steps": 150,
        "batch": 32,
        "lr": 0.01,
        "device": "cpu",
        "cache": str(folder / "cache"),
    }
    made = Copy(TASK, open_pool(folder / "points.npy").describe(), "probe", options)
    model = made.make()
    model.fit(np.arange(60), labels[:60], seed=1)
    model.save(tmp_path / "weights")
    return Copy(TASK, made.pool, "probe", options, str(tmp_path / "weights"))


def whole(model):
    found = model.predict(np.arange(300))
    return found.probs.astype(np.float16), found.features.astype(np.float16)


def same(predictions, wanted):
    everything = slice(0, 300)
    for name, array in zip(("probs", "features"), wanted):
        assert np.array_equal(predictions.take(name, everything), array)


def test_predictions_in_shards(copy, tmp_path):
    model = copy.make()
    made = predict(LocalEngine(), model, tmp_path / "p", shard=64, fingerprint="round 1")
    same(made, whole(model))
    assert Predictions.open(tmp_path / "p") == made


def test_what_was_predicted_is_kept_and_the_rest_is_done(copy, tmp_path):
    model = copy.make()
    made = predict(LocalEngine(), model, tmp_path / "p", shard=64, fingerprint="round 1")
    stamps = [os.stat(shard.probs).st_mtime_ns for shard in made]
    os.unlink(made[2].probs)
    with pytest.raises(
        InputError, match=r"lacks 1 of 5 shards \(.*\), the first is 2: predict again"
    ):
        Predictions.open(tmp_path / "p")
    same(
        predict(LocalEngine(), model, tmp_path / "p", shard=64, fingerprint="round 1"), whole(model)
    )
    again = [os.stat(shard.probs).st_mtime_ns for shard in made]
    assert [a == b for a, b in zip(stamps, again)] == [True, True, False, True, True]
    predict(LocalEngine(), model, tmp_path / "p", shard=64, fingerprint="round 2")
    assert all(a != os.stat(shard.probs).st_mtime_ns for a, shard in zip(again, made))


def test_an_entry_that_has_vanished_says_nothing(copy, tmp_path):
    model = copy.make()
    at = np.arange(300)
    at[[3, 70]] = -1
    made = predict(LocalEngine(), model, tmp_path / "p", pool_index=at, shard=64)
    assert np.allclose(made.take("probs", np.array([3, 70])), 1 / 3, atol=1e-3)
    assert not made.take("features", np.array([3, 70])).any()
    assert np.array_equal(made.take("probs", np.array([71])), whole(model)[0][[71]])


def test_another_process_must_know_how_to_make_the_model(tmp_path, copy):
    class Elsewhere(LocalEngine.__base__):
        name, workers, map, map_with = "elsewhere", 1, None, None

    with pytest.raises(
        InputError, match=r"elsewhere engine predicts in other processes: .*\(copy=\)"
    ):
        predict(Elsewhere(), copy.make(), tmp_path / "p")


def victim(folder):
    """(process, node) of the call that waits to be killed, once there is one."""
    path = folder / "held" / "victim"
    return path.exists() and path.read_text().split()


@pytest.mark.xdist_group("ray")
class TestCluster:
    def test_features_and_predictions(self, engine, copy, data, tmp_path):
        """Workers fill the cache that all share, and predict; one is killed in between."""
        options = {**copy.options, "cache": str(tmp_path / "cache")}
        fresh = Copy(TASK, copy.pool, copy.model, options, copy.weights)
        read_pool(engine, fresh, 300)
        model = fresh.make()
        assert len(model.source.cache) == 300
        made = predict(engine, model, tmp_path / "p", copy=fresh, shard=64)
        same(made, whole(model))

    def test_a_worker_killed_while_it_predicts(self, engine, copy, tmp_path):
        from losses import dies_once, when

        assert engine.map_with(copy.make, dies_once, [(tmp_path, n) for n in range(4)]) == [
            0,
            1,
            4,
            9,
        ]
        assert (tmp_path / "died").exists()
        when(
            lambda: engine.ray.available_resources().get("CPU") == 2
        )  # the actors are gone, and their room is free

    def test_a_node_lost_while_it_predicts(self, engine, nodes, tmp_path):
        """The other one does the work of both, though its place is taken until it has done its
        own.
        """
        from losses import held_once, unit, when

        calls = [(tmp_path / "held", n) for n in range(5)]
        with ThreadPoolExecutor(1) as beside:
            answer = beside.submit(engine.map_with, unit, held_once, calls)
            _, node = when(lambda: victim(tmp_path))
            gone = next(n for n in nodes.nodes if n.node_id == node)
            nodes.remove(gone)
            nodes.nodes.remove(gone)
            assert answer.result() == [0, 1, 4, 9, 16]
        nodes.nodes.append(nodes.add())
        when(lambda: engine.workers == 2)

    def test_the_last_node_lost_while_it_predicts(self, engine, nodes, tmp_path, monkeypatch):
        from losses import held_once, unit, when

        from tailor.compute import ray_engine

        monkeypatch.setattr(ray_engine, "PATIENCE", 1.0)
        large = nodes.add(num_cpus=2)
        demanding = ray_engine.RayEngine(nodes.address, cpus=2)  # only that node has room for it
        calls = [(tmp_path / "held", n) for n in range(3)]
        with ThreadPoolExecutor(1) as beside:
            answer = beside.submit(demanding.map_with, unit, held_once, calls)
            when(lambda: victim(tmp_path))
            nodes.remove(large)
            with pytest.raises(
                InputError,
                match=r"no room for a worker with cpus = 2 and gpus = 0; its largest node",
            ):
                answer.result()
        assert engine.map_with(unit, held_once, calls) == [0, 1, 4]  # the others work as before

    def test_what_making_raises_is_raised(self, engine):
        from losses import fails, square

        with pytest.raises(InputError, match="this model can't be made"):
            engine.map_with(fails, square, [(1,)])

    def test_training_over_two_workers(self, engine, copy, data, tmp_path):
        from tailor.compute.distributed_training import fit_together

        _, labels = data
        untrained = Copy(TASK, copy.pool, copy.model, copy.options)
        positions = np.arange(101)  # an odd number: shares are filled up
        saved = fit_together(
            engine, untrained, positions, labels[:101], seed=3, workers=2, folder=tmp_path
        )
        model = untrained.make()
        model.load(saved)
        alone = untrained.make()
        alone.fit(positions, labels[:101], seed=3)
        others = np.arange(101, 300)
        truth = labels[101:].argmax(1)
        right, wanted = (
            (m.predict(others).probs.argmax(1) == truth).mean() for m in (model, alone)
        )
        assert wanted > 0.95
        assert right > wanted - 0.03


def test_shares_of_a_batch_give_the_gradient_of_the_whole(copy, data):
    """One rank alone trains as fit() does: the same weights, bit for bit."""
    import torch.distributed as dist

    from tailor.compute.distributed_training import share_training

    _, labels = data
    plain = copy.make()
    shared = copy.make()
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        share_training(shared, 0, 1)
        for model in (plain, shared):
            model.fit(np.arange(60), labels[:60], seed=5)
    finally:
        dist.destroy_process_group()
    assert np.array_equal(plain.predict(np.arange(300)).probs, shared.predict(np.arange(300)).probs)
