"""typiclust and probcover against their definitions, given the clusters that k-means found."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import cases, many, open_arm, others, walk
from cover_oracles import ball_counts, distance, pure_share, typiclust_pick, unit_rows
from hypothesis import given

from tailor.compute import LocalEngine
from tailor.errors import InputError
from tailor.selection.array_view import ArrayView
from tailor.strategies.probcover import Probcover, pure_radius
from tailor.strategies.typiclust import Typiclust
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view
from tailor.testing.engines import check_same_picks

KINDS = [MultiClass, MultiLabel]
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def sample_rows(view, cursor):
    """(unit features of all examples, position -> cluster of the sample's)"""
    positions = cursor.sample.positions
    rows = unit_rows(view.features.double().numpy(), positions)
    return rows, dict(zip(positions.tolist(), cursor.numbers.tolist(), strict=True))


@many(60)
@given(case=cases(sizes=(1, 30)), share=others)
def test_typiclust_takes_the_most_typical_of_the_largest_cluster_without_a_label(case, share):
    view = case.view()
    cursor = open_arm(Typiclust(neighbours=3), view, pulls=3)

    def check(index):
        rows, cluster_of = sample_rows(view, cursor)
        cluster, distances = typiclust_pick(view, rows, cluster_of, 3)
        assert cluster_of[index] == cluster
        assert distances[index] <= min(distances.values()) + 1e-9

    walk(view, cursor, case.seed, share, check)


def test_typiclust_clusters_as_many_as_labels_and_picks():
    view = make_view(make_pool(MultiClass(3), 80, seed=1), 1, labelled=0.1, pending=0.05)
    covering = len(view.labelled) + len(view.pending)
    for most, pulls in ((500, 7), (6, 7)):
        cursor = open_arm(Typiclust(clusters=most), view, pulls=pulls)
        assert cursor.numbers.max() + 1 <= min(most, covering + pulls)
        assert len(np.unique(cursor.numbers)) > min(most, covering + pulls) // 2


def test_typiclust_draws_the_next_sample_when_one_is_used_up():
    view = make_view(make_pool(MultiClass(3), 50, seed=2), 2, labelled=0.1)
    cursor = open_arm(Typiclust(sample=8), view, pulls=4)
    samples = set()
    while view.ledger.left:
        index = cursor.take()
        samples.add(tuple(cursor.sample.positions.tolist()))
        assert index in cursor.sample.positions
        view.ledger.take(index)
    assert len(samples) > 4


@many(60)
@given(case=cases(sizes=(1, 30)), share=others)
def test_probcover_takes_the_ball_with_most_that_is_not_covered(case, share):
    view = case.view()
    cursor = open_arm(Probcover(), view)

    def check(index):
        rows, cluster_of = sample_rows(view, cursor)
        # Where a distance is the radius itself, rounding decides.
        counts = [
            ball_counts(view, rows, list(cluster_of), cursor.radius + shift)
            for shift in (-1e-9, 0, 1e-9)
        ]
        most = [max(each.values()) for each in counts]
        if min(most) > 0:
            assert any(each[index] == top for each, top in zip(counts, most, strict=True))

    walk(view, cursor, case.seed, share, check)


@pytest.mark.parametrize("purity", [0.95, 0.5, 1.0, 0.0])
def test_the_radius_is_the_largest_at_which_enough_balls_are_pure(purity):
    rng = np.random.default_rng(3)
    features = rng.normal(size=(60, 3))
    rows = features / np.linalg.norm(features, axis=1, keepdims=True)
    numbers = (rows[:, 0] > 0.3).astype(np.int64)
    radius = pure_radius(torch.from_numpy(rows), torch.from_numpy(numbers), purity)
    sample = list(range(60))
    cluster_of = dict(enumerate(numbers.tolist()))
    assert pure_share(rows, sample, cluster_of, radius - 1e-9) >= purity
    distances = {distance(rows[i], rows[j]) for i in sample for j in sample}
    larger = [d for d in distances if d > radius + 1e-9]
    if purity > 0 and larger:
        assert pure_share(rows, sample, cluster_of, min(larger)) < purity


def test_one_cluster_only_is_one_ball():
    assert pure_radius(torch.eye(4), torch.zeros(4, dtype=torch.int64), 0.95) == 2.0


def test_probcover_covers_heaps_by_one_pick_each_and_then_takes_any():
    rng = np.random.default_rng(0)
    heaps = np.repeat(np.arange(3), [12, 20, 6])
    features = np.eye(3)[heaps] + 0.01 * rng.normal(size=(38, 3))
    view = ArrayView(MultiClass(3), np.full((38, 3), 1 / 3), features)
    cursor = open_arm(Probcover(), view)
    picks = []
    while view.ledger.left:
        picks.append(cursor.take())
        view.ledger.take(picks[-1])
    assert heaps[picks[:3]].tolist() == [1, 0, 2]
    assert sorted(picks) == list(range(38))


def test_probcover_covers_a_sample_and_hears_of_takes_outside_it():
    view = make_view(make_pool(MultiClass(3), 90, seed=4), 4, labelled=0.1)
    cursor = open_arm(Probcover(sample=20), view)
    outside = np.setdiff1d(view.free_ids, cursor.sample.positions)
    for _ in range(15):
        rows, cluster_of = sample_rows(view, cursor)
        counts = ball_counts(view, rows, list(cluster_of), cursor.radius)
        index = cursor.take()
        if max(counts.values()) > 0:
            assert counts[index] == max(counts.values())
        view.ledger.take(index)
        view.ledger.take(int(next(i for i in outside if view.ledger.free[i])))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["typiclust", "typiclust(sample=40)", "probcover(sample=60)"])
def test_over_shards_the_picks_are_those_in_memory(kind, family, tmp_path):
    pool = make_pool(kind(4), 150, seed=4, dims=6, copies=0.1)
    check_same_picks(LocalEngine(), pool, [family], tmp_path, seed=5, shard=64, dtype=np.float16)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_cuda)])
@pytest.mark.parametrize("strategy", [Typiclust(), Probcover()], ids=lambda s: s.name)
def test_a_device_gives_examples_of_the_same_clusters(strategy, device):
    """Far-apart heaps, so that rounding decides nothing."""
    rng = np.random.default_rng(0)
    heaps = rng.permutation(np.repeat(np.arange(5), [60, 50, 40, 30, 20]))
    features = (np.eye(5)[heaps] + 0.01 * rng.normal(size=(200, 5))).astype(np.float32)
    probs = torch.full((200, 5), 0.2, device=device)
    view = ArrayView(MultiClass(5), probs, torch.from_numpy(features).to(device), device=device)
    cursor = open_arm(strategy, view, pulls=5)
    for _ in range(5):
        view.ledger.take(cursor.take())
    assert heaps[view.ledger.taken].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Typiclust(clusters=0), "clusters is 0: at least 1"),
        (lambda: Typiclust(neighbours=0), "neighbours is 0: at least 1"),
        (lambda: Typiclust(sample=0), "sample is 0: at least 1"),
        (lambda: Probcover(sample=0), "sample is 0: at least 1"),
        (lambda: Probcover(purity=1.2), r"purity is 1.2: a number in \[0, 1\]"),
        (lambda: Probcover(purity="high"), "purity is 'high'"),
    ],
)
def test_options_out_of_range(make, message):
    with pytest.raises(InputError, match=message):
        make()
