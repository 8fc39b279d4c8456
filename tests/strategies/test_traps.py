"""Mistakes that an implementation of the paper is known to make, one test each."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import open_arm
from oracles import submodular_gains

from tailor.selection.array_view import ArrayView
from tailor.strategies import registry
from tailor.strategies.submodular import Submodular
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view


def serve(view, name, klass=None, count=10, **options):
    cursor = open_arm(registry.make(name, **options), view, klass, pulls=count)
    picks = []
    for _ in range(count):
        picks.append(cursor.take())
        view.ledger.take(picks[-1])
    return picks


@pytest.mark.parametrize("task", [MultiClass(3), MultiLabel(3)], ids=lambda t: t.kind)
def test_most_likely_positive_serves_rank_0_first(task):
    view = make_view(make_pool(task, 300, seed=0), 0, labelled=0.1)
    ranks = sorted(view.free_ids.tolist(), key=lambda i: -float(view.probs[i, 1]))
    assert serve(view, "most-likely-positive", 1, count=100) == ranks[:100]


def test_submodular_really_runs_with_one_hot_labels():
    """Its first pick has the largest gain, in every one of 20 pools: a random choice would not."""
    for seed in range(20):
        view = make_view(make_pool(MultiClass(4), 40, seed=seed), seed, labelled=0.2)
        queries = Submodular().query_set(view, np.random.default_rng(0))
        gains = submodular_gains(view, queries, 1.0)
        assert serve(view, "submodular", count=1) == [max(gains, key=gains.get)]


def test_submodular_runs_with_one_labelled_example():
    pool = make_pool(MultiClass(4), 30, seed=0)
    view = ArrayView(pool.task, pool.probs, pool.features, labelled=[3], labels=pool.truth[[3]])
    gains = submodular_gains(view, np.array([3]), 1.0)
    assert serve(view, "submodular", count=1) == [max(gains, key=gains.get)]


@pytest.mark.parametrize("mode", ["split", "predicted", "revealed"])
def test_galaxy_does_not_know_the_labels_of_its_own_batch(mode):
    """50 picks with hidden labels as they are and flipped: the same ones."""
    picks = []
    for flip in (False, True):
        pool = make_pool(MultiLabel(2), 400, seed=0)
        truth = 1 - pool.truth if flip else pool.truth
        truth[:40] = pool.truth[:40]
        view = ArrayView(pool.task, pool.probs, labelled=np.arange(40), labels=truth[:40])
        picks.append(serve(view, "galaxy", 0, count=50, pending=mode))
    assert picks[0] == picks[1]


def test_galaxy_all_has_every_class_in_order():
    """Only class 2 has labels that differ; its line alone decides, and it is sorted by its own
    scores.
    """
    p = np.linspace(0.05, 0.45, 9)
    probs = np.stack([0.9 - p, np.full(9, 0.1), p], 1)[[4, 0, 8, 2, 6, 1, 7, 3, 5]]
    labels = [[1, 0, 0], [0, 0, 1]]
    view = ArrayView(MultiClass(3), probs, labelled=[1, 2], labels=labels)
    view.labels[:, 0] = 1  # as if class 0 had been on both
    assert serve(view, "galaxy-all", count=1) == [0]  # p = 0.25, the middle of the line of class 2


@pytest.mark.parametrize("task", [MultiClass(3), MultiLabel(3)], ids=lambda t: t.kind)
def test_badge_returns_the_largest_norm_and_then_goes_on(task):
    view = make_view(make_pool(task, 50, seed=6), 6, labelled=0.0)
    p = view.probs.numpy()
    h = view.features.numpy()
    a = p - (p == p.max(1, keepdims=True) if isinstance(task, MultiClass) else p > 0.5)
    norms = (a**2).sum(1) * (h**2).sum(1)
    picks = serve(view, "badge", count=50)
    assert picks[0] == norms.argmax()
    assert sorted(picks) == list(range(50))


def test_entropy_is_finite_at_0_and_1():
    probs = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3]])
    for dtype in (np.float64, np.float32, np.float16):
        view = ArrayView(MultiClass(3), probs.astype(dtype))
        score = registry.make("entropy").score(view)
        assert torch.isfinite(score).all()
        assert score[:2].tolist() == [0, 0]
        assert serve(view, "entropy", count=2) == [3, 2]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_weak_supervision_is_finite_at_0_and_1(dtype):
    """The certain ones come last, all of them, and none is lost."""
    tuned = np.array(
        [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5], [0.0, 0.5], [0.0, 0.0], [0.999, 0.001]]
    ).astype(dtype)
    view = ArrayView(MultiLabel(2), tuned, finetune=lambda targets, epochs: tuned)
    score = registry.make("weak-supervision").score(view)
    assert torch.isfinite(score).all()
    picks = serve(view, "weak-supervision", count=6)
    assert picks[:3] == [2, 3, 5]
    assert sorted(picks[3:]) == [0, 1, 4]


def test_bald_is_finite_at_0_and_1_and_finds_disagreement():
    sure = np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]])
    other = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    for task in (MultiClass(2), MultiLabel(2)):
        view = ArrayView(task, sure, dropout=lambda: [sure, other])
        score = registry.make("bald").score(view)
        assert torch.isfinite(score).all()
        assert serve(view, "bald", count=1) == [1]


@pytest.mark.parametrize("kind", [MultiClass, MultiLabel])
def test_the_callers_arrays_are_never_changed(kind):
    """Contiguous arrays are shared, not copied: nothing may be written to them."""
    pool = make_pool(kind(3), 60, seed=2)
    given = {
        "probs": pool.probs.copy(),
        "features": pool.features.copy(),
        "labels": pool.truth[:20].copy(),
        "labelled": np.arange(20),
        "pending": np.arange(20, 25),
        "free": np.arange(60) >= 30,
    }
    kept = {name: array.copy() for name, array in given.items()}
    for name in registry:
        if kind.kind not in registry.find(name).tasks:
            continue
        view = ArrayView(
            pool.task,
            given["probs"],
            given["features"],
            labelled=given["labelled"],
            labels=given["labels"],
            pending=given["pending"],
            free=given["free"],
            finetune=lambda t, e: given["probs"],
            dropout=lambda: [given["probs"]],
        )
        assert len(serve(view, name, 1 if registry.find(name).per_class else None, count=30)) == 30
        for key, array in given.items():
            assert np.array_equal(array, kept[key]), f"{name} changed {key}"


def test_fewer_examples_than_pulls_is_no_index_error():
    """Told of far more pulls than there are examples, every family gives what there is."""
    for kind in (MultiClass, MultiLabel):
        for name in registry:
            if kind.kind in registry.find(name).tasks:
                view = make_view(make_pool(kind(3), 12, seed=1), 1)
                cursor = open_arm(registry.make(name), view, 0, pulls=1000)
                view.ledger.take(cursor.take())
                assert view.ledger.left == len(view.free_ids) - 1
