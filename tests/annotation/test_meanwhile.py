"""What changes while a round is being prepared: classes, answers, the store. Nobody waits for what
is of no use.
"""

from __future__ import annotations

import threading

import pytest
from coordinators import TIMEOUT, Gated, label, open_coordinator, prepare, store_away, truth, until
from small import Points

from tailor.annotation import leases
from tailor.run.stopping import Budget
from tailor.storage import StoreError


class Failing(Gated):
    """Its training ends in an error."""

    def fit(self, positions, labels, *, seed, progress=None):
        super().fit(positions, labels, seed=seed, progress=progress)
        raise ValueError("this was trained for other classes")


@pytest.mark.parametrize("model", [Gated, Failing])
def test_after_a_change_of_classes_the_next_round_is_prepared_at_once(tmp_path, monkeypatch, model):
    """Also where nobody answers in between, and where the change is what made preparing fail."""
    monkeypatch.setattr("tailor.annotation.planner.PATIENCE", 1000)
    with open_coordinator(tmp_path / "a.db", Points(200), model=model, holdout=0.0) as coordinator:
        until(lambda: coordinator.next("ann").state == "ready")
        for _ in range(6):
            (item,) = coordinator.next("ann").items
            coordinator.answer("ann", item.id, truth(coordinator, item.id))
        before = coordinator.session.model
        assert before.begun.wait(TIMEOUT)
        coordinator.class_editor.rename("c", "sea", "ann")
        before.go_on.set()
        assert coordinator.session.model is not before
        assert coordinator.session.model.begun.wait(TIMEOUT)
        assert coordinator.overview()["training"]["trouble"] is None
        assert coordinator.overview()["progress"]["round"] == 0


def test_the_pace_is_never_read_while_someone_answers(tmp_path):
    """It throws old times away: two threads at once, and one finds nothing where there was
    something.
    """
    coordinator = open_coordinator(tmp_path / "a.db", Points(200))
    pace = coordinator.planner._pace
    alone = []

    def watched():
        alone.append(coordinator.session.lock._is_owned())
        return pace()

    coordinator.planner._pace = watched
    label(coordinator, 40)
    assert len(alone) > 2
    assert all(alone)
    coordinator.close()


def test_what_is_about_to_be_entered_is_not_forgotten_in_between(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", Points(200))
    label(coordinator, 12)
    coordinator.planner._ready = ready = coordinator.session.draft()
    forgetting = threading.Thread(target=coordinator.planner.forget)
    with coordinator.session.lock:
        forgetting.start()
        forgetting.join(0.2)
        assert coordinator.planner._ready is ready
    forgetting.join(TIMEOUT)
    assert coordinator.planner._ready is None
    coordinator.close()


def test_a_skipped_last_one_leaves_the_budget_one_more(tmp_path):
    coordinator = open_coordinator(tmp_path / "a.db", Points(200), stop=[Budget(12)], holdout=0.0)
    label(coordinator, 11)
    (item,) = coordinator.next("ann").items
    prepare(coordinator)
    assert coordinator.planner.nothing_left
    coordinator.answer("ann", item.id, None)
    prepare(coordinator)
    (other,) = coordinator.next("ann").items
    coordinator.answer("ann", other.id, ["a"])
    assert coordinator.next("ann").state == "stopped"
    assert coordinator.overview()["progress"]["answered"] == 12
    coordinator.close()


def test_a_round_that_waits_for_the_store_is_not_the_end(tmp_path, monkeypatch):
    """The budget has nothing left for a round after this one; but this one has, and must be gone
    through again.
    """
    coordinator = open_coordinator(
        tmp_path / "a.db", Points(200), batch=10, stop=[Budget(20)], holdout=0.0
    )
    label(coordinator, 18)
    prepare(coordinator)
    assert coordinator.planner.nothing_left

    with store_away(coordinator, monkeypatch), pytest.raises(StoreError):
        coordinator.next("ann")
    assert coordinator.next("ann").state == "preparing"
    coordinator.planner.rest_is_over()
    assert len(set(label(coordinator, 2))) == 2
    assert coordinator.next("ann").state == "stopped"
    coordinator.close()


def test_leases_that_ended_are_not_remembered_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "REMEMBERED", 5)
    coordinator = open_coordinator(tmp_path / "a.db", Points(200))
    prepare(coordinator)
    for number in range(10):
        coordinator.next(f"p{number}", 2)
        coordinator.release(f"p{number}")
    assert len(coordinator._leases._revoked) == 5
    assert (
        coordinator._leases.was_revoked(
            "p9", coordinator.session.run_state.position[coordinator.next("p9").items[0].id]
        )
        is False
    )
    assert {who for who, _ in coordinator._leases._revoked} == {"p7", "p8", "p9"}
    coordinator.close()


def test_however_many_wait_the_next_is_found_at_once(tmp_path):
    """A whole batch was asked for, by another program say: nobody looks through all of it for each
    picture.
    """
    coordinator = open_coordinator(
        tmp_path / "a.db",
        Points(3000),
        batch=2000,
        coordinator={"overlap": 2, "overlap_share": 0.1},
    )
    prepare(coordinator)
    coordinator.session.take(2000)
    looked = []
    assignment = coordinator._assignment
    is_available = assignment._is_available
    assignment._is_available = lambda position, annotator: (
        looked.append(position) or is_available(position, annotator)
    )
    mine = coordinator.next("ann", 5).items
    theirs = coordinator.next("bob", 5).items
    assert len({i.id for i in (*mine, *theirs)}) >= 5
    assert len(looked) < 100
    assert coordinator._batch.unassigned() == 2000 - len({i.id for i in (*mine, *theirs)})
    coordinator.close()
