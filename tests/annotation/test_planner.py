"""Rounds are prepared while people label: nobody waits, and answers that come meanwhile count."""

from __future__ import annotations

import threading

import pytest
from coordinators import TIMEOUT, Gated, label, open_coordinator, prepare, store_away, truth, until
from small import Centroids, Points

from tailor.storage import StoreError


@pytest.fixture
def coordinator(tmp_path):
    with open_coordinator(tmp_path / "a.db", Points(200), model=Gated, holdout=0.0) as coordinator:
        until(lambda: coordinator.next("ann").state == "ready")
        yield coordinator


def answer_some(coordinator, n, who="ann"):
    """Without ever waiting. -> ids"""
    done = []
    for _ in range(n):
        (item,) = coordinator.next(who).items
        coordinator.answer(who, item.id, truth(coordinator, item.id))
        done.append(item.id)
    return done


def test_labelling_goes_on_while_the_model_trains(coordinator):
    model = coordinator.session.model
    first = answer_some(coordinator, 6)
    assert model.begun.wait(TIMEOUT)
    assert coordinator.overview()["training"]["state"] == "training"
    meanwhile = answer_some(coordinator, 20)  # the rest of the batch, and picks to spare
    assert coordinator.overview()["progress"]["round"] == 0
    model.go_on.set()
    until(lambda: len(coordinator.run_state().rounds) == 2)
    record = coordinator.run_state().rounds[1]
    assert record.labels == model.seen_labels  # what was known when training began
    assert len(first) <= record.labels < 26
    held = coordinator.session.run_state
    assert held.answered() == 26
    later = answer_some(coordinator, 15)
    assert len({*first, *meanwhile, *later}) == 41
    until(lambda: len(coordinator.run_state().rounds) == 3)
    # answers that came in the middle are learned from in the next round
    picks = coordinator.run_state().label_table.picks
    assert picks.learned[(picks.round == 1) & (picks.arm >= 0)].any()


def test_after_a_restart_a_random_start_has_picks_to_spare_again(tmp_path):
    with open_coordinator(tmp_path / "a.db", Points(200), model=Gated, holdout=0.0) as coordinator:
        until(lambda: coordinator.next("ann").state == "ready")
        before = answer_some(coordinator, coordinator.session.settings.batch)
    with open_coordinator(tmp_path / "a.db", Points(200), model=Gated, holdout=0.0) as coordinator:
        until(lambda: coordinator.next("ann").state == "ready")
        assert not coordinator.session.model.go_on.is_set()  # nothing has been trained
        assert not set(before) & set(answer_some(coordinator, 20))


def test_closing_gives_up_what_is_being_trained(coordinator, monkeypatch):
    monkeypatch.setattr("tailor.annotation.planner.GRACE", TIMEOUT)
    answer_some(coordinator, 6)
    assert coordinator.session.model.begun.wait(TIMEOUT)
    coordinator.close()
    assert not coordinator.planner._thread.is_alive()
    assert not coordinator.session.model.go_on.is_set()  # nobody let it finish
    coordinator.close()


class Deaf(Centroids):
    """Reading the pool hangs, and nobody can tell it to stop: a download, say."""

    begun = threading.Event()
    go_on = threading.Event()

    def prepare(self, progress=None):
        self.begun.set()
        assert self.go_on.wait(TIMEOUT)
        return super().prepare()


def test_closing_does_not_wait_for_what_hangs(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("tailor.annotation.planner.GRACE", 0.1)
    coordinator = open_coordinator(tmp_path / "a.db", model=Deaf)
    coordinator.start()
    assert Deaf.begun.wait(TIMEOUT)
    coordinator.close()
    Deaf.go_on.set()
    coordinator.planner._thread.join(TIMEOUT)
    assert not coordinator.planner._thread.is_alive()
    assert not caplog.records  # it ends in silence


def test_a_round_outlives_a_store_that_is_away_for_a_while(tmp_path, monkeypatch):
    coordinator = open_coordinator(tmp_path / "a.db", Points(200), batch=10)
    label(coordinator, 12)
    before = coordinator.run_state().current

    with store_away(coordinator, monkeypatch):
        with pytest.raises(StoreError):
            coordinator.answer("ann", coordinator.session.run_state.ids[0], ["a"])
        assert coordinator.planner.step()
        assert "lost" in coordinator.overview()["training"]["trouble"]
    coordinator.planner.rest_is_over()
    prepare(coordinator)
    assert coordinator.overview()["training"]["trouble"] is None
    now = coordinator.run_state().current
    assert (now.number, now.size, now.asked) == (before.number, before.size, before.asked)
    assert coordinator.next("ann").items[0].round == before.number
    coordinator.close()


def test_failing_training_is_told_and_labelling_goes_on(tmp_path, monkeypatch):
    coordinator = open_coordinator(tmp_path / "a.db", Points(200))
    prepare(coordinator)
    fit = coordinator.session.model.fit
    monkeypatch.setattr(coordinator.session.model, "fit", lambda *args, **more: 1 / 0)
    label(coordinator, 20)
    assert "division by zero" in coordinator.overview()["training"]["trouble"]
    assert len(coordinator.run_state().rounds) == 1
    monkeypatch.setattr(coordinator.session.model, "fit", fit)
    coordinator.planner.rest_is_over()
    label(coordinator, 1)
    assert coordinator.overview()["training"]["trouble"] is None
    assert len(coordinator.run_state().rounds) == 2
    coordinator.close()


def test_a_round_that_cannot_be_gone_through_again_gives_way_to_a_new_one(tmp_path, monkeypatch):
    coordinator = open_coordinator(tmp_path / "a.db", Points(200))
    done = label(coordinator, 20)
    held = [i.id for i in coordinator.next("ann", 3).items]
    coordinator.close()
    coordinator = open_coordinator(tmp_path / "a.db", Points(200))
    monkeypatch.setattr(coordinator.session, "resume_round", lambda: 1 / 0)
    prepare(coordinator)
    assert [i.id for i in coordinator.next("ann", 3).items] == held
    assert coordinator.overview()["progress"]["round"] == 2
    assert not set(label(coordinator, 20)) & set(done)
    coordinator.close()


def test_a_batch_stays_a_batch_when_preparing_is_quick(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", Points(200))
    label(coordinator, 72)
    assert [r.asked for r in coordinator.run_state().rounds][:5] == [12] * 5
    for before, record in zip(
        coordinator.run_state().rounds[1:], coordinator.run_state().rounds[2:]
    ):
        assert before.labels < record.labels  # each was trained on more than the one before
    coordinator.close()


class Listening:
    """What the open round's arms have heard of."""

    def __init__(self, coordinator):
        self.ledger = coordinator.session.session_round.arms.view.ledger

    @property
    def heard(self):
        return {index for index, _ in self.ledger.revealed}


def test_with_one_annotator_each_label_reaches_the_arms_before_the_next_pick(tmp_path):
    coordinator = open_coordinator(
        tmp_path / "a.db", Points(200), strategies=("galaxy(pending=revealed)",), holdout=0.0
    )
    label(coordinator, 12)
    for _ in range(10):
        (item,) = coordinator.next("ann").items
        assert coordinator.run_state().current.number == 1
        listening = Listening(coordinator)
        coordinator.answer("ann", item.id, truth(coordinator, item.id))
        assert coordinator.session.run_state.position[item.id] in listening.heard
        assert (
            len(coordinator.session.run_state.waiting) == 0
        )  # the next pick has not been made yet
    coordinator.close()


def test_answers_between_draft_and_round_are_heard_and_not_offered(tmp_path):
    coordinator = open_coordinator(
        tmp_path / "a.db", Points(200), strategies=("galaxy(pending=revealed)",), holdout=0.0
    )
    label(coordinator, 14)
    draft = coordinator.session.draft()
    done = label(coordinator, 3)
    position = coordinator.session.run_state.position
    free = draft.arms.view.ledger.free
    assert free[[position[i] for i in done]].any()
    coordinator.session.session_round.slot = (
        coordinator.session.session_round.size
    )  # the batch is over
    assert coordinator.session.enter(draft)
    assert not free[[position[i] for i in done]].any()
    assert {position[i] for i in done} <= Listening(coordinator).heard
    assert not set(done) & {
        coordinator.session.run_state.ids[p] for p in coordinator.session.take()
    }
    coordinator.close()


def test_with_several_picks_are_made_ahead(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", Points(200))
    prepare(coordinator)
    coordinator.next("ann")
    coordinator.next("bob")
    assert len(coordinator.session.run_state.waiting) > 2
    coordinator.close()
