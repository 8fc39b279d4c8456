"""herding against the plain definition, and the search behind it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import cases, many, open_arm, others, walk
from cover_oracles import HerdingOracle
from hypothesis import given
from hypothesis import strategies as st
from oracles import free_now

import tailor.strategies.feature_kernel
from tailor.compute import LocalEngine
from tailor.errors import InputError
from tailor.selection.array_view import ArrayView
from tailor.strategies.cover_search import CoverSearch
from tailor.strategies.feature_kernel import FeatureKernel
from tailor.strategies.herding import Herding
from tailor.strategies.kernel_cover import KernelCover, draw_free
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view
from tailor.testing.engines import check_same_picks

#: Values of the kernel are rounded to 2^-28, once for the example and once for the cover.
ROUNDING = 2.0**-27
KINDS = [MultiClass, MultiLabel]


def check_pick(view, oracle, index, candidates):
    """The largest gain among what is free; of copies the first by ties. Anything goes where there
    is nothing to gain.
    """
    gains = oracle.gains(candidates)
    tolerance = ROUNDING * len(oracle.references)
    if max(gains.values(), default=0) <= tolerance:
        return
    assert gains[index] >= max(gains.values()) - tolerance
    features = view.features.cpu().numpy()
    copies = [i for i in candidates if (features[i] == features[index]).all()]
    assert index == min(copies, key=lambda i: view.ties[i])


@many(80)
@given(case=cases(sizes=(1, 24)), share=others, quantile=st.sampled_from([0.05, 0.0, 0.5]))
def test_herding_is_plain_greedy(case, share, quantile):
    """Every example is a reference and a candidate here."""
    view = case.view()
    free = view.free_ids.tolist()
    oracle = HerdingOracle(view, free, free, quantile)
    cursor = open_arm(Herding(quantile=quantile), view)
    walk(view, cursor, case.seed, share, lambda i: check_pick(view, oracle, i, free_now(view)))


@pytest.mark.parametrize("kind", KINDS)
def test_references_and_candidates_are_drawn_anew_when_nothing_is_left_to_gain(kind):
    view = make_view(make_pool(kind(3), 60, seed=3), 3, labelled=0.1)
    rng = np.random.default_rng(5)
    drawn = draw_free(view, 9, rng).tolist()
    sample = drawn[:6]
    draws = 1
    cursor = open_arm(Herding(references=6, candidates=9), view, seed=5)
    for _ in range(view.ledger.left):
        index = cursor.take()
        candidates = [i for i in drawn if view.ledger.free[i]]
        oracle = HerdingOracle(view, sample, drawn[:6])
        gains = oracle.gains(candidates)
        if max(gains.values(), default=0) <= 6 * ROUNDING:
            drawn = draw_free(view, 9, rng).tolist()
            draws += 1
            candidates = drawn
            oracle = HerdingOracle(view, sample, drawn[:6])
        check_pick(view, oracle, index, candidates)
        view.ledger.take(index)
    assert draws > 5


def test_where_many_pairs_would_be_kept_only_the_first_candidates_are_searched(monkeypatch):
    monkeypatch.setattr(tailor.strategies.feature_kernel, "BLOCK", 5)
    view = make_view(make_pool(MultiClass(3), 40, seed=1), 1, labelled=0.0)
    cover = KernelCover.draw(view, np.random.default_rng(0))
    candidates = np.arange(40)
    search = CoverSearch(cover, candidates, most_pairs=201)
    # Nothing covers anything yet: each candidate has all 40 references.
    assert search.positions.tolist() == list(range(10))
    picks = []
    for _ in range(10):
        position, gain = search.best()
        assert gain == pytest.approx(cover.gains(np.array([position]))[0])
        assert gain == pytest.approx(cover.gains(search.positions).max())
        search.take(np.array([position]))
        picks.append(position)
    assert sorted(picks) == list(range(10))
    assert search.best() == (-1, 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cover_follows_what_is_added(kind):
    view = make_view(make_pool(kind(4), 30, seed=2, copies=0.3), 2, labelled=0.2, pending=0.1)
    cover = KernelCover.draw(view, np.random.default_rng(0))
    free = view.free_ids
    oracle = HerdingOracle(view, free.tolist(), free.tolist())
    assert cover.kernel.radius == pytest.approx(oracle.radius)
    for taken in ([], free[:1], free[3:6]):
        for index in taken:
            view.ledger.take(index)
        cover.add(np.asarray(taken, np.int64))
        expected = [oracle.gains([i])[i] for i in free.tolist()]
        assert cover.gains(free) == pytest.approx(expected, abs=30 * ROUNDING)


@pytest.mark.parametrize("offset", [300, 1000, 1_000_000])
def test_an_offset_that_all_features_share_tells_nothing(offset):
    """Numbers that single precision holds exactly, with the offset and without it."""
    rng = np.random.default_rng(offset)
    features = rng.integers(0, 64, (80, 3)) / 16
    picks = []
    for shift in (0, offset):
        view = ArrayView(
            MultiClass(2),
            np.full((80, 2), 0.5),
            (features + shift).astype(np.float32),
            labelled=[0, 1, 2],
            labels=np.eye(2)[[0, 1, 0]],
        )
        cursor = open_arm(Herding(), view)
        for _ in range(20):
            view.ledger.take(cursor.take())
        picks.append(view.ledger.taken.tolist())
    assert picks[0] == picks[1]


def test_features_that_tell_nothing_leave_doubt_and_then_chance():
    """All equal: one pick covers everything, and the others are random."""
    probs = np.array([[0.9, 0.1]] * 20)
    picks = set()
    for seed in range(30):
        view = ArrayView(MultiClass(2), probs, np.full((20, 3), 0.1))
        cursor = open_arm(Herding(), view, seed=seed)
        first = cursor.take()
        assert first == np.argmin(view.ties)
        view.ledger.take(first)
        picks.add(cursor.take())
    assert len(picks) > 5


def test_a_model_that_is_sure_of_everything_leaves_a_plain_cover():
    features = np.repeat([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0]], [3, 5, 2], axis=0)
    view = ArrayView(MultiClass(2), np.eye(2)[[0] * 10], features)
    cursor = open_arm(Herding(), view)
    groups = []
    for _ in range(3):
        index = cursor.take()
        view.ledger.take(index)
        groups.append(features[index].tolist())
    assert groups == [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]


def test_the_radius_looks_at_some_labelled_examples_where_many_are(monkeypatch):
    monkeypatch.setattr(tailor.strategies.feature_kernel, "QUERIES", 4)
    view = make_view(make_pool(MultiClass(3), 60, seed=1), 1, labelled=0.5)
    free = view.free_ids
    kernel = FeatureKernel.fit(view, free, np.random.default_rng(7), quantile=1.0)
    queries = np.random.default_rng(7).choice(view.labelled, 4, replace=False)
    rows = kernel.unit_rows(view.labelled).numpy()
    of = dict(zip(view.labelled.tolist(), rows, strict=True))
    nearest = [min(np.linalg.norm(of[i] - of[j]) for j in of if j != i) for i in queries.tolist()]
    assert kernel.radius == pytest.approx(max(nearest))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", ["", "(references=40, candidates=90)"])
def test_over_shards_the_picks_are_those_in_memory(kind, options, tmp_path):
    pool = make_pool(kind(4), 200, seed=4, dims=6, copies=0.1)
    check_same_picks(
        LocalEngine(), pool, [f"herding{options}"], tmp_path, seed=5, shard=64, dtype=np.float16
    )


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_cuda)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labelled", [0.0, 0.05])
def test_a_device_gives_the_same_picks(kind, labelled, device):
    pool = make_pool(kind(5), 600, seed=6, dims=16)
    host = make_view(pool, 6, labelled=labelled, dtype=np.float32)
    view = ArrayView(
        host.task,
        host.probs.to(device),
        host.features.to(device),
        labelled=host.labelled,
        labels=host.labels,
        free=host.free,
        seed=6,
        device=device,
    )
    strategy = Herding(references=100, candidates=300)
    for each in (host, view):
        cursor = open_arm(strategy, each, seed=1)
        for _ in range(250):
            each.ledger.take(cursor.take())
    assert view.ledger.taken.tolist() == host.ledger.taken.tolist()


def test_small_blocks_give_the_same_picks(monkeypatch):
    pool = make_pool(MultiClass(4), 150, seed=8, dims=5)
    rounds = []
    for block in (1024, 7):
        monkeypatch.setattr(tailor.strategies.feature_kernel, "BLOCK", block)
        view = make_view(pool, 8, labelled=0.1)
        cursor = open_arm(Herding(references=50, candidates=100), view)
        for _ in range(view.ledger.left):
            view.ledger.take(cursor.take())
        rounds.append(view.ledger.taken.tolist())
    assert rounds[0] == rounds[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"references": 0}, r"references is 0: it must lie in \[1, 16384\]"),
        ({"references": 20000}, "references is 20000"),
        ({"references": 10, "candidates": 9}, "candidates is 9: at least 10"),
        ({"quantile": 1.5}, r"quantile is 1.5: a number in \[0, 1\]"),
        ({"quantile": "small"}, "quantile is 'small'"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        Herding(**options)


def test_it_says_what_it_holds():
    pool = make_pool(MultiClass(3), 40, seed=1)
    view = make_view(pool, 1)
    cursor = open_arm(Herding(), view)
    assert cursor.bytes_held() > 0
