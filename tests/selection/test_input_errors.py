"""Every bad input: the message names the value and the limit, and nothing has changed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from toys import same, snapshot

from tailor import ArrayView, InputError, Learner, MultiClass, MultiLabel, TailorError, UnknownName
from tailor.bandits import registry as selectors
from tailor.strategies import registry as families
from tailor.testing import make_pool

TASKS = {
    "multi-class": MultiClass(["cat", "dog", "fox"]),
    "multi-label": MultiLabel(["cat", "dog", "fox"]),
}
SIZE = 30


def started(kind, **more):
    """A loop in its second round, with late answers, a skip and something to learn."""
    pool = make_pool(TASKS[kind], SIZE, seed=0)
    learner = Learner(TASKS[kind], SIZE, **{"strategies": ["random", "galaxy"], "batch": 4, **more})
    learner.tell(np.arange(4), pool.truth[:4])
    for _ in range(2):
        batch = learner.ask(pool.probs, pool.features)
        learner.tell(batch.indices[:2], pool.truth[batch.indices[:2]])
        learner.skip(batch.indices[2:3])
    return learner, pool


def fails(learner, act, *parts):
    before = snapshot(learner)
    with pytest.raises(InputError) as caught:
        act()
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in {str(caught.value)!r}"
    assert isinstance(caught.value, TailorError)
    assert same(before, snapshot(learner))


def with_value(pool, value, row=7, column=1):
    probs = pool.probs.copy()
    probs[row, column] = value
    return probs


@pytest.mark.parametrize("kind", list(TASKS))
@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (np.nan, ["nan", "example 7", "'dog'", "not finite"]),
        (np.inf, ["inf", "example 7", "'dog'", "not finite"]),
        (-0.25, ["-0.25", "example 7", "'dog'", "[0, 1]"]),
        (1.5, ["1.5", "example 7", "'dog'", "[0, 1]"]),
    ],
)
def test_probabilities_that_are_none(kind, value, parts):
    learner, pool = started(kind)
    fails(learner, lambda: learner.ask(with_value(pool, value)), *parts)
    assert len(learner.ask(pool.probs)) == 4


def test_multi_class_rows_sum_to_1():
    learner, pool = started("multi-class")
    probs = pool.probs.copy()
    probs[9] = [0.5, 0.5, 0.25]
    fails(learner, lambda: learner.ask(probs), "example 9", "1.25", "0.001", "MultiLabel")
    learner, pool = started("multi-label")
    probs = pool.probs.copy()
    probs[9] = [0.5, 0.5, 0.25]
    assert len(learner.ask(probs)) == 4


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda p: p[:, :2] / p[:, :2].sum(1, keepdims=True), ["(30, 2)", "3 columns"]),
        (lambda p: p[:20], ["20 rows", "30 examples"]),
        (lambda p: p[0], ["(3,)"]),
        (lambda p: (p * 100).astype(int), ["floating", "int64"]),
    ],
)
def test_probabilities_of_a_wrong_shape_or_kind(change, parts):
    learner, pool = started("multi-class")
    fails(learner, lambda: learner.ask(change(pool.probs)), *parts)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda h: h[:20], ["20 rows", "30"]),
        (lambda h: np.where(np.arange(SIZE)[:, None] == 3, np.nan, h), ["example 3", "not finite"]),
        (lambda h: h[:, 0], ["(30,)"]),
    ],
)
def test_features_that_do_not_fit(change, parts):
    learner, pool = started("multi-class")
    fails(learner, lambda: learner.ask(pool.probs, change(pool.features)), *parts)


@pytest.mark.parametrize("kind", list(TASKS))
@pytest.mark.parametrize(
    ("positions", "labels", "parts"),
    [
        ([9], [[2, 0, 0]], ["2", "'cat'", "0 or 1"]),
        ([9], [[np.nan, 0, 0]], ["nan", "'cat'", "0 or 1"]),
        ([9], [[-1, 0, 0]], ["-1", "'cat'", "0 or 1"]),
        ([9], [[1, 0]], ["(n, 3)", "(1, 2)"]),
        ([9, 10], [[1, 0, 0]], ["2 positions", "1 labels"]),
        ([30], [[1, 0, 0]], ["30", "0 to 29"]),
        ([-1], [[1, 0, 0]], ["-1", "0 to 29"]),
        ([9, 9], [[1, 0, 0]] * 2, ["position 9", "more than once"]),
        ([0.5], [[1, 0, 0]], ["float64"]),
    ],
)
def test_labels_that_are_none(kind, positions, labels, parts):
    learner, _ = started(kind)
    fails(learner, lambda: learner.tell(positions, labels), *parts)


@pytest.mark.parametrize("label", [[1, 1, 0], [0, 0, 0]])
def test_a_multi_class_label_is_one_hot(label):
    learner, _ = started("multi-class")
    fails(
        learner,
        lambda: learner.tell([8, 9], [[1, 0, 0], label]),
        "row 1",
        f"{sum(label)} classes",
        "one-hot",
    )
    learner, _ = started("multi-label")
    learner.tell([8, 9], [[1, 0, 0], label])
    assert learner.label_table.labels_of(np.array([9])).tolist() == [label]


def test_sizes():
    learner, pool = started("multi-class")
    left = int(learner.label_table.free.sum())
    fails(
        learner,
        lambda: learner.ask(pool.probs, size=left + 1),
        str(left + 1),
        f"{left} are left",
        "allow_short",
    )
    fails(learner, lambda: learner.ask(pool.probs, size=0), "size is 0", "at least 1")
    assert len(learner.ask(pool.probs, size=left)) == left
    fails(learner, lambda: learner.ask(pool.probs, allow_short=True), "no example is left")


def test_features_missing_for_an_arm_that_needs_them():
    learner, pool = started("multi-class", strategies=["random", "badge"])
    fails(learner, lambda: learner.ask(pool.probs), "'badge'", "needs features")
    for name, need in (("bald", "dropout="), ("submodular", "features")):
        learner = Learner(TASKS["multi-class"], SIZE, strategies=[name], batch=4)
        fails(learner, lambda learner=learner: learner.ask(pool.probs), repr(name), need)
    learner = Learner(TASKS["multi-label"], SIZE, strategies=["weak-supervision"], batch=4)
    fails(learner, lambda: learner.ask(np.full((SIZE, 3), 0.5)), "weak-supervision", "finetune=")


@pytest.mark.parametrize(
    ("weights", "parts"),
    [
        ([0.1, 0.5, 0.1], ["'dog'", "0.5", "1/3"]),
        ([0.1, 0.1, -0.4], ["'fox'", "-0.4", "1/3"]),
        ([0.1, np.nan, 0.1], ["'dog'", "nan"]),
        ([0.1, 0.1], ["(2,)", "(3,)"]),
        (lambda round, counts: np.full(3, round + 1.0), ["'cat'", "1/3"]),
    ],
)
def test_weights_outside_their_bounds(weights, parts):
    pool = make_pool(TASKS["multi-class"], SIZE, seed=0)
    learner = Learner(
        TASKS["multi-class"],
        SIZE,
        strategies=["random"],
        batch=4,
        reward=("domain", {"weights": weights}),
    )
    fails(learner, lambda: learner.ask(pool.probs), *parts)


def test_weights_that_go_wrong_later_change_nothing():
    def weights(round, counts):
        return np.full(3, 0.1 if round < 2 else 0.9)

    learner, pool = started("multi-class", reward=("domain", {"weights": weights}))
    fails(learner, lambda: learner.ask(pool.probs), "0.9", "1/3")


def test_an_arm_that_fails_to_open_leaves_the_selector_as_it_was():
    pool = make_pool(TASKS["multi-label"], SIZE, seed=0)
    learner = Learner(TASKS["multi-label"], SIZE, strategies=["weak-supervision"], batch=4)
    batch = learner.ask(pool.probs, finetune=pool.finetune)
    learner.tell(batch.indices, pool.truth[batch.indices])
    fails(
        learner,
        lambda: learner.ask(pool.probs, finetune=lambda t, e: pool.probs[:5]),
        "(5, 3)",
        "(30, 3)",
    )
    fails(
        learner,
        lambda: learner.ask(pool.probs, finetune=lambda t, e: pool.probs * np.nan),
        "nan",
        "not finite",
    )
    assert len(learner.ask(pool.probs, finetune=pool.finetune)) == 4


@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan])
def test_own_reward_outside_its_bounds(value):
    rewards = [0.5, value]
    learner, pool = started("multi-class", selector="albl", own_reward=lambda *a: rewards[0])
    rewards.pop(0)
    fails(learner, lambda: learner.ask(pool.probs), str(value), "[0, 1]")


def test_dropout_passes_that_do_not_fit():
    pool = make_pool(TASKS["multi-class"], SIZE, seed=0)
    learner = Learner(TASKS["multi-class"], SIZE, strategies=["bald"], batch=4)
    fails(learner, lambda: learner.ask(pool.probs, dropout=lambda: []), "no pass", "at least one")
    fails(
        learner,
        lambda: learner.ask(pool.probs, dropout=lambda: [pool.probs[:4]]),
        "(4, 3)",
        "(30, 3)",
    )
    fails(learner, lambda: learner.ask(pool.probs, dropout=lambda: [pool.probs * 2]), "[0, 1]")


def test_skipping_and_offering_again():
    learner, _ = started("multi-class")
    fails(learner, lambda: learner.skip([9, 0]), "example 0", "has a label")
    fails(learner, lambda: learner.offer_again([0]), "example 0", "not skipped")
    fails(learner, lambda: learner.skip([99]), "99", "0 to 29")


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("make", "near"),
    [
        (lambda t: Learner(t, 9, strategies=["galaxi"]), "'galaxy'"),
        (lambda t: Learner(t, 9, strategies=["most_likely_positive"]), "'most-likely-positive'"),
        (lambda t: Learner(t, 9, selector="tayler"), "'tailor'"),
        (lambda t: Learner(t, 9, reward="diverse"), "'diversity'"),
        (lambda t: Learner(t, 9, strategies=["random"], selector="fixed(arm=randon)"), "'random'"),
        (lambda t: Learner(t, 9, strategies=["galaxy(pendig=split)"]), "'pending'"),
        (lambda t: Learner(t, 9, selector="tailor(forgett=0.5)"), "'forget'"),
        (lambda t: t.index("dgo"), "'dog'"),
        (lambda t: t.encode(["foxx"]), "'fox'"),
    ],
)
def test_a_wrong_name_lists_the_nearest_right_ones(make, near):
    with pytest.raises(UnknownName, match="did you mean") as caught:
        make(TASKS["multi-class"])
    assert near in str(caught.value)


def test_a_name_near_to_nothing_lists_all():
    with pytest.raises(UnknownName) as caught:
        families.find("zzzzzzzzzzzzz")
    assert all(name in str(caught.value) for name in families)


def test_an_option_of_a_family_without_options():
    with pytest.raises(UnknownName, match=re.escape("it has none")):
        families.make("margin", depth=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [("galaxy(pending=split", "closing bracket"), ("galaxy(split)", "'split' is not option=value")],
)
def test_names_with_options_that_can_not_be_read(text, message):
    for registry in (families, selectors):
        with pytest.raises(InputError, match=message):
            registry.parse(text)


def test_options_are_read_as_numbers_and_words():
    assert families.parse(" x( a=1, b=0.5, c=true, d=None, e=word ) ".strip()) == (
        "x",
        {"a": 1, "b": 0.5, "c": True, "d": None, "e": "word"},
    )


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda: MultiClass(["cat", "dog", "cat"]), ["'cat'", "2 times"]),
        (lambda: MultiClass(["cat"]), ["at least 2", "got 1"]),
        (lambda: MultiLabel([]), ["at least 1", "got 0"]),
        (lambda: MultiLabel(["cat", ""]), ["''", "non-empty"]),
        (lambda: TASKS["multi-class"].encode([3]), ["3", "0 to 2"]),
        (lambda: TASKS["multi-label"].encode(["cat"]), ["'cat'", "list of classes"]),
        (lambda: Learner(TASKS["multi-class"], 0), ["pool is 0", "at least 1"]),
        (lambda: Learner(TASKS["multi-class"], 9, batch=0), ["batch is 0", "at least 1"]),
        (lambda: Learner(TASKS["multi-class"], 9, rounds=-1), ["rounds is -1", "at least 1"]),
        (lambda: Learner(TASKS["multi-class"], 9, strategies=[]), ["no arm", "galaxy"]),
        (
            lambda: Learner(TASKS["multi-class"], 9, strategies=["random", "random"]),
            ["'random'", "more than once"],
        ),
        (
            lambda: Learner(TASKS["multi-class"], 9, strategies=["emal"]),
            ["'emal'", "multi-label", "multi-class"],
        ),
    ],
)
def test_tasks_and_loops_that_can_not_be(make, parts):
    with pytest.raises(InputError) as caught:
        make()
    assert all(part in str(caught.value) for part in parts), str(caught.value)


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        (
            {"labelled": [1], "labels": [[1, 0, 0]], "pending": [1]},
            ["example 1", "both labelled and pending"],
        ),
        (
            {"labelled": [1], "labels": [[1, 0, 0]], "free": np.ones(5, bool)},
            ["example 1", "marked free"],
        ),
        ({"free": np.ones(4, bool)}, ["(5,)", "(4,)"]),
        ({"free": np.ones(5)}, ["bool", "float64"]),
        ({"labelled": [1, 2], "labels": [[1, 0, 0]]}, ["2 labelled positions", "1 labels"]),
    ],
)
def test_views_that_contradict_themselves(more, parts):
    with pytest.raises(InputError) as caught:
        ArrayView(TASKS["multi-label"], np.full((5, 3), 0.5), **more)
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_an_example_can_not_be_taken_twice():
    view = ArrayView(TASKS["multi-label"], np.full((5, 3), 0.5))
    view.ledger.take(2)
    with pytest.raises(InputError, match="example 2 is not free"):
        view.ledger.take(2)
    assert view.ledger.taken.tolist() == [2]
