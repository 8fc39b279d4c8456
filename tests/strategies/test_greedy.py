"""submodular and coreset against plain greedy; cluster-margin and random by what they promise."""

from __future__ import annotations

import numpy as np
import parts
import pytest
from cases import cases, many, open_arm, others, walk
from hypothesis import given
from hypothesis import strategies as st
from oracles import (
    coreset_distances,
    cosines,
    mutual_information,
    ranked_pick,
    score_of,
    submodular_gains,
)
from scipy.stats import chisquare

from tailor.errors import Exhausted, InputError
from tailor.selection.array_view import ArrayView
from tailor.strategies.cluster_margin import ClusterMargin, round_robin
from tailor.strategies.coreset import Coreset, Farthest
from tailor.strategies.random import Random
from tailor.strategies.submodular import Submodular
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view


def check_submodular(case, share, strategy):
    view = case.view()
    queries = strategy.query_set(view, np.random.default_rng(5))
    cursor = open_arm(strategy, view, seed=5)
    if len(queries) == 0:
        assert view.labels.sum() == 0
        with pytest.raises(Exhausted, match="no class has a labelled example"):
            cursor.take()
        return

    def check(index):
        gains = submodular_gains(view, queries, strategy.eta)
        assert gains[index] >= max(gains.values()) - 1e-9 * len(queries)

    walk(view, cursor, case.seed, share, check)


@many(120)
@given(
    case=cases(),
    share=others,
    eta=st.sampled_from([1.0, 0.0, 0.3]),
    queries=st.sampled_from([5, 1]),
)
def test_submodular_is_plain_greedy(case, share, eta, queries):
    check_submodular(case, share, Submodular(eta=eta, queries=queries))


@pytest.mark.parametrize("classes", [2, 50])
@many(8)
@given(data=st.data())
def test_submodular_with_few_and_many_classes(classes, data):
    check_submodular(data.draw(cases(classes=classes, sizes=(2, 20))), 0.3, Submodular())


@many(60)
@given(case=cases())
def test_query_set_holds_up_to_five_labelled_examples_of_each_class(case):
    view = case.view()
    queries = Submodular().query_set(view, np.random.default_rng(0))
    assert len(set(queries.tolist())) == len(queries)
    labels = dict(zip(view.labelled.tolist(), view.labels))
    assert set(queries.tolist()) <= set(labels)
    for k in range(case.task.size):
        there, chosen = (sum(labels[i][k] for i in ids) for ids in (labels, queries.tolist()))
        assert chosen >= min(5, there)
        if isinstance(case.task, MultiClass):
            assert chosen == min(5, there)


@pytest.mark.parametrize("task", [MultiClass(3), MultiLabel(3)], ids=lambda t: t.kind)
def test_submodular_agrees_with_submodlib(task):
    parts.need("submodlib")
    import submodlib

    view = make_view(make_pool(task, 60, seed=8, dims=4), 8, labelled=0.3)
    strategy = Submodular(eta=1.0)
    budget = 12
    queries = strategy.query_set(view, np.random.default_rng(0))
    similarity = cosines(view, queries)
    free = view.free_ids
    theirs = submodlib.FacilityLocationVariantMutualInformationFunction(
        n=len(free),
        num_queries=len(queries),
        query_sijs=similarity[:, free].T,
        queryDiversityEta=1.0,
    ).maximize(
        budget=budget, optimizer="LazyGreedy", stopIfZeroGain=False, stopIfNegativeGain=False
    )
    cursor = open_arm(strategy, view, seed=0)
    values = [0.0]
    for _ in range(budget):
        view.ledger.take(cursor.take())
        values.append(mutual_information(similarity, view.ledger.taken.tolist(), 1.0))
    assert np.diff(values) == pytest.approx([gain for _, gain in theirs], rel=1e-5, abs=1e-5)
    assert view.ledger.taken.tolist() == [int(free[i]) for i, _ in theirs]


def check_coreset(case, share):
    view = case.view()
    scale = (view.features.numpy() ** 2).sum(1).max()

    def check(index):
        distances = coreset_distances(view)
        if distances is not None:
            assert distances[index] >= max(distances.values()) - 1e-9 * scale

    walk(view, open_arm(Coreset(), view), case.seed, share, check)


@many(300)
@given(case=cases(), share=others)
def test_coreset_is_plain_greedy(case, share):
    check_coreset(case, share)


def test_coreset_with_more_centres_than_the_first_bound_sees():
    view = make_view(make_pool(MultiClass(3), 300, seed=1), 1, labelled=0.5)
    assert len(view.labelled) > 100
    cursor = open_arm(Coreset(), view)
    for _ in range(20):
        distances = coreset_distances(view)
        index = cursor.take()
        assert distances[index] == pytest.approx(max(distances.values()), rel=1e-9)
        view.ledger.take(index)


def test_farthest_is_coreset_by_another_name():
    pool = make_pool(MultiClass(3), 60, seed=2)
    rounds = []
    for strategy in (Coreset(), Farthest()):
        view = make_view(pool, 2)
        cursor = open_arm(strategy, view)
        for _ in range(view.ledger.left):
            view.ledger.take(cursor.take())
        rounds.append(view.ledger.taken.tolist())
    assert rounds[0] == rounds[1]


# ------------------------------------------------------------------ cluster-margin


@many(40)
@given(case=cases(kinds=(MultiClass,), grids=(64,)), share=others, pulls=st.integers(1, 4))
def test_cluster_margin_takes_from_the_smallest_margins_first(case, share, pulls):
    """Never one outside the next factor * pulls candidates while one of them is free."""
    view = case.view()
    strategy = ClusterMargin(factor=2, members=2)
    margin = score_of("margin", view)
    order = sorted(view.free_ids.tolist(), key=lambda i: (margin(i), view.ties[i]))
    groups = [order[at : at + 2 * pulls] for at in range(0, len(order), 2 * pulls)]

    def check(index):
        now = next(group for group in groups if any(view.ledger.free[i] for i in group))
        assert index in now

    walk(view, open_arm(strategy, view, pulls=pulls), case.seed, share, check)


def test_cluster_margin_goes_round_its_clusters_from_the_smallest():
    """Three far-apart heaps of 1, 2 and 6: one of each in that order, again while they last."""
    heaps = np.repeat([0.0, 100.0, 200.0], [1, 2, 6])
    features = np.stack([heaps, np.arange(9) / 100], 1)
    for seed in range(10):
        view = ArrayView(MultiClass(2), np.full((9, 2), 0.5), features, seed=seed)
        cursor = open_arm(ClusterMargin(factor=9, members=3), view, pulls=1, seed=seed)
        turns = []
        for _ in range(9):
            turns.append(cursor.take())
            view.ledger.take(turns[-1])
        assert [heaps[i] for i in turns] == [0, 100, 200, 100, 200, 200, 200, 200, 200]
        assert sorted(turns) == list(range(9))


@many(60)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(0, 1000))
def test_round_robin(clusters, seed):
    """Turn t takes one from each cluster with more than t members, smallest cluster first."""
    clusters = np.unique(clusters, return_inverse=True)[1]
    laid = round_robin(np.arange(len(clusters)) + 100, clusters, np.random.default_rng(seed))
    assert sorted(laid) == list(range(100, 100 + len(clusters)))
    sizes = np.bincount(clusters)
    by_size = sorted(range(len(sizes)), key=lambda c: (sizes[c], c))
    expected = [c for turn in range(max(sizes)) for c in by_size if sizes[c] > turn]
    assert [clusters[i - 100] for i in laid] == expected


def test_clusters_of_a_sample_take_the_others_in():
    features = np.concatenate([np.zeros((30, 2)), np.full((30, 2), 50.0)])
    clusters = ClusterMargin(members=5, sample=10).cluster(features, np.random.default_rng(0))
    assert not set(clusters[:30]) & set(clusters[30:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ClusterMargin(factor=0), "factor is 0: at least 1"),
        (lambda: ClusterMargin(members=0), "members is 0: at least 1"),
        (lambda: ClusterMargin(sample=1), "sample is 1: at least 2"),
        (lambda: Submodular(eta=-0.5), "eta is -0.5: it must be finite and at least 0"),
        (lambda: Submodular(eta=np.inf), "eta is inf"),
        (lambda: Submodular(queries=0), "queries is 0"),
    ],
)
def test_options_out_of_range(make, message):
    with pytest.raises(InputError, match=message):
        make()


# ------------------------------------------------------------------ random


def test_random_is_uniform_over_what_is_free():
    """First and second pick over 3,000 seeds; chi-square p above 0.001."""
    counts = np.zeros((12, 12))
    for seed in range(3000):
        view = make_view(make_pool(MultiClass(2), 12, seed=0), 2, labelled=0.3, skipped=0.1)
        cursor = open_arm(Random(), view, seed=seed)
        first = cursor.take()
        view.ledger.take(first)
        counts[first, cursor.take()] += 1
    free = view.free_ids
    assert counts.sum() == counts[np.ix_(free, free)].sum()
    off_diagonal = counts[np.ix_(free, free)][~np.eye(len(free), dtype=bool)]
    assert np.trace(counts) == 0
    assert chisquare(off_diagonal).pvalue > 0.001
    assert ranked_pick(view, lambda i: 0) in free
