"""The first batch covers the pool."""

from __future__ import annotations

import numpy as np
import pytest

from tailor.common.kmeans import assign
from tailor.compute import Predictions
from tailor.compute.prediction_shards import FEATURES
from tailor.selection import coverage_start as module
from tailor.selection.coverage_start import coverage_start

NOBODY = np.empty(0, np.int64)


def make_heaps(sizes, seed=0, dims=6):
    """Features of far-apart heaps, shuffled -> (features, the heap of each)."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(max(dims, len(sizes)), len(sizes))))[0].T
    heaps = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    noise = 0.02 * rng.normal(size=(len(heaps), directions.shape[1]))
    return (directions[heaps] + noise).astype(np.float32), heaps


@pytest.mark.parametrize("offset", [0, 1000])
def test_one_of_every_heap_the_largest_first(offset):
    features, heaps = make_heaps([40, 5, 20, 10])
    features = features + np.float32(offset)
    for seed in range(5):
        chosen = coverage_start(features.__getitem__, np.arange(75), 4, around=NOBODY, seed=seed)
        assert heaps[chosen].tolist() == [0, 2, 3, 1]
        again = coverage_start(features.__getitem__, np.arange(75), 4, around=NOBODY, seed=seed)
        assert chosen.tolist() == again.tolist()


def test_what_is_there_is_not_covered_again():
    features, heaps = make_heaps([40, 5, 20, 10])
    around = np.array([np.flatnonzero(heaps == 0)[0], np.flatnonzero(heaps == 3)[0]])
    free = np.setdiff1d(np.arange(75), around)
    chosen = coverage_start(features.__getitem__, free, 2, around=around, seed=1)
    assert heaps[chosen].tolist() == [2, 1]


def test_the_nearest_free_example_to_each_centre(monkeypatch):
    """Against the clusters that it found, recomputed example by example."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(120, 5))
    free = np.sort(rng.choice(120, 90, replace=False))
    around = np.setdiff1d(np.arange(120), free)[:6]
    found = []

    def remember(rows, count, generator):
        clusters = kmeans(rows, count, generator)
        found.append((rows, clusters))
        return clusters

    kmeans = module.kmeans
    monkeypatch.setattr(module, "kmeans", remember)
    chosen = coverage_start(features.__getitem__, free, 10, around=around, seed=2)
    ((rows, clusters),) = found
    sample = np.concatenate([free, around])
    unit = features - features[sample].mean(0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    centres = clusters.centres.double().numpy()
    assert len(rows) == 96
    numbers = {i: np.argmin(((centres - unit[i]) ** 2).sum(1)) for i in sample.tolist()}
    taken = {numbers[i] for i in around.tolist()}
    expected = {}
    for number in set(numbers.values()) - taken:
        members = [i for i in sample.tolist() if numbers[i] == number]
        nearest = min(members, key=lambda i: ((centres[number] - unit[i]) ** 2).sum())
        expected[nearest] = len(members)
    sizes = [expected[i] for i in chosen.tolist()]
    assert sizes == sorted(expected.values(), reverse=True)[:10]
    assert np.array_equal(assign(rows, clusters.centres).numbers, clusters.numbers)


def test_copies_leave_room_for_chance():
    features = np.repeat(np.eye(3), 10, axis=0)
    chosen = coverage_start(features.__getitem__, np.arange(30), 8, around=NOBODY, seed=0)
    assert len(set(chosen.tolist())) == 8
    assert sorted((chosen[:3] // 10).tolist()) == [0, 1, 2]


def test_all_that_is_free_where_there_are_no_more():
    features = np.eye(4)
    free = np.array([0, 2])
    for n in (2, 5):
        chosen = coverage_start(features.__getitem__, free, n, around=np.array([1]), seed=0)
        assert sorted(chosen.tolist()) == [0, 2]
    features = np.ones((4, 3))
    assert len(coverage_start(features.__getitem__, np.arange(4), 2, around=NOBODY, seed=0)) == 2


def test_only_a_sample_is_read_and_shards_give_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 50)
    monkeypatch.setattr(module, "BLOCK", 16)
    features = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float16)
    read = []

    def rows(positions):
        read.extend(positions.tolist())
        return features[positions].astype(np.float32)

    chosen = coverage_start(rows, np.arange(10, 300), 6, around=np.arange(3), seed=4)
    assert len(read) == len(set(read)) == 53
    probs = np.full((300, 2), 0.5, np.float16)
    made = Predictions(str(tmp_path), 300, 2, 4, "float16", shard=64).write_all(probs, features)

    def sharded_rows(positions):
        return made.take(FEATURES, positions).astype(np.float32)

    again = coverage_start(sharded_rows, np.arange(10, 300), 6, around=np.arange(3), seed=4)
    assert chosen.tolist() == again.tolist()
    assert set(chosen.tolist()) <= set(read)
