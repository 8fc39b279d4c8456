"""What changes while a round is being prepared: classes, answers, the store. Nobody waits for what is of no use."""

from __future__ import annotations

import threading

import pytest
from rooms import TIMEOUT, Gated, label, open_room, prepare, store_away, truth, until
from small import Points

from tailor.live import leases
from tailor.stopping import Budget
from tailor.store import StoreError


class Failing(Gated):
    """Its training ends in an error."""

    def fit(self, positions, labels, *, seed, progress=None):
        super().fit(positions, labels, seed=seed, progress=progress)
        raise ValueError("this was trained for other classes")


@pytest.mark.parametrize("model", [Gated, Failing])
def test_after_a_change_of_classes_the_next_round_is_prepared_at_once(tmp_path, monkeypatch, model):
    """Also where nobody answers in between, and where the change is what made preparing fail."""
    monkeypatch.setattr("tailor.live.planner.PATIENCE", 1000)
    with open_room(tmp_path / "a.db", Points(200), model=model, holdout=0.0) as room:
        until(lambda: room.next("ann").state == "ready")
        for _ in range(6):
            (item,) = room.next("ann").items
            room.answer("ann", item.id, truth(room, item.id))
        before = room.session.model
        assert before.begun.wait(TIMEOUT)
        room.rename_class("c", "sea", "ann")
        before.go_on.set()
        assert room.session.model is not before
        assert room.session.model.begun.wait(TIMEOUT)
        assert room.overview()["training"]["trouble"] is None
        assert room.overview()["progress"]["round"] == 0


def test_the_pace_is_never_read_while_someone_answers(tmp_path):
    """It throws old times away: two threads at once, and one finds nothing where there was something."""
    room = open_room(tmp_path / "a.db", Points(200))
    pace, alone = room.planner._pace, []

    def watched():
        alone.append(room.session.lock._is_owned())
        return pace()

    room.planner._pace = watched
    label(room, 40)
    assert len(alone) > 2
    assert all(alone)
    room.close()


def test_what_is_about_to_be_entered_is_not_forgotten_in_between(tmp_path):
    room = open_room(tmp_path / "a.db", Points(200))
    label(room, 12)
    room.planner._ready = ready = room.session.draft()
    forgetting = threading.Thread(target=room.planner.forget)
    with room.session.lock:
        forgetting.start()
        forgetting.join(0.2)
        assert room.planner._ready is ready
    forgetting.join(TIMEOUT)
    assert room.planner._ready is None
    room.close()


def test_a_skipped_last_one_leaves_the_budget_one_more(tmp_path):
    room = open_room(tmp_path / "a.db", Points(200), stop=[Budget(12)], holdout=0.0)
    label(room, 11)
    (item,) = room.next("ann").items
    prepare(room)
    assert room.planner.nothing_left
    room.answer("ann", item.id, None)
    prepare(room)
    (other,) = room.next("ann").items
    room.answer("ann", other.id, ["a"])
    assert room.next("ann").state == "stopped"
    assert room.overview()["progress"]["answered"] == 12
    room.close()


def test_a_round_that_waits_for_the_store_is_not_the_end(tmp_path, monkeypatch):
    """The budget has nothing left for a round after this one; but this one has, and must be gone through again."""
    room = open_room(tmp_path / "a.db", Points(200), batch=10, stop=[Budget(20)], holdout=0.0)
    label(room, 18)
    prepare(room)
    assert room.planner.nothing_left

    with store_away(room, monkeypatch), pytest.raises(StoreError):
        room.next("ann")
    assert room.next("ann").state == "preparing"
    room.planner.rest_is_over()
    assert len(set(label(room, 2))) == 2
    assert room.next("ann").state == "stopped"
    room.close()


def test_leases_that_ended_are_not_remembered_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "REMEMBERED", 5)
    room = open_room(tmp_path / "a.db", Points(200))
    prepare(room)
    for number in range(10):
        room.next(f"p{number}", 2)
        room.release(f"p{number}")
    assert len(room._leases._late) == 5
    assert room._leases.is_late("p9", room.session.journal.position[room.next("p9").items[0].id]) is False
    assert {who for who, _ in room._leases._late} == {"p7", "p8", "p9"}
    room.close()


def test_however_many_wait_the_next_is_found_at_once(tmp_path):
    """A whole batch was asked for, by another program say: nobody looks through all of it for each picture."""
    room = open_room(tmp_path / "a.db", Points(3000), batch=2000, room={"overlap": 2, "overlap_share": 0.1})
    prepare(room)
    room.session.take(2000)
    looked, may_have = [], room._shelf._may_have
    room._shelf._may_have = lambda who, position: looked.append(position) or may_have(who, position)
    mine, theirs = room.next("ann", 5).items, room.next("bob", 5).items
    assert len({i.id for i in (*mine, *theirs)}) >= 5
    assert len(looked) < 100
    assert room._on_the_shelf() == 2000 - len({i.id for i in (*mine, *theirs)})
    room.close()
