"""Answers that come at the same moment: written at once, each with its own receipt or its own
error.
"""

from __future__ import annotations

import threading

import pytest
from coordinators import TIMEOUT, open_coordinator, open_session, prepare, state

from tailor.errors import InputError, UnknownName


@pytest.fixture
def coordinator(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db")
    prepare(coordinator)
    yield coordinator
    coordinator.close()


def at_once(coordinator, answers):
    """All of these, (who, id, label), waiting before the first can be taken in. -> receipts or
    errors, in order
    """
    results = [None] * len(answers)

    def answer(number, given):
        try:
            results[number] = coordinator.answer(*given)
        except Exception as error:
            results[number] = error

    with coordinator.session.lock:
        threads = []
        for number, given in enumerate(answers):
            threads.append(threading.Thread(target=answer, args=(number, given)))
            threads[-1].start()
            while len(coordinator._answer_collector._group_commit._queue) <= number:
                threads[-1].join(0.001)
    for thread in threads:
        thread.join(TIMEOUT)
    return results


def hand_out(coordinator, n):
    return [coordinator.next(f"p{k}").items[0].id for k in range(n)]


def test_a_crowd_costs_one_event(coordinator):
    ids = hand_out(coordinator, 5)
    before = coordinator.session.store.last().number
    receipts = at_once(coordinator, [(f"p{k}", one, ["abc"[k % 3]]) for k, one in enumerate(ids)])
    assert {r.event for r in receipts} == {before + 1}
    assert coordinator.session.store.last().kind == "several"
    for k, (one, receipt) in enumerate(zip(ids, receipts)):
        assert receipt.id == one
        assert (coordinator.item(one).label, coordinator.item(one).by) == (("abc"[k % 3],), f"p{k}")
    before = state(coordinator.session.run_state)
    coordinator.close()
    again = open_session(coordinator.session.store.path)
    assert state(again.run_state) == before
    again.store.close()


def test_a_bad_answer_among_them_hurts_nobody_else(coordinator):
    ids = hand_out(coordinator, 3)
    good, bad, unknown, other = at_once(
        coordinator,
        [
            ("p0", ids[0], ["a"]),
            ("p1", ids[1], ["a", "b"]),
            ("p1", "nope", ["a"]),
            ("p2", ids[2], ["zebra"]),
        ],
    )
    assert good.counts == {"a": 1, "b": 0, "c": 0}
    assert isinstance(bad, InputError)
    assert isinstance(unknown, UnknownName)
    assert isinstance(other, UnknownName)
    assert coordinator.overview()["progress"]["answered"] == 1


def test_two_answers_to_one_example_come_one_after_the_other(coordinator):
    (one,) = hand_out(coordinator, 1)
    first, second = at_once(coordinator, [("p0", one, ["a"]), ("p0", one, None)])
    assert second.event == first.event + 1
    assert coordinator.item(one).label is None
    assert coordinator.item(one).skipped


def test_a_full_disk_is_told_to_all_and_nothing_counts(coordinator, monkeypatch):
    ids = hand_out(coordinator, 3)
    answers = [(f"p{k}", one, ["a"]) for k, one in enumerate(ids)]

    def full(*args):
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(coordinator.session.store, "append", full)
        assert all(isinstance(result, OSError) for result in at_once(coordinator, answers))
    assert coordinator.overview()["progress"]["answered"] == 0
    assert [coordinator.next(f"p{k}").items[0].id for k in range(3)] == ids  # they still have them
    assert at_once(coordinator, answers)[-1].counts["a"] == 3
