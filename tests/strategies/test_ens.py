"""ens against the plain definition, given the neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from batch_oracles import ens_scores, features_of
from cases import cases, many, open_arm, others, walk
from hypothesis import given
from hypothesis import strategies as st
from oracles import free_now

from tailor.errors import InputError
from tailor.selection.array_view import ArrayView
from tailor.strategies.ens import Ens
from tailor.strategies.most_likely_positive import MostLikelyPositive
from tailor.strategies.neighbour_graph import NeighbourGraph, choose_candidates
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view


def neighbours_of(graph):
    """position -> positions of its neighbours, for every candidate."""
    nodes = [*graph.candidates.tolist(), *graph.known.tolist()]
    lists = graph.neighbours.tolist()
    return {nodes[number]: [nodes[other] for other in near] for number, near in enumerate(lists)}


@many(60)
@given(
    case=cases(sizes=(1, 24), classes=3),
    share=others,
    horizon=st.sampled_from([1, 2, 5, 100]),
    neighbours=st.sampled_from([1, 4, 50]),
)
def test_it_is_exact(case, share, horizon, neighbours):
    view = case.view()
    klass = case.seed % 3
    cursor = open_arm(Ens(horizon=horizon, neighbours=neighbours), view, klass)
    graph = None
    left = horizon

    def check(index):
        nonlocal graph, left
        graph = graph or neighbours_of(cursor._graph)
        scores = ens_scores(view, graph, klass, left, 0.1)
        assert scores[index] >= max(scores.values()) - 1e-6
        left = max(1, left - 1)

    walk(view, cursor, case.seed, share, check)


def test_neighbours_are_the_nearest():
    view = make_view(make_pool(MultiClass(3), 60, seed=2, dims=5), 2, labelled=0.3, pending=0.1)
    graph = NeighbourGraph(view, neighbours=7, candidates=1000, known=1000)
    assert graph.candidates.tolist() == view.free_ids.tolist()
    assert set(graph.known.tolist()) == {*view.labelled.tolist(), *view.pending.tolist()}
    nodes = np.concatenate([graph.candidates, graph.known])
    h = features_of(view)[nodes]
    rows = h - h.mean(0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for number, near in enumerate(graph.neighbours):
        distances = np.linalg.norm(rows - rows[number], axis=1)
        distances[number] = np.inf
        assert sorted(near) == sorted(np.argsort(distances)[:7])


def test_bounds_leave_few_scores_to_compute():
    view = make_view(make_pool(MultiLabel(2), 2000, seed=3, dims=6), 3, labelled=0.05)
    cursor = open_arm(Ens(horizon=50, neighbours=20), view, 1)
    computed = []
    for _ in range(30):
        view.ledger.take(cursor.take())
        computed.append(cursor.computed)
    assert np.mean(computed) < 400


def test_it_explores_first_and_takes_the_likeliest_last():
    """A lone example beside one known positive, and a heap that nobody has looked at."""
    rng = np.random.default_rng(0)
    heap = rng.normal((5, 0), 0.1, (30, 2))
    pair = np.array([[-5.0, 5.0], [-5.0, 5.1]])
    others_ = rng.normal((0, -5), 0.1, (30, 2))
    features = np.concatenate([heap, pair, others_])
    view = ArrayView(
        MultiLabel(1),
        np.full((62, 1), 0.5),
        features,
        labelled=[30, *range(32, 62)],
        labels=[[1], *[[0]] * 30],
    )
    assert open_arm(Ens(neighbours=5, horizon=1, prior=0.3), view, 0).take() == 31
    assert open_arm(Ens(neighbours=5, horizon=20, prior=0.3), view, 0).take() < 30


def test_a_large_pool_is_searched_where_each_class_is_likeliest():
    pool = make_pool(MultiClass(4), 400, seed=5)
    view = make_view(pool, 5, labelled=0.1)
    candidates = choose_candidates(view, 80)
    assert len(candidates) == 80
    for klass in range(4):
        likeliest = MostLikelyPositive().ranked(view, klass, 10)
        assert set(likeliest.tolist()) <= set(candidates.tolist())
    cursor = open_arm(Ens(candidates=20, known=8, neighbours=5), view, 2)
    picks = []
    while view.ledger.left:
        picks.append(cursor.take())
        view.ledger.take(picks[-1])
    assert sorted(picks) == view.free_ids.tolist()


def test_arms_of_one_round_assume_that_nothing_taken_is_positive():
    """What one arm takes lowers what the others think of its neighbours."""
    view = make_view(make_pool(MultiClass(3), 40, seed=1), 1, labelled=0.2)
    strategy = Ens(neighbours=4, horizon=5)
    arms = strategy.arms(view.task)
    cursors = strategy.open(arms, view, [5, 5, 5], [np.random.default_rng(0)] * 3)
    for turn in range(12):
        klass = turn % 3
        index = cursors[klass].take()
        graph = neighbours_of(cursors[klass]._graph)
        scores = ens_scores(view, graph, klass, 5 - turn // 3, 0.1)
        assert set(scores) == set(free_now(view))
        assert scores[index] >= max(scores.values()) - 1e-6
        view.ledger.take(index)


def test_it_says_what_it_holds():
    view = make_view(make_pool(MultiClass(3), 40, seed=1), 1)
    cursor = open_arm(Ens(), view, 0)
    assert cursor.bytes_held() == 0
    cursor.take()
    assert cursor.bytes_held() > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon is 0: at least 1"),
        ({"neighbours": 0}, "neighbours is 0: at least 1"),
        ({"prior": 1.0}, r"prior is 1.0: a number in \(0, 1\)"),
        ({"candidates": 0}, "candidates is 0: at least 1"),
        ({"known": 0}, "known is 0: at least 1"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        Ens(**options)
