"""Going back: what someone answered, skipped or voted, before a restart and after it."""

from __future__ import annotations

import pytest
from coordinators import open_coordinator, prepare, truth

COORDINATORS = {"alone": {}, "with votes": {"overlap": 2, "overlap_share": 1.0}}


def told(coordinator, who):
    return [
        (i.id, i.label, i.skipped, [(v.by, v.label) for v in i.votes])
        for i in coordinator.history(who, 50)
    ]


def figures(coordinator):
    return [(p["name"], p["answered"]) for p in coordinator.overview()["annotators"]]


@pytest.mark.parametrize("options", COORDINATORS.values(), ids=COORDINATORS)
def test_a_restart_changes_nobodys_history(tmp_path, options):
    """Answers, skips, a skip for an answer, an answer for a skip, another's correction, a
    settlement.
    """
    coordinator = open_coordinator(tmp_path / "a.db", coordinator=options)
    prepare(coordinator)
    ids = [item.id for item in coordinator.next("ann", 6).items]
    for number, one in enumerate(ids):
        coordinator.answer("ann", one, None if number % 2 else truth(coordinator, one))
    coordinator.answer("ann", ids[0], None)
    coordinator.answer("ann", ids[1], ["a"])
    coordinator.answer("bob", ids[2], ["b" if truth(coordinator, ids[2]) != ["b"] else "c"])
    coordinator.settle(ids[4], ["c"], "chief")
    people = ("ann", "bob", "chief")
    before = [told(coordinator, who) for who in people]
    counted = figures(coordinator)
    assert [one for one, *_ in before[0]] == [ids[1], ids[0], *reversed(ids[2:])]
    assert ids[3] in [one for one, *_ in before[0]]  # skipped
    coordinator.close()
    coordinator = open_coordinator(tmp_path / "a.db", coordinator=options)
    assert [told(coordinator, who) for who in people] == before
    assert figures(coordinator) == counted
    coordinator.close()


def test_answers_at_the_same_moment_are_found_again(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db")
    prepare(coordinator)
    one, two = (coordinator.next(who).items[0].id for who in ("ann", "bob"))
    session = coordinator.session
    session.record(
        [session.answers_event({one: None}, "ann"), session.answers_event({two: "a"}, "bob")]
    )
    coordinator.close()
    coordinator = open_coordinator(tmp_path / "a.db")
    assert [item.id for item in coordinator.history("ann")] == [one]
    assert [item.id for item in coordinator.history("bob")] == [two]
    coordinator.close()


def test_a_withdrawn_answer_is_nothing_to_go_back_to(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db")
    prepare(coordinator)
    one, two = (item.id for item in coordinator.next("ann", 2).items)
    for name in (one, two):
        coordinator.answer("ann", name, ["a"])
    coordinator.session.withdraw([two])
    assert [item.id for item in coordinator.history("ann")] == [one]
    coordinator.close()
    coordinator = open_coordinator(tmp_path / "a.db")
    assert [item.id for item in coordinator.history("ann")] == [one]
    coordinator.close()
