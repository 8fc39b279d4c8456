"""Ask and tell: late, corrected, skipped and outside answers; streaming; the same picks
everywhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from toys import Few, credited

from tailor import InputError, Learner, MultiClass, MultiLabel
from tailor.bandits import ALBL, DEAL, LinearThompsonSampling, Selector, ThompsonSampling
from tailor.selection.class_edits import merged
from tailor.strategies import registry
from tailor.testing import make_pool

TASK = MultiClass(["cat", "dog", "fox"])
POOL = make_pool(TASK, 80, seed=1)


def make_loop(**more):
    options = {
        "strategies": ["random", "confidence", "galaxy"],
        "selector": "tailor",
        "batch": 6,
        "seed": 4,
        **more,
    }
    learner = Learner(TASK, 80, **options)
    learner.tell(np.arange(5), POOL.truth[:5])
    return learner


def ask(learner, **more):
    return learner.ask(POOL.probs, POOL.features, **more)


def state(learner):
    return {name: array.tolist() for name, array in learner.selector.state().items()}


def test_answers_are_learned_at_the_next_ask():
    learner = make_loop()
    fresh = state(learner)
    batch = ask(learner)
    learner.tell(batch.indices, POOL.truth[batch.indices])
    assert state(learner) == fresh
    ask(learner)
    assert state(learner) != fresh
    ours = learner.label_table.picks.arm[batch.indices]
    assert ours.tolist() == batch.arms.tolist()


def test_the_posterior_counts_what_each_arm_found():
    learner = make_loop(selector="tailor(forget=1.0)")
    batch = ask(learner)
    learner.tell(batch.indices, POOL.truth[batch.indices])
    ask(learner)
    expected = np.ones((len(learner.arms), 3))
    for arm, index in zip(batch.arms, batch.indices):
        expected[arm] += POOL.truth[index]
    assert learner.selector.posterior.mean() == pytest.approx(
        expected / expected.sum(1, keepdims=True)
    )


def test_the_difficulty_of_a_class_is_what_was_news_of_it():
    """From the answers as they stand: a correction changes it."""
    learner = make_loop(reward="difficulty")
    batch = ask(learner)
    learner.tell(batch.indices, np.roll(POOL.truth[batch.indices], 1, axis=1))
    learner.tell(batch.indices, POOL.truth[batch.indices])
    walk = learner.open_round(POOL.probs, POOL.features)
    y = POOL.truth[batch.indices]
    p = POOL.probs[batch.indices]
    hard = (1 + (y * (1 - p)).sum(0)) / (2 + y.sum(0))
    assert walk.weights == pytest.approx(hard / hard.max() / 3, rel=1e-5)


def test_telling_twice_is_telling_once():
    once = make_loop()
    twice = make_loop()
    for learner, times in ((once, 1), (twice, 2)):
        for _ in range(2):
            batch = ask(learner)
            for _ in range(times):
                learner.tell(batch.indices, POOL.truth[batch.indices])
    assert ask(once).indices.tolist() == ask(twice).indices.tolist()
    assert state(once) == state(twice)


@pytest.mark.parametrize("selector", ["tailor", "linear-thompson", "random-meta"])
def test_a_correction_after_learning_is_as_if_it_had_been_right_at_once(selector):
    right = make_loop(selector=selector)
    wrong = make_loop(selector=selector)
    batches = [ask(right), ask(wrong)]
    assert batches[0].indices.tolist() == batches[1].indices.tolist()
    asked = batches[0].indices
    right.tell(asked, POOL.truth[asked])
    lie = np.roll(POOL.truth[asked], 1, axis=1)
    wrong.tell(asked, lie)
    ask(right)
    ask(wrong)
    if selector == "tailor":
        assert state(right) != state(wrong)
    wrong.tell(asked[:2], POOL.truth[asked[:2]])
    wrong.tell(asked[2:], POOL.truth[asked[2:]])
    assert state(right) == state(wrong)
    assert right.label_table.counts.tolist() == wrong.label_table.counts.tolist()


def test_a_correction_before_learning_replaces_the_answer():
    one = make_loop()
    other = make_loop()
    batch = ask(one)
    ask(other)
    one.tell(batch.indices, POOL.truth[batch.indices])
    other.tell(batch.indices, np.roll(POOL.truth[batch.indices], 1, axis=1))
    other.tell(batch.indices, POOL.truth[batch.indices])
    assert ask(one).indices.tolist() == ask(other).indices.tolist()
    assert state(one) == state(other)


class Listener(Selector):
    """Plans the arms in turn and remembers what it heard."""

    name = "listener"

    def reset(self):
        self.heard = []

    def plan(self, slots, weights, rng):
        return np.arange(slots) % self.contest.size

    def learn(self, outcomes):
        self.heard.append(outcomes)


@pytest.fixture
def listening():
    return make_loop(strategies=["random", "confidence"], selector=Listener())


def test_late_answers_are_credited_when_they_come(listening):
    learner = listening
    first = ask(learner)
    learner.tell(first.indices[:4], POOL.truth[first.indices[:4]])
    second = ask(learner)
    assert len(learner.selector.heard[0].arms) == 4
    assert not set(first.indices[4:].tolist()) & set(second.indices.tolist())
    assert set(first.indices[4:].tolist()) <= set(learner.label_table.pending.tolist())
    learner.tell(first.indices[4:], POOL.truth[first.indices[4:]])
    learner.tell(second.indices, POOL.truth[second.indices])
    ask(learner)
    heard = learner.selector.heard[1]
    given = dict(
        zip([*first.indices.tolist(), *second.indices.tolist()], [*first.arms, *second.arms])
    )
    asked = sorted([*first.indices[4:].tolist(), *second.indices.tolist()])
    assert heard.arms.tolist() == [given[i] for i in asked]
    assert (heard.labels == POOL.truth[asked]).all()
    assert heard.predicted == pytest.approx(POOL.probs[asked], rel=1e-6)


def test_outside_knowledge_is_credited_to_nobody(listening):
    learner = listening
    batch = ask(learner)
    outside = np.setdiff1d(np.arange(5, 40), batch.indices)[:7]
    learner.tell(outside, POOL.truth[outside])
    second = ask(learner)
    assert len(learner.selector.heard[0].arms) == 0
    assert set(outside.tolist()) <= set(learner.label_table.labelled.tolist())
    assert not set(outside.tolist()) & set(second.indices.tolist())


def test_skipped_examples_are_neither_offered_nor_learned_from(listening):
    learner = listening
    batch = ask(learner)
    skipped = batch.indices[:3]
    learner.skip(skipped)
    learner.tell(batch.indices[3:], POOL.truth[batch.indices[3:]])
    seen = ask(learner, size=60).indices.tolist()
    assert len(learner.selector.heard[0].arms) == 3
    assert not set(skipped.tolist()) & set(seen)
    learner.offer_again(skipped)
    again = ask(learner, size=20, allow_short=True)
    assert set(skipped.tolist()) <= set(again.indices.tolist())
    learner.tell(skipped, POOL.truth[skipped])
    assert set(skipped.tolist()) <= set(credited(learner).tolist())


def test_short_batches_say_so():
    learner = make_loop()
    batch = ask(learner, size=75)
    assert (len(batch), batch.short) == (75, False)
    learner = make_loop()
    batch = ask(learner, size=200, allow_short=True)
    assert (len(batch), batch.requested, batch.short) == (75, 200, True)
    assert sorted(batch.indices.tolist()) == list(range(5, 80))


def test_telling_nothing_is_fine_at_any_time():
    learner = make_loop()
    learner.tell([], np.zeros((0, 3)))
    ask(learner)
    learner.tell([], np.zeros((0, 3)))
    learner.skip([])
    assert learner.label_table.labelled.tolist() == [0, 1, 2, 3, 4]


# ------------------------------------------------------------------ streaming


def test_labels_told_in_between_reach_galaxy():
    """A line with one cut: with each answer told at once, the picks are a bisection."""
    probs = (np.arange(34) / 64)[:, None]
    truth = (np.arange(34) > 20)[:, None].astype(int)
    learner = Learner(
        MultiLabel(1),
        34,
        strategies=["galaxy(pending=revealed)"],
        selector="fixed(arm=galaxy)",
        batch=5,
    )
    learner.tell([0, 33], truth[[0, 33]])
    walk = learner.open_round(probs)
    picks = []
    for pick in walk:
        picks.append(pick.index)
        learner.tell([pick.index], truth[[pick.index]])
    assert picks == [17, 25, 21, 19, 20]
    assert credited(learner).tolist() == sorted(picks)


def test_a_late_answer_told_in_between_reaches_galaxy():
    probs = (np.arange(11) / 16)[:, None]
    for label, expected in ((0, 8), (1, 3)):
        learner = Learner(
            MultiLabel(1),
            11,
            strategies=["galaxy(pending=revealed)"],
            selector="fixed(arm=galaxy)",
            batch=1,
        )
        learner.tell([0, 10], [[0], [1]])
        assert learner.ask(probs).indices.tolist() == [5]
        walk = learner.open_round(probs)
        learner.tell([5], [[label]])
        assert walk.next().index == expected


@pytest.mark.parametrize(
    "family", ["random", "confidence", "badge", "coreset", "submodular", "galaxy", "margin"]
)
def test_what_is_told_or_skipped_meanwhile_is_not_offered(family):
    """Outside knowledge and skips that come while a round is open: those examples are out of it."""
    learner = make_loop(strategies=[family], batch=75)
    walk = learner.open_round(POOL.probs, POOL.features)
    first = walk.next().index
    rest = [i for i in range(5, 80) if i != first]
    told = np.array(rest[:30])
    skipped = np.array(rest[30:60])
    learner.tell(told, POOL.truth[told])
    learner.skip(skipped)
    batch = walk.batch()
    assert sorted(batch.indices.tolist()) == sorted(rest[60:])
    assert batch.short
    assert not set(told.tolist()) & set(credited(learner).tolist())


def test_single_picks_and_the_rest_of_the_batch():
    one = make_loop()
    other = make_loop()
    walk = one.open_round(POOL.probs, POOL.features)
    first = [walk.next().index for _ in range(2)]
    rest = walk.batch()
    assert [*first, *rest.indices.tolist()] == ask(other).indices.tolist()
    assert not rest.short
    assert one.label_table.pending.tolist() == other.label_table.pending.tolist()


# ------------------------------------------------------------------ rewards and credit


def test_the_users_own_reward_is_given_what_it_asks_for():
    calls = []

    def own(number, picks, labels, before, after):
        calls.append((number, picks.tolist(), labels.copy(), before, after))
        return 0.5

    learner = make_loop(selector="albl", own_reward=own)
    batch = ask(learner, model="first")
    learner.tell(batch.indices, POOL.truth[batch.indices])
    ask(learner, model="second")
    ((number, picks, labels, before, after),) = calls
    assert (number, picks, before, after) == (0, sorted(batch.indices.tolist()), "first", "second")
    assert (labels == POOL.truth[picks]).all()


def test_a_slot_handed_on_is_credited_to_who_gave_it():
    learner = make_loop(
        strategies=[Few("dry", 0, 2), Few("rich", 40, 30)], batch=8, selector=Listener()
    )
    batch = ask(learner)
    assert batch.planned.tolist() == [0, 1] * 4
    assert batch.arms.tolist() == [0, 1, 0, 1, 1, 1, 1, 1]
    learner.tell(batch.indices, POOL.truth[batch.indices])
    ask(learner)
    assert np.bincount(learner.selector.heard[0].arms).tolist() == [2, 6]


def test_a_pick_that_nobody_gave_is_learned_by_nobody():
    learner = make_loop(strategies=[Few("dry", 0, 2)], batch=6, selector=Listener())
    batch = ask(learner)
    assert batch.arms.tolist() == [0, 0, -1, -1, -1, -1]
    learner.tell(batch.indices, POOL.truth[batch.indices])
    ask(learner)
    assert learner.selector.heard[0].arms.tolist() == [0, 0]
    assert len(learner.label_table.labelled) == 11


# ------------------------------------------------------------------ a selector object

SELECTORS = [ThompsonSampling(forget=1.0), ALBL(), DEAL(), LinearThompsonSampling()]


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: selector.name)
def test_a_selector_object_survives_a_correction(selector):
    right = make_loop(selector=selector)
    wrong = make_loop(selector=selector)
    asked = ask(right).indices
    assert asked.tolist() == ask(wrong).indices.tolist()
    right.tell(asked, POOL.truth[asked])
    wrong.tell(asked, np.roll(POOL.truth[asked], 1, axis=1))
    ask(right)
    ask(wrong)
    wrong.tell(asked, POOL.truth[asked])
    # The others keep what they were told of the model's correctness at the time.
    if not selector.needs_fit:
        assert state(right) == state(wrong)
    wrong.withdraw(asked[:1])
    assert type(wrong.selector) is type(selector)


def test_a_selector_object_is_the_same_as_its_name_with_options():
    by_name = make_loop(selector="tailor(forget=0.5, prior=2)")
    by_object = make_loop(selector=ThompsonSampling(forget=0.5, prior=2))
    for _ in range(2):
        batch = ask(by_name)
        assert ask(by_object).indices.tolist() == batch.indices.tolist()
        for learner in (by_name, by_object):
            learner.tell(batch.indices, POOL.truth[batch.indices])
    assert state(by_name) == state(by_object)


def test_one_object_may_be_handed_to_several_learners():
    given = ThompsonSampling()
    first = make_loop(selector=given)
    second = make_loop(selector=given)
    fresh = state(second)
    batch = ask(first)
    first.tell(batch.indices, POOL.truth[batch.indices])
    ask(first)
    assert state(first) != fresh
    assert state(second) == fresh
    with pytest.raises(InputError, match=r"'tailor' has no arms yet: call begin"):
        given.plan(3, np.zeros(3), np.random.default_rng(0))


def test_a_copy_has_a_selector_of_its_own():
    learner = make_loop(selector=ThompsonSampling(forget=1.0))
    asked = ask(learner).indices
    learner.tell(asked, POOL.truth[asked])
    twin = learner.copy()
    assert type(twin.selector) is ThompsonSampling
    assert twin.selector is not learner.selector
    assert ask(twin).indices.tolist() == ask(learner).indices.tolist()
    before = state(learner)
    twin.tell(asked, np.roll(POOL.truth[asked], 1, axis=1))
    assert state(twin) != before
    assert state(learner) == before


def test_a_selector_object_follows_a_change_of_classes():
    by_name = make_loop(selector="tailor(forget=1.0)")
    by_object = make_loop(selector=ThompsonSampling(forget=1.0))
    for learner in (by_name, by_object):
        batch = ask(learner)
        learner.tell(batch.indices, POOL.truth[batch.indices])
        ask(learner)
        learner.reclass(merged(TASK, "dog", "fox"))
    assert by_object.selector.contest.task.classes == ("cat", "fox")
    assert state(by_name) == state(by_object)


def test_what_is_no_selector_is_refused():
    with pytest.raises(InputError, match="selector is 3: a name is needed"):
        make_loop(selector=3)


# ------------------------------------------------------------------ the same everywhere

SCRIPT = """
import json, sys
import numpy as np
from tailor import Learner, MultiClass, MultiLabel
from tailor.strategies import registry
from tailor.testing import make_pool

def picks():
    found = {}
    for task in (MultiClass(4), MultiLabel(4)):
        pool = make_pool(task, 70, seed=3, grid=16, copies=0.2)
        for name in registry:
            if task.kind not in registry.find(name).tasks:
                continue
            families = [name, *(["random"] if name != "random" else [])]
            loop = Learner(task, 70, strategies=families, batch=8, seed=9)
            loop.tell(np.arange(10), pool.truth[:10])
            for _ in range(2):
                more = dict(finetune=pool.finetune, dropout=pool.dropout)
                batch = loop.ask(pool.probs, pool.features, **more)
                loop.tell(batch.indices, pool.truth[batch.indices])
                found.setdefault(f"{task.kind} {name}", []).extend(batch.indices.tolist())
    return found
"""


def test_the_same_seed_gives_the_same_picks_in_another_process():
    here = {}
    exec(SCRIPT, here)
    ours = here["picks"]()
    env = {**os.environ, "PYTHONHASHSEED": "77"}
    command = [sys.executable, "-c", SCRIPT + "\njson.dump(picks(), sys.stdout)"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    theirs = json.loads(done.stdout)
    assert {key.split()[1] for key in ours} == set(registry)
    assert theirs == ours


def test_another_seed_gives_other_picks():
    batches = {
        tuple(ask(make_loop(strategies=["random"], seed=seed)).indices.tolist())
        for seed in range(5)
    }
    assert len(batches) == 5
