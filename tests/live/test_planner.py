"""Rounds are prepared while people label: nobody waits, and answers that come meanwhile count."""

from __future__ import annotations

import threading

import pytest
from rooms import TIMEOUT, Gated, label, open_room, prepare, store_away, truth, until
from small import Centroids, Points

from tailor.store import StoreError


@pytest.fixture
def room(tmp_path):
    with open_room(tmp_path / "a.db", Points(200), model=Gated, holdout=0.0) as room:
        until(lambda: room.next("ann").state == "ready")
        yield room


def answer_some(room, n, who="ann"):
    """Without ever waiting. -> ids"""
    done = []
    for _ in range(n):
        (item,) = room.next(who).items
        room.answer(who, item.id, truth(room, item.id))
        done.append(item.id)
    return done


def test_labelling_goes_on_while_the_model_trains(room):
    model = room.session.model
    first = answer_some(room, 6)
    assert model.begun.wait(TIMEOUT)
    assert room.overview()["training"]["state"] == "training"
    meanwhile = answer_some(room, 20)  # the rest of the batch, and picks to spare
    assert room.overview()["progress"]["round"] == 0
    model.go_on.set()
    until(lambda: len(room.journal().rounds) == 2)
    record = room.journal().rounds[1]
    assert record.labels == model.seen_labels  # what was known when training began
    assert len(first) <= record.labels < 26
    held = room.session.journal
    assert held.answered() == 26
    later = answer_some(room, 15)
    assert len({*first, *meanwhile, *later}) == 41
    until(lambda: len(room.journal().rounds) == 3)
    learned = room.journal().books._learned  # answers that came in the middle are learned from in the next round
    asked = [p for p, (number, _, arm) in room.journal().stories.items() if number == 1 and arm >= 0]
    assert learned[asked].any()


def test_after_a_restart_a_random_start_has_picks_to_spare_again(tmp_path):
    with open_room(tmp_path / "a.db", Points(200), model=Gated, holdout=0.0) as room:
        until(lambda: room.next("ann").state == "ready")
        before = answer_some(room, room.session.settings.batch)
    with open_room(tmp_path / "a.db", Points(200), model=Gated, holdout=0.0) as room:
        until(lambda: room.next("ann").state == "ready")
        assert not room.session.model.go_on.is_set()  # nothing has been trained
        assert not set(before) & set(answer_some(room, 20))


def test_closing_gives_up_what_is_being_trained(room, monkeypatch):
    monkeypatch.setattr("tailor.live.planner.GRACE", TIMEOUT)
    answer_some(room, 6)
    assert room.session.model.begun.wait(TIMEOUT)
    room.close()
    assert not room.planner._thread.is_alive()
    assert not room.session.model.go_on.is_set()  # nobody let it finish
    room.close()


class Deaf(Centroids):
    """Reading the pool hangs, and nobody can tell it to stop: a download, say."""

    begun, go_on = threading.Event(), threading.Event()

    def prepare(self, progress=None):
        self.begun.set()
        assert self.go_on.wait(TIMEOUT)
        return super().prepare()


def test_closing_does_not_wait_for_what_hangs(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("tailor.live.planner.GRACE", 0.1)
    room = open_room(tmp_path / "a.db", model=Deaf)
    room.start()
    assert Deaf.begun.wait(TIMEOUT)
    room.close()
    Deaf.go_on.set()
    room.planner._thread.join(TIMEOUT)
    assert not room.planner._thread.is_alive()
    assert not caplog.records  # it ends in silence


def test_a_round_outlives_a_store_that_is_away_for_a_while(tmp_path, monkeypatch):
    room = open_room(tmp_path / "a.db", Points(200), batch=10)
    label(room, 12)
    before = room.journal().current

    with store_away(room, monkeypatch):
        with pytest.raises(StoreError):
            room.answer("ann", room.session.journal.ids[0], ["a"])
        assert room.planner.step()
        assert "lost" in room.overview()["training"]["trouble"]
    room.planner.rest_is_over()
    prepare(room)
    assert room.overview()["training"]["trouble"] is None
    now = room.journal().current
    assert (now.number, now.size, now.asked) == (before.number, before.size, before.asked)
    assert room.next("ann").items[0].round == before.number
    room.close()


def test_failing_training_is_told_and_labelling_goes_on(tmp_path, monkeypatch):
    room = open_room(tmp_path / "a.db", Points(200))
    prepare(room)
    fit = room.session.model.fit
    monkeypatch.setattr(room.session.model, "fit", lambda *args, **more: 1 / 0)
    label(room, 20)
    assert "division by zero" in room.overview()["training"]["trouble"]
    assert len(room.journal().rounds) == 1
    monkeypatch.setattr(room.session.model, "fit", fit)
    room.planner.rest_is_over()
    label(room, 1)
    assert room.overview()["training"]["trouble"] is None
    assert len(room.journal().rounds) == 2
    room.close()


def test_a_round_that_cannot_be_gone_through_again_gives_way_to_a_new_one(tmp_path, monkeypatch):
    room = open_room(tmp_path / "a.db", Points(200))
    done = label(room, 20)
    held = [i.id for i in room.next("ann", 3).items]
    room.close()
    room = open_room(tmp_path / "a.db", Points(200))
    monkeypatch.setattr(room.session, "walk_again", lambda: 1 / 0)
    prepare(room)
    assert [i.id for i in room.next("ann", 3).items] == held
    assert room.overview()["progress"]["round"] == 2
    assert not set(label(room, 20)) & set(done)
    room.close()


def test_a_batch_stays_a_batch_when_preparing_is_quick(tmp_path):
    room = open_room(tmp_path / "a.db", Points(200))
    label(room, 72)
    assert [r.asked for r in room.journal().rounds][:5] == [12] * 5
    for before, record in zip(room.journal().rounds[1:], room.journal().rounds[2:]):
        assert before.labels < record.labels  # each was trained on more than the one before
    room.close()


class Listening:
    """What the open round's arms have heard of."""

    def __init__(self, room):
        self.ledger = room.session.walk.arms.view.ledger

    @property
    def heard(self):
        return {index for index, _ in self.ledger.revealed}


def test_with_one_annotator_each_label_reaches_the_arms_before_the_next_pick(tmp_path):
    room = open_room(tmp_path / "a.db", Points(200), families=("galaxy(pending=revealed)",), holdout=0.0)
    label(room, 12)
    for _ in range(10):
        (item,) = room.next("ann").items
        assert room.journal().current.number == 1
        listening = Listening(room)
        room.answer("ann", item.id, truth(room, item.id))
        assert room.session.journal.position[item.id] in listening.heard
        assert len(room.session.journal.waiting) == 0  # the next pick has not been made yet
    room.close()


def test_answers_between_draft_and_round_are_heard_and_not_offered(tmp_path):
    room = open_room(tmp_path / "a.db", Points(200), families=("galaxy(pending=revealed)",), holdout=0.0)
    label(room, 14)
    draft = room.session.draft()
    done = label(room, 3)
    position = room.session.journal.position
    free = draft.arms.view.ledger.free
    assert free[[position[i] for i in done]].any()
    room.session.walk.slot = room.session.walk.size  # the batch is over
    assert room.session.enter(draft)
    assert not free[[position[i] for i in done]].any()
    assert {position[i] for i in done} <= Listening(room).heard
    assert not set(done) & {room.session.journal.ids[p] for p in room.session.take()}
    room.close()


def test_with_several_picks_are_made_ahead(tmp_path):
    room = open_room(tmp_path / "a.db", Points(200))
    prepare(room)
    room.next("ann")
    room.next("bob")
    assert len(room.session.journal.waiting) > 2
    room.close()
