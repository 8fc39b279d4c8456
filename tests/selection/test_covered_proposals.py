"""Propose, then cover: who proposes, what is taken, who is credited, and that it is repeated."""

from __future__ import annotations

import numpy as np
import pytest
from toys import Few

from tailor import ArrayView, InputError, Learner, MultiClass, MultiLabel, Round
from tailor.selection.covered_proposals import PROPOSALS
from tailor.selection.slot_filling import NOBODY
from tailor.strategies import make_arms
from tailor.strategies.kernel_cover import KernelCover
from tailor.testing import make_pool, make_view

TASKS = [MultiClass(3), MultiLabel(3)]


def view_of(size, task=None, seed=0, labelled=0.1):
    return make_view(make_pool(task or MultiClass(3), size, seed=seed), seed, labelled=labelled)


def covered(view, families, plan, seed=0):
    return Round(view, make_arms(families, view.task), np.array(plan), seed, cover=True)


def test_each_arm_is_asked_for_four_times_its_slots():
    one = Few("one", count=99)
    two = Few("two", start=50, count=99)
    covered(view_of(400), [one, two], [0, 1, 1])
    assert one.opened == [[PROPOSALS]]
    assert two.opened == [[2 * PROPOSALS]]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_picks_are_proposals_each_once_and_credited_to_a_proposer(task):
    view = view_of(300, task)
    families = [Few("low", count=99), Few("high", start=150, count=99)]
    batch = covered(view, families, [0, 1] * 10).batch()
    assert len(set(batch.indices.tolist())) == 20
    assert view.free[batch.indices].all()
    for position, arm in zip(batch.indices, batch.arms):
        assert arm == (1 if position >= 150 else 0)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_of_the_proposals_the_one_that_adds_most_is_taken(task):
    """All free examples are proposed here, so the first pick is the best of them all."""
    view = view_of(60, task)
    round = covered(view, [Few("all", count=99)], [0] * 30)
    free = np.flatnonzero(view.free)
    cover = KernelCover.draw(view, np.random.default_rng(0))
    for _ in range(10):
        gains = cover.gains(free)
        pick = round.next()
        assert gains[free == pick.index][0] == gains.max()
        cover.add(np.array([pick.index]))
        free = free[free != pick.index]


def test_without_proposals_a_random_one_is_credited_to_nobody():
    view = view_of(100)
    batch = covered(view, [Few("few", count=2)], [0] * 5).batch()
    assert (batch.arms == NOBODY).sum() == 3
    assert len(set(batch.indices.tolist())) == 5


def test_what_is_taken_from_outside_is_not_given():
    view = view_of(60)
    expected = covered(view_of(60), [Few("all", count=99)], [0] * 5).batch().indices
    round = covered(view, [Few("all", count=99)], [0] * 5)
    view.ledger.take(int(expected[0]))
    indices = round.batch().indices
    assert expected[0] not in indices
    assert len(indices) == 5


def test_a_round_gone_through_again_gives_the_same_picks():
    first = covered(view_of(200), ["margin", "random", "herding"], [0, 1, 2] * 4)
    picks = [pick.index for pick in first]
    again = covered(view_of(200), ["margin", "random", "herding"], [0, 1, 2] * 4)
    for index in picks[:6]:
        again.repick(index)
    assert [pick.index for pick in again] == picks[6:]


def test_features_are_needed():
    task = MultiClass(2)
    view = ArrayView(task, np.full((10, 2), 0.5))
    with pytest.raises(InputError, match="cover needs features"):
        covered(view, ["random"], [0])
    learner = Learner(task, 10, strategies="random", batch=2, cover=True)
    with pytest.raises(InputError, match="cover needs features"):
        learner.ask(np.full((10, 2), 0.5))
    assert learner.round == 0


def test_a_learner_credits_the_arms_that_proposed():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 5))
    probs = rng.dirichlet(np.ones(3), 200)
    learner = Learner(MultiClass(3), 200, strategies=["margin", "random"], batch=10, cover=True)
    for _ in range(3):
        batch = learner.ask(probs, features)
        assert (batch.arms >= 0).all()
        learner.tell(batch.indices, rng.integers(0, 3, 10))
    assert len(learner.labelled) == 30
    assert learner.selector.posterior.evidence.sum() > 0
