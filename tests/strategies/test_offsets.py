"""Features in single precision that have much in common, such as a column of years: what tells them
apart decides.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from cases import open_arm
from oracles import BadgeRace, coreset_distances, submodular_gains

from tailor.compute import LocalEngine
from tailor.selection.array_view import ArrayView
from tailor.strategies.badge import Badge
from tailor.strategies.cluster_margin import ClusterMargin
from tailor.strategies.coreset import Coreset
from tailor.strategies.submodular import Submodular
from tailor.task import MultiClass
from tailor.testing import make_pool, make_view
from tailor.testing.engines import check_same_picks

OFFSETS = [300, 1000, 1_000_000]
PICKS = 20


def make_offset_pool(offset, size=300):
    """Features in single precision that lie close together, far from 0: one column coarse, two
    fine.
    """
    pool = make_pool(
        MultiClass(3), size, seed=offset, grid=4
    )  # coarse probabilities: many gradients are parallel
    rng = np.random.default_rng(offset)
    features = offset + np.stack(
        [rng.integers(0, 50, size) / 16, rng.random(size), rng.random(size)], 1
    )
    return replace(pool, features=features.astype(np.float32))


def make_offset_view(offset):
    return make_view(make_offset_pool(offset), 1, labelled=0.1, dtype=np.float32)


def check_coreset(view, picks=PICKS):
    cursor = open_arm(Coreset(), view)
    for _ in range(picks):
        distances = coreset_distances(view)
        index = cursor.take()
        assert distances[index] == pytest.approx(max(distances.values()), rel=1e-9)
        view.ledger.take(index)


@pytest.mark.parametrize("offset", OFFSETS)
def test_coreset_takes_the_farthest(offset):
    check_coreset(make_offset_view(offset))


def test_coreset_takes_the_farthest_of_a_column_of_years():
    years = np.random.default_rng(0).integers(1900, 2025, (400, 1)).astype(np.float32)
    labelled = np.flatnonzero(years[:, 0] % 10 == 0)
    labels = np.eye(2)[np.arange(len(labelled)) % 2]
    view = ArrayView(MultiClass(2), np.full((400, 2), 0.5), years, labelled=labelled, labels=labels)
    check_coreset(view)


def test_coreset_takes_the_farthest_where_nothing_is_labelled():
    view = make_offset_view(1000)
    view = ArrayView(view.task, view.probs, view.features)
    view.ledger.take(open_arm(Coreset(), view).take())
    check_coreset(view)


def test_coreset_takes_the_farthest_by_seconds_since_1970():
    """In double precision too an offset can be large: seconds of one day, 1.7 billion of them
    before.
    """
    times = 1.7e9 + np.random.default_rng(0).random((300, 2)) * 86_400
    view = ArrayView(
        MultiClass(2), np.full((300, 2), 0.5), times, labelled=[0, 1], labels=np.eye(2)
    )
    check_coreset(view)


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_cuda)])
@pytest.mark.parametrize("offset", OFFSETS)
def test_coreset_takes_the_farthest_of_tensors_on_a_device(offset, device):
    host = make_offset_view(offset)
    view = ArrayView(
        host.task,
        host.probs.to(device),
        host.features.to(device),
        labelled=host.labelled,
        labels=host.labels,
        free=host.free,
        device=device,
    )
    cursor = open_arm(Coreset(), view)
    for _ in range(PICKS):
        distances = coreset_distances(host)
        index = cursor.take()
        assert distances[index] == pytest.approx(max(distances.values()), rel=1e-9)
        view.ledger.take(index)
        host.ledger.take(index)


@pytest.mark.parametrize("offset", OFFSETS)
def test_badge_draws_by_the_true_distances(offset):
    view = make_offset_view(offset)
    race = BadgeRace(view, seed=11)
    cursor = open_arm(Badge(), view, seed=11)
    for _ in range(100):
        values = race.values()
        index = cursor.take()
        # The oracle's explicit embeddings round too, relative to the offset; a wrong pick is off by
        # far more.
        assert values[index] == pytest.approx(min(values.values()), rel=1e-6)
        race.follow(index)
        view.ledger.take(index)


@pytest.mark.parametrize("offset", [300, 1000])
def test_submodular_takes_the_largest_gain(offset):
    """Cosines of features with a large offset are all close to 1: their differences decide."""
    view = make_offset_view(offset)
    strategy = Submodular()
    queries = strategy.query_set(view, np.random.default_rng(5))
    cursor = open_arm(strategy, view, seed=5)
    for _ in range(PICKS):
        gains = submodular_gains(view, queries, strategy.eta)
        index = cursor.take()
        assert gains[index] >= max(gains.values()) - 1e-12 * len(queries)
        view.ledger.take(index)


@pytest.mark.parametrize("offset", OFFSETS)
def test_clusters_take_the_others_in_by_the_true_distances(offset):
    features = make_offset_pool(offset).features
    strategy = ClusterMargin(members=5, sample=60)
    clusters = strategy.cluster(features, np.random.default_rng(1))
    seen = np.sort(np.random.default_rng(1).permutation(len(features))[:60])
    exact = features.astype(np.float64)
    means = np.stack([exact[seen[clusters[seen] == c]].mean(0) for c in range(clusters.max() + 1)])
    for index in np.setdiff1d(np.arange(len(features)), seen):
        distances = ((exact[index] - means) ** 2).sum(1)
        assert distances[clusters[index]] == pytest.approx(distances.min(), rel=1e-6)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("family", ["coreset", "badge", "submodular", "cluster-margin"])
def test_over_shards_the_picks_are_those_in_memory(family, offset, tmp_path):
    pool = make_offset_pool(offset, size=150)
    check_same_picks(
        LocalEngine(), pool, [family], tmp_path, seed=5, shard=40, dtype=np.float32, labelled=0.1
    )
