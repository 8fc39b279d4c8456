"""similar against plain greedy, and against submodlib."""

from __future__ import annotations

import numpy as np
import parts
import pytest
from batch_oracles import label_embeddings, shifted, targeted_gains
from cases import cases, many, open_arm, others, walk
from hypothesis import given
from hypothesis import strategies as st
from oracles import embeddings

from tailor import Learner
from tailor.errors import Exhausted, InputError
from tailor.selection.array_view import ArrayView
from tailor.strategies import make_arms
from tailor.strategies.similar import Similar
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view


def chosen(strategy, view, seed=5):
    """Embeddings of the queries, and of what is held out, as an arm with this seed draws them."""
    rng = np.random.default_rng(seed)
    places = strategy.query_places(view, rng)
    queries = label_embeddings(view, places)
    away = strategy.held_out_places(view, rng)
    if strategy.hold_out == ["skipped"]:
        return queries, embeddings(view)[view.skipped[away]]
    return queries, label_embeddings(view, away)


@many(60)
@given(
    case=cases(sizes=(1, 24)),
    share=others,
    eta=st.sampled_from([1.0, 0.0, 0.3]),
    hold_out=st.sampled_from([None, "skipped", "0"]),
    strength=st.sampled_from([1.0, 0.5]),
)
def test_it_is_plain_greedy(case, share, eta, hold_out, strength):
    view = case.view()
    known = [*view.free_ids, *view.labelled, *view.pending]
    view.skipped = np.setdiff1d(np.arange(view.size), known)
    strategy = Similar(eta=eta, queries=2, hold_out=hold_out, strength=strength)
    queries, held_out = chosen(strategy, view)
    cursor = open_arm(strategy, view, seed=5)
    if len(queries) == 0:
        assert view.labels.sum() == 0
        with pytest.raises(Exhausted, match="no class that is looked for"):
            cursor.take()
        return

    def check(index):
        gains = targeted_gains(view, queries, held_out, eta, strength)
        assert gains[index] >= max(gains.values()) - 1e-9 * (1 + len(queries))

    walk(view, cursor, case.seed, share, check)


def counted_view(counts):
    classes = np.repeat(np.arange(len(counts)), counts)
    size = len(classes) + 20
    rng = np.random.default_rng(0)
    return ArrayView(
        MultiClass([f"c{k}" for k in range(len(counts))]),
        np.full((size, len(counts)), 1 / len(counts)),
        rng.normal(size=(size, 4)),
        labelled=np.arange(len(classes)),
        labels=np.eye(len(counts))[classes],
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # The median is 5: that of the five classes that have a label.
        ({}, {1: 2, 2: 5, 3: 1}),
        ({"classes": "c0|c4"}, {0: 5}),
        ({"classes": ["c0", "c1"], "queries": 3}, {0: 3, 1: 2}),
        ({"most": 3}, {1: 1, 2: 1, 3: 1}),
    ],
)
def test_queries_are_of_rare_or_named_classes(options, expected):
    view = counted_view([9, 2, 5, 1, 0, 6])
    places = Similar(**options).query_places(view, np.random.default_rng(1))
    assert len(set(places.tolist())) == len(places)
    classes = view.labels[places].argmax(1)
    assert dict(zip(*np.unique(classes, return_counts=True))) == expected


@pytest.mark.parametrize("task", [MultiClass(3), MultiLabel(3)], ids=lambda t: t.kind)
def test_it_agrees_with_submodlib(task):
    parts.need("submodlib")
    import submodlib

    view = make_view(make_pool(task, 60, seed=8, dims=4), 8, labelled=0.3)
    strategy = Similar()
    queries, _ = chosen(strategy, view, seed=0)
    free = view.free_ids
    similarity = shifted(view, embeddings(view)[free], queries)
    theirs = submodlib.FacilityLocationVariantMutualInformationFunction(
        n=len(free), num_queries=len(queries), query_sijs=similarity, queryDiversityEta=1.0
    ).maximize(budget=12, optimizer="LazyGreedy", stopIfZeroGain=False, stopIfNegativeGain=False)
    cursor = open_arm(strategy, view, seed=0)
    for _ in range(12):
        view.ledger.take(cursor.take())
    assert view.ledger.taken.tolist() == [int(free[i]) for i, _ in theirs]


def test_the_conditional_gain_is_that_of_submodlib():
    """Its ground set holds the queries and what is free; only the queries' rows count, and only
    what is free can be taken. Without eta there is no second sum.
    """
    parts.need("submodlib")
    import submodlib

    view = make_view(make_pool(MultiClass(3), 60, seed=9, dims=4), 9, labelled=0.4)
    strategy = Similar(eta=0.0, hold_out="0", classes="1", strength=0.7)
    queries, held_out = chosen(strategy, view, seed=0)
    free = view.free_ids
    count = len(queries)
    size = count + len(free)
    to_free = np.zeros((size, size))
    to_free[:count, count:] = shifted(view, queries, embeddings(view)[free])
    to_held_out = np.zeros((size, len(held_out)))
    to_held_out[:count] = shifted(view, queries, held_out)
    theirs = submodlib.FacilityLocationConditionalGainFunction(
        n=size,
        num_privates=len(held_out),
        data_sijs=to_free,
        private_sijs=to_held_out,
        privacyHardness=0.7,
    )
    cursor = open_arm(strategy, view, seed=0)
    for _ in range(6):
        gains = targeted_gains(view, queries, held_out, 0.0, 0.7)
        place = {int(position): count + number for number, position in enumerate(free)}
        batch = {place[i] for i in view.ledger.taken.tolist()}
        before = theirs.evaluate(batch) if batch else 0.0
        index = cursor.take()
        gain = theirs.evaluate(batch | {place[index]}) - before
        assert gain == pytest.approx(gains[index], abs=1e-5)
        assert gain >= max(gains.values()) - 1e-5
        view.ledger.take(index)


def test_it_stays_away_from_what_annotators_skipped():
    """Junk looks more like the labelled examples of the rare class than its other examples do;
    junk that was skipped gives it away.
    """
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2, 3], [40, 2, 30, 30])  # common, rare and labelled, rare, junk
    angles = np.radians(np.array([90, 0, 40, -30])[kinds] + rng.normal(size=102))
    features = np.stack([np.cos(angles), np.sin(angles)], 1)
    probs = np.array([[0.9, 0.1], [0.4, 0.6], [0.4, 0.6], [0.4, 0.6]])[kinds]
    junk = []
    for family in ("similar", "similar(hold_out=skipped)"):
        learner = Learner(
            MultiClass(["common", "rare"]),
            102,
            strategies=[family],
            selector="random-meta",
            batch=10,
        )
        learner.tell(np.array([0, 1, 2, 40, 41]), np.eye(2)[[0, 0, 0, 1, 1]])
        learner.skip(np.flatnonzero(kinds == 3)[:6])
        batch = learner.ask(probs, features)
        junk.append(int((kinds[batch.indices] == 3).sum()))
    assert junk == [10, 0]


def test_a_class_that_the_task_does_not_have():
    for option in ("classes", "hold_out"):
        with pytest.raises(InputError, match="'bird'"):
            make_arms([("similar", {option: ["cat", "bird"]})], MultiClass(["cat", "dog"]))
    make_arms(["similar(classes=cat|dog, hold_out=skipped)"], MultiClass(["cat", "dog"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eta": -1.0}, "eta is -1.0: it must be finite and at least 0"),
        ({"strength": np.inf}, "strength is inf"),
        ({"queries": 0}, "queries is 0: at least 1"),
        ({"most": 0}, "most is 0: at least 1"),
        ({"classes": []}, "classes is empty: name a class"),
        ({"classes": [3]}, "classes has 3: class names are needed"),
        ({"hold_out": 5}, "hold_out is 5"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        Similar(**options)
