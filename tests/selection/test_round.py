"""One round: what is opened, who gives, who is credited."""

from __future__ import annotations

import numpy as np
import pytest
from toys import Few

from tailor import ArrayView, Exhausted, InputError, Learner, MultiClass, MultiLabel, Round
from tailor.selection.slot_filling import NOBODY
from tailor.strategies import make_arms
from tailor.testing import make_pool, make_view


def view_of(size, task=None, seed=0):
    task = task or MultiClass(3)
    return make_view(make_pool(task, size, seed=seed), seed, labelled=0.0)


def walk(view, families, plan, seed=0):
    return Round(view, make_arms(families, view.task), np.array(plan), seed)


def test_only_pulled_arms_are_opened_and_told_how_often():
    one = Few("one", count=9)
    two = Few("two", count=9)
    three = Few("three", count=9)
    round = walk(view_of(20), [one, two, three], [2, 0, 2, 2])
    assert (one.opened, two.opened, three.opened) == ([[1]], [], [[3]])
    assert round.opened == [0, 2]
    assert round.batch().arms.tolist() == [2, 0, 2, 2]


def test_weak_supervision_is_not_tuned_where_it_is_not_pulled():
    pool = make_pool(MultiLabel(3), 40, seed=0)
    calls = []

    def finetune(targets, epochs):
        calls.append(epochs)
        return pool.probs

    for arm, expected in (("random", 0), ("emal", 0), ("weak-supervision", 1)):
        calls.clear()
        learner = Learner(
            pool.task,
            40,
            strategies=["random", "emal", "weak-supervision"],
            selector=("fixed", {"arm": arm}),
            batch=5,
        )
        assert len(learner.ask(pool.probs, finetune=finetune)) == 5
        assert len(calls) == expected


def test_arms_of_a_family_are_opened_in_one_call():
    calls = []

    class Pair(Few):
        per_class = True

        def open(self, arms, view, pulls, rngs):
            calls.append(([arm.name for arm in arms], pulls))
            return super().open(arms, view, pulls, rngs)

    walk(view_of(20), [Pair("pair", count=5)], [2, 0, 0])
    assert calls == [(["pair[0]", "pair[2]"], [2, 1])]


def test_a_dry_arm_hands_its_slot_to_the_arm_of_the_next_slot():
    """The arm of slots 0 to 3 has 2 to give: slot 2 and 3 go to the next arms in the plan, going
    round.
    """
    dry = Few("dry", 0, 2)
    first = Few("first", 10, 50)
    second = Few("second", 30, 50)
    batch = walk(view_of(60), [second, dry, first], [1, 1, 1, 1, 2, 0, 2]).batch()
    assert batch.planned.tolist() == [1, 1, 1, 1, 2, 0, 2]
    assert batch.arms.tolist() == [1, 1, 2, 2, 2, 0, 2]
    assert batch.indices.tolist() == [0, 1, 10, 11, 12, 30, 13]
    assert batch.arm_names == ["dry", "dry", "first", "first", "first", "second", "first"]


def test_later_slots_come_before_earlier_ones():
    batch = walk(
        view_of(40), [Few("early", 10, 9), Few("dry", 0, 1), Few("late", 20, 9)], [0, 1, 1, 2]
    ).batch()
    assert batch.arms.tolist() == [0, 1, 2, 2]


def test_the_last_slot_is_handed_round_to_the_first():
    batch = walk(view_of(30), [Few("dry", 0, 1), Few("rich", 10, 9)], [1, 0, 0]).batch()
    assert batch.arms.tolist() == [1, 0, 1]


def test_where_every_planned_arm_is_dry_a_random_one_is_credited_to_nobody():
    """An arm outside the plan is not asked, though it had something to give."""
    rich = Few("rich", 0, 50)
    counts = np.zeros(12)
    for seed in range(300):
        batch = walk(
            view_of(12), [Few("a", 0, 2), Few("b", 4, 2), rich], [0, 1, 0, 1, 0, 1, 1], seed
        ).batch()
        assert batch.arms.tolist() == [0, 1, 0, 1, NOBODY, NOBODY, NOBODY]
        assert len(set(batch.indices.tolist())) == 7
        assert batch.arm_names[-1] == "(nobody)"
        counts[batch.indices[4:]] += 1
    assert rich.opened == []
    assert counts[[0, 1, 4, 5]].sum() == 0
    expected = 300 * 3 / 8
    assert (
        (counts[counts > 0] - expected) ** 2 / expected
    ).sum() < 24.3  # chi-square, 7 degrees, p = 0.001


def test_a_round_ends_with_the_plan_or_the_pool():
    round = walk(view_of(3), ["random"], [0] * 5)
    assert sorted(p.index for p in round) == [0, 1, 2]
    assert round.over
    with pytest.raises(Exhausted, match="the round is over"):
        round.next()
    batch = walk(view_of(3), ["random"], [0] * 5).batch()
    assert (len(batch), batch.requested, batch.short) == (3, 5, True)


def test_a_batch_after_single_picks_is_the_rest_and_not_short():
    round = walk(view_of(30), ["random"], [0] * 6)
    first = [round.next().index for _ in range(2)]
    batch = round.batch()
    assert (len(batch), batch.requested, batch.short) == (4, 4, False)
    assert len({*first, *batch.indices.tolist()}) == 6


def test_slots_are_numbered_and_times_kept():
    round = walk(view_of(30), ["random", "confidence"], [0, 1, 1])
    assert [p.slot for p in round] == [0, 1, 2]
    assert round.open_seconds > 0


def test_a_pulled_arm_must_find_what_it_reads():
    view = ArrayView(MultiClass(2), np.full((5, 2), 0.5))
    with pytest.raises(
        InputError, match="arm 'badge' needs features: hand it in, or leave 'badge' out"
    ):
        walk(view, ["random", "badge"], [0, 1])
    assert len(walk(view, ["random", "badge"], [0, 0]).batch()) == 2


def test_a_revealed_label_is_checked():
    round = walk(view_of(10), ["random"], [0, 0])
    index = round.next().index
    with pytest.raises(InputError, match="has 2 classes set"):
        round.reveal(index, np.array([1, 1, 0]))
    assert round.view.ledger.revealed == []


@pytest.mark.parametrize("task", [MultiClass(3), MultiLabel(3)], ids=lambda t: t.kind)
def test_many_arms_never_give_one_example_twice(task):
    names = ["random", "galaxy", "most-likely-positive", "badge", "coreset", "submodular"]
    for seed in range(5):
        view = make_view(
            make_pool(task, 60, seed=seed, grid=8, copies=0.3), seed, pending=0.1, skipped=0.1
        )
        arms = make_arms(names, task)
        plan = np.random.default_rng(seed).integers(len(arms), size=view.ledger.left + 5)
        batch = Round(view, arms, plan, seed).batch()
        assert sorted(batch.indices.tolist()) == view.free_ids.tolist()
        assert batch.short
