"""Answers that come at the same moment: written at once, each with its own receipt or its own error."""

from __future__ import annotations

import threading

import pytest
from rooms import TIMEOUT, open_room, open_session, prepare, state

from tailor.errors import InputError, UnknownName


@pytest.fixture
def room(tmp_path):
    room = open_room(tmp_path / "a.db")
    prepare(room)
    yield room
    room.close()


def at_once(room, answers):
    """All of these, (who, id, label), waiting before the first can be taken in. -> receipts or errors, in order"""
    results = [None] * len(answers)

    def one(at, given):
        try:
            results[at] = room.answer(*given)
        except Exception as error:
            results[at] = error

    with room.session.lock:
        threads = []
        for at, given in enumerate(answers):
            threads.append(threading.Thread(target=one, args=(at, given)))
            threads[-1].start()
            while len(room._intake._waiting) <= at:
                threads[-1].join(0.001)
    for thread in threads:
        thread.join(TIMEOUT)
    return results


def hand_out(room, n):
    return [room.next(f"p{k}").items[0].id for k in range(n)]


def test_a_crowd_costs_one_event(room):
    ids = hand_out(room, 5)
    before = room.session.store.last().number
    receipts = at_once(room, [(f"p{k}", one, ["abc"[k % 3]]) for k, one in enumerate(ids)])
    assert {r.event for r in receipts} == {before + 1}
    assert room.session.store.last().kind == "several"
    for k, (one, receipt) in enumerate(zip(ids, receipts)):
        assert receipt.id == one
        assert (room.item(one).label, room.item(one).by) == (("abc"[k % 3],), f"p{k}")
    before = state(room.session.journal)
    room.close()
    again = open_session(room.session.store.path)
    assert state(again.journal) == before
    again.store.close()


def test_a_bad_answer_among_them_hurts_nobody_else(room):
    ids = hand_out(room, 3)
    good, bad, unknown, other = at_once(
        room,
        [("p0", ids[0], ["a"]), ("p1", ids[1], ["a", "b"]), ("p1", "nope", ["a"]), ("p2", ids[2], ["zebra"])],
    )
    assert good.counts == {"a": 1, "b": 0, "c": 0}
    assert isinstance(bad, InputError)
    assert isinstance(unknown, UnknownName)
    assert isinstance(other, UnknownName)
    assert room.overview()["progress"]["answered"] == 1


def test_two_answers_to_one_example_come_one_after_the_other(room):
    (one,) = hand_out(room, 1)
    first, second = at_once(room, [("p0", one, ["a"]), ("p0", one, None)])
    assert second.event == first.event + 1
    assert room.item(one).label is None
    assert room.item(one).skipped


def test_a_full_disk_is_told_to_all_and_nothing_counts(room, monkeypatch):
    ids = hand_out(room, 3)
    answers = [(f"p{k}", one, ["a"]) for k, one in enumerate(ids)]

    def full(*args):
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(room.session.store, "append", full)
        assert all(isinstance(result, OSError) for result in at_once(room, answers))
    assert room.overview()["progress"]["answered"] == 0
    assert [room.next(f"p{k}").items[0].id for k in range(3)] == ids  # they still have them
    assert at_once(room, answers)[-1].counts["a"] == 3
