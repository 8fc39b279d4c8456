"""base and deepfool against their definitions, with a head and without."""

from __future__ import annotations

import numpy as np
import pytest
from cases import cases, many, open_arm, others, walk
from head_oracles import boundary_distance, nearest_distance
from hypothesis import given
from hypothesis import strategies as st
from oracles import free_now

from tailor import InputError, Learner, MultiClass
from tailor.compute import LocalEngine
from tailor.selection.array_view import ArrayView
from tailor.strategies.balanced_selection import BalancedSelection
from tailor.strategies.deepfool import Deepfool
from tailor.testing import check_strategy, make_pool, make_view
from tailor.testing.engines import check_same_picks


def random_head(classes, features, seed, with_bias=True):
    rng = np.random.default_rng(seed)
    bias = rng.normal(size=classes) if with_bias else None
    return rng.normal(size=(classes, features)), bias


def check_ranked(view, score, index):
    """The smallest score of what is free, within rounding; among equals the first by ties."""
    scores = {i: score(i) for i in free_now(view)}
    smallest = min(scores.values())
    assert scores[index] == pytest.approx(smallest, rel=1e-9, abs=1e-12)
    p = view.probs.numpy()
    copies = [i for i in scores if (p[i] == p[index]).all()]
    assert index == min(copies, key=lambda i: view.ties[i])


HEADS = st.sampled_from([False, True])


@many(60)
@given(case=cases(kinds=(MultiClass,), sizes=(1, 24)), share=others, with_head=HEADS)
def test_base_takes_the_smallest_distance_to_the_boundary_of_its_class(case, share, with_head):
    head = random_head(case.task.size, 3, case.seed) if with_head else None
    view = case.view(head=head)
    klass = case.seed % case.task.size
    cursor = open_arm(BalancedSelection(), view, klass)

    def check(index):
        check_ranked(view, lambda i: boundary_distance(view, i, klass), index)

    walk(view, cursor, case.seed, share, check)


@many(60)
@given(case=cases(kinds=(MultiClass,), sizes=(1, 24)), share=others, with_head=HEADS)
def test_deepfool_takes_the_smallest_distance_to_any_boundary(case, share, with_head):
    head = random_head(case.task.size, 3, case.seed) if with_head else None
    view = case.view(head=head)
    cursor = open_arm(Deepfool(), view)

    def check(index):
        check_ranked(view, lambda i: nearest_distance(view, i), index)

    walk(view, cursor, case.seed, share, check)


def test_log_probabilities_stand_for_logits():
    """Differences of logits and of log-probabilities of a softmax are the same."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3))
    weights, bias = random_head(4, 3, seed=1)
    logits = rows @ weights.T + bias
    powers = np.exp(logits)
    probs = powers / powers.sum(1, keepdims=True)
    view = ArrayView(MultiClass(4), probs, rows, head=(weights, bias))
    own = logits.argmax(1)
    for i in range(30):
        gaps = [
            (logits[i, own[i]] - logits[i, c]) / np.linalg.norm(weights[own[i]] - weights[c])
            for c in range(4)
            if c != own[i]
        ]
        assert nearest_distance(view, i) == pytest.approx(min(gaps))


def test_classes_with_equal_rows_have_no_boundary():
    probs = np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.5, 0.1, 0.4]])
    weights = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    view = ArrayView(MultiClass(3), probs, np.zeros((3, 2)), head=(weights, None))
    # Of the second example the two classes are level, so that it lies on what boundary there is.
    assert [open_arm(Deepfool(), view).take()] == [1]
    assert open_arm(BalancedSelection(), view, klass=1).take() == 1


@many(20)
@given(case=cases(kinds=(MultiClass,), sizes=(2, 30)), shard=st.sampled_from([1, 7, 100]))
def test_over_shards_the_head_goes_along(case, shard, tmp_path_factory):
    check_same_picks(
        LocalEngine(),
        case.pool,
        ["base", "deepfool"],
        tmp_path_factory.mktemp("shards"),
        seed=case.seed,
        shard=shard,
        labelled=case.labelled,
        pending=case.pending,
        skipped=case.skipped,
        head=random_head(case.task.size, 3, case.seed),
    )


# ------------------------------------------------------------------ through a network


@many(30)
@given(case=cases(kinds=(MultiClass,), sizes=(1, 40)), share=others)
def test_the_candidates_are_measured_through_the_network_and_the_rest_follows_by_margin(
    case, share
):
    view = case.view()
    cursor = open_arm(Deepfool(steps=2, candidates=5), view, pulls=1)
    p = view.probs.numpy()
    ordered = np.sort(p, 1)
    margins = ordered[:, -1] - ordered[:, -2]
    by_margin = sorted(view.free_ids.tolist(), key=lambda i: (margins[i], view.ties[i]))
    measured = by_margin[:18]  # twice what is asked for, and some to spare
    distances = case.pool.boundary_distances(np.arange(view.size), 2)
    order = sorted(measured, key=lambda i: (distances[i], view.ties[i])) + by_margin[18:]

    def check(index):
        assert index == next(i for i in order if view.ledger.free[i])

    walk(view, cursor, case.seed, share, check)


def test_with_steps_the_contract_is_kept():
    check_strategy(Deepfool(steps=1, candidates=3), MultiClass(3))


def test_the_network_stays_where_it_is_when_the_pool_is_in_shards(tmp_path):
    pool = make_pool(MultiClass(3), 40, seed=1)
    families = [Deepfool(steps=1, candidates=4), "random"]
    check_same_picks(LocalEngine(), pool, families, tmp_path, seed=1)


def test_without_a_network_steps_are_refused_before_any_work():
    pool = make_pool(MultiClass(3), 20, seed=0)
    learner = Learner(pool.task, 20, strategies=["deepfool(steps=3)"], batch=2)
    with pytest.raises(InputError, match=r"needs distances through a network.*deepfool\(steps=0\)"):
        learner.ask(pool.probs, pool.features)
    assert learner.round == 0
    learner.ask(pool.probs, pool.features, boundary_distances=pool.boundary_distances)


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        (lambda positions, steps: np.zeros(1), "for 16 positions"),
        (lambda positions, steps: np.full(len(positions), np.nan), "at least 0"),
        (lambda positions, steps: np.full(len(positions), -1.0), "at least 0"),
    ],
)
def test_distances_that_are_none_are_refused(gives, said):
    pool = make_pool(MultiClass(3), 16, seed=0)
    learner = Learner(pool.task, 16, strategies=["deepfool(steps=3)"], batch=2)
    with pytest.raises(InputError, match=said):
        learner.ask(pool.probs, pool.features, boundary_distances=gives)


# ------------------------------------------------------------------ the head that is handed in


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ((np.zeros((3, 5)), None), r"\(3, 3\) is needed"),
        ((np.zeros((2, 3)), None), r"\(3, 3\) is needed"),
        ((np.zeros((3, 3)), np.zeros(2)), r"\(3,\) is needed"),
        ((np.full((3, 3), np.nan), None), "not finite"),
        (np.zeros((3, 3)), "a pair"),
        ((np.full((3, 3), "a"), None), "must be numbers"),
    ],
)
def test_a_head_that_does_not_fit_is_refused(head, said):
    pool = make_pool(MultiClass(3), 16, seed=0)
    learner = Learner(pool.task, 16, strategies=["base"], batch=2)
    with pytest.raises(InputError, match=said):
        learner.ask(pool.probs, pool.features, head=head)
    assert learner.round == 0


def test_a_head_changes_what_base_takes():
    pool = make_pool(MultiClass(3), 200, seed=0)

    def picks(head):
        learner = Learner(pool.task, 200, strategies=["base"], selector="random-meta", batch=30)
        return learner.ask(pool.probs, pool.features, head=head).indices.tolist()

    far_apart = np.diag([1.0, 1.0, 50.0])
    assert picks(None) != picks((far_apart, None))
    view = make_view(pool, 0, head=(far_apart, None))
    assert view.head.row_distances[0, 2] == pytest.approx(np.hypot(1, 50))
