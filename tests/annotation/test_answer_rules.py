"""Answers count for what was asked of that person, and never beyond the budget."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from coordinators import Clock, open_coordinator, prepare, until
from small import Points

from tailor.annotation.answer_rules import AnswerRefused
from tailor.annotation.roles import ROLES, NotAllowed, Right, check_role, may
from tailor.errors import UnknownName
from tailor.run.stopping import Budget


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def coordinator(tmp_path, clock):
    coordinator = open_coordinator(tmp_path / "a.db", Points(60), clock=clock)
    prepare(coordinator)
    yield coordinator
    coordinator.close()


def as_annotator(coordinator, who, one, label=("a",), **options):
    return coordinator.answer(who, one, label, role="annotator", **options)


def unasked_ids(coordinator) -> list[str]:
    run_state = coordinator.session.run_state
    untouched = run_state.label_table.untouched()
    return [one for one, is_untouched in zip(run_state.ids, untouched) if is_untouched]


def test_each_role_may_what_the_ones_before_may():
    sets = list(ROLES.values())
    assert all(less < more for less, more in zip(sets, sets[1:]))
    assert sets[-1] == frozenset(Right)
    assert not may("annotator", Right.EXPORT)
    with pytest.raises(UnknownName, match="owner"):
        check_role("ownr")


def test_what_nobody_or_another_was_asked_is_refused(coordinator):
    (of_ann,) = coordinator.next("ann").items
    before = coordinator.session.run_state.event
    for one in (of_ann.id, unasked_ids(coordinator)[0]):
        for label in (["a"], None):
            with pytest.raises(AnswerRefused, match="was not asked of bob"):
                as_annotator(coordinator, "bob", one, label)
            with pytest.raises(AnswerRefused, match="was not asked of rita"):
                coordinator.answer("rita", one, label, role="reviewer", unasked=False)
    assert coordinator.session.run_state.event == before
    as_annotator(coordinator, "ann", of_ann.id)
    coordinator.answer("rita", unasked_ids(coordinator)[0], ["b"], role="reviewer")


def test_a_late_answer_counts_until_another_has_answered(coordinator, clock):
    (item,) = coordinator.next("ann").items
    clock.now += 1000
    assert [held.id for held in coordinator.next("bob").items] == [item.id]
    as_annotator(coordinator, "ann", item.id, ["a"])
    with pytest.raises(AnswerRefused, match=r"ann has answered .* meanwhile"):
        as_annotator(coordinator, "bob", item.id, ["b"])
    assert coordinator.item(item.id).by == "ann"
    as_annotator(coordinator, "ann", item.id, ["b"])  # her own can be corrected
    coordinator.answer("rita", item.id, ["c"], role="reviewer", unasked=False)
    with pytest.raises(AnswerRefused, match="rita has answered"):
        as_annotator(coordinator, "ann", item.id, ["a"])


def test_ones_own_skip_can_be_corrected_after_a_restart_too(coordinator, tmp_path):
    (item,) = coordinator.next("ann").items
    as_annotator(coordinator, "ann", item.id, None)
    coordinator.close()
    again = open_coordinator(tmp_path / "a.db", Points(60))
    as_annotator(again, "ann", item.id, ["b"])
    assert again.item(item.id).label == ("b",)
    again.close()


def test_what_was_handed_out_before_a_restart_counts_with_proof(coordinator, tmp_path):
    (item,) = coordinator.next("ann").items
    coordinator.close()
    again = open_coordinator(tmp_path / "a.db", Points(60))
    with pytest.raises(AnswerRefused):
        as_annotator(again, "ann", item.id)
    as_annotator(again, "ann", item.id, was_asked=True)
    again.close()


def test_settling_is_for_those_who_may(coordinator):
    (item,) = coordinator.next("ann").items
    with pytest.raises(NotAllowed, match="reviewer or owner; yours is annotator"):
        coordinator.settle(item.id, ["a"], "ann", role="annotator")
    coordinator.settle(item.id, ["a"], "rita", role="reviewer")


BUDGET = 12


@pytest.fixture
def with_budget(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", Points(80), stop=[Budget(BUDGET)])
    prepare(coordinator)
    yield coordinator
    coordinator.close()


def test_many_at_once_never_exceed_the_budget(with_budget):
    """All of them at the same moment, and most of them unasked: written together, they are counted
    together.
    """
    asked = [item.id for item in with_budget.next("ann", 5).items]
    answers = [("ann", one) for one in asked]
    answers += [("rita", one) for one in unasked_ids(with_budget)[:40]]

    def give(who_and_id):
        who, one = who_and_id
        try:
            return with_budget.answer(who, one, ["a"])
        except AnswerRefused:
            return None

    with with_budget.session.lock, ThreadPoolExecutor(len(answers)) as crowd:
        given = [crowd.submit(give, answer) for answer in answers]
        queue = with_budget._answer_collector._group_commit._queue
        until(lambda: len(queue) == len(answers))
        with_budget.session.lock.release()
        receipts = [future.result() for future in given]
        with_budget.session.lock.acquire()
    assert all(receipts[:5])  # what was asked is held in the budget
    assert sum(receipt is not None for receipt in receipts) == BUDGET
    assert with_budget.session.run_state.answered() == BUDGET


def test_late_answers_and_undone_skips_do_not_exceed_it(with_budget):
    first = with_budget.next("ann").items[0].id
    with_budget.answer("ann", first, ["a"])
    with_budget.settle(first, None, "rita")  # its place in the budget is free again
    skipped = with_budget.act_history.latest(1)[0]
    for _ in range(3):
        prepare(with_budget)
        for item in with_budget.next("ann", BUDGET).items:
            with_budget.answer("ann", item.id, ["b"])
    assert with_budget.session.run_state.answered() == BUDGET
    with pytest.raises(AnswerRefused, match="0 labels are left"):
        with_budget.answer("ann", first, ["a"])
    with pytest.raises(AnswerRefused, match="0 labels are left"):
        with_budget.act_history.undo(skipped.event, "rita", "rita")
    assert with_budget.session.run_state.answered() == BUDGET
