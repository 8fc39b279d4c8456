"""The session: ask and tell in every order, corrections, the hold-out, growth, stopping,
resuming.
"""

from __future__ import annotations

import numpy as np
import pytest
from small import Centroids, Points, answer, settings

from tailor.errors import InputError, UnknownName
from tailor.run.session import SKIP, Session
from tailor.run.stopping import Budget, ClassCounts, Plateau, TargetAccuracy
from tailor.storage import SqliteStore


def begin(path, pool=None, *, stop=(), **changes):
    pool = pool or Points()
    chosen = settings(**changes)
    store = SqliteStore(path)
    try:
        return Session(store, pool, Centroids(chosen.task, pool), chosen, stop=stop)
    except BaseException:
        store.close()
        raise


def play(session, rounds=3):
    """Answer every question; the ids in order."""
    seen = []
    for _ in range(rounds):
        asked = session.ask()
        seen += asked.ids
        session.tell({i: answer(session.pool, session.settings.kind, i) for i in asked.ids})
    return seen


@pytest.mark.parametrize("kind", ["multi-class", "multi-label"])
@pytest.mark.parametrize(
    "selector", ["tailor", "albl", "comb", "deal", "linear-thompson", "random-meta"]
)
def test_a_run_asks_each_once_and_goes_on_where_it_stood(tmp_path, kind, selector):
    whole = play(begin(tmp_path / "a.db", kind=kind, selector=selector), 4)
    assert len(set(whole)) == len(whole) == 48
    first = begin(tmp_path / "b.db", kind=kind, selector=selector)
    seen = play(first, 2)
    first.store.close()
    assert seen + play(begin(tmp_path / "b.db", kind=kind, selector=selector), 2) == whole


@pytest.mark.parametrize(
    "strategies", [(), ("galaxy(pending=revealed)", "random"), ("badge", "coreset", "bald")]
)
def test_an_open_round_goes_on_with_the_same_picks(tmp_path, strategies):
    """Closed after every single question, and never closed: the same questions."""

    def one_by_one(path, reopen):
        session = begin(path, strategies=strategies)
        seen = []
        for _ in range(40):
            (pick_record,) = session.ask(1)
            seen.append((pick_record.id, pick_record.arm, pick_record.slot))
            if len(seen) % 3:  # some answers come late
                session.tell({pick_record.id: answer(session.pool, "multi-class", pick_record.id)})
            if reopen:
                session.store.close()
                session = begin(path, strategies=strategies)
        return seen

    assert one_by_one(tmp_path / "a.db", True) == one_by_one(tmp_path / "b.db", False)


def test_every_pick_carries_its_story(tmp_path):
    session = begin(tmp_path / "a.db")
    start = session.ask()
    assert {s.arm for s in start} <= {"random start", "hold-out"}
    assert all(s.predicted is None and s.mean is None and s.round == 0 for s in start)
    session.tell({i: answer(session.pool, "multi-class", i) for i in start.ids})
    for slot, pick_record in enumerate(session.ask()):
        assert (pick_record.round, pick_record.slot) == (1, slot)
        assert pick_record.predicted.shape == (3,)
        assert pick_record.predicted.sum() == pytest.approx(1, abs=2e-3)
        if pick_record.arm != "hold-out":
            assert pick_record.arm in session.run_state.learner.contest.arms
            assert 0 < pick_record.chance <= 1
            assert pick_record.mean.sum() == pytest.approx(1, abs=2e-3)
            assert pick_record.weights.shape == (3,)


def test_answers_late_in_part_twice_and_skipped(tmp_path):
    session = begin(tmp_path / "a.db", holdout=0.0)
    ids = session.ask().ids
    session.tell({ids[0]: "a"})
    session.tell({ids[0]: "a", ids[1]: SKIP})
    assert [s.id for s in session.waiting()] == ids[2:]
    later = session.ask()  # a round with answers still missing
    assert not set(later.ids) & set(ids)
    session.tell({i: answer(session.pool, "multi-class", i) for i in ids[2:]})
    assert len(session.waiting()) == len(later)
    assert session.run_state.summary()["skipped"] == 1
    everything = set(ids) | set(later.ids)
    while asked := session.ask():
        assert ids[1] not in asked.ids
        everything |= set(asked.ids)
        session.tell({i: answer(session.pool, "multi-class", i) for i in asked.ids})
    assert everything == set(session.pool.ids)
    assert "no example is left" in asked.stopped
    session.offer_again([ids[1]])
    assert session.ask().ids == [ids[1]]


def test_a_correction_is_as_if_it_had_been_right_at_first(tmp_path):
    """Counts, posterior and the next picks."""
    right = begin(tmp_path / "a.db", holdout=0.0)
    wrong = begin(tmp_path / "b.db", holdout=0.0)
    for session in (right, wrong):
        play(session, 1)
        ids = session.ask().ids
        truth = {i: answer(session.pool, "multi-class", i) for i in ids}
        session.tell(truth if session is right else dict.fromkeys(ids, "a"))
        session.tell(truth)
        session.ask(1)
    assert right.waiting()[0].id == wrong.waiting()[0].id
    np.testing.assert_array_equal(
        right.run_state.label_table.counts, wrong.run_state.label_table.counts
    )
    # And after the selector has learned from the mistake:
    late = begin(tmp_path / "c.db", holdout=0.0)
    play(late, 1)
    ids = late.ask().ids
    late.tell(dict.fromkeys(ids, "a"))
    late.ask()
    late.tell({i: answer(late.pool, "multi-class", i) for i in ids})
    expected = right.run_state.learner.selector.state()
    for name, value in late.run_state.learner.selector.state().items():
        np.testing.assert_allclose(value, expected[name])


def test_outside_knowledge_is_credited_to_no_arm(tmp_path):
    session = begin(tmp_path / "a.db", holdout=0.0)
    session.tell({"p00000": "a", "p00001": "b", "p00002": "c"})
    asked = session.ask()
    assert "random start" not in {s.arm for s in asked}
    session.ask()
    table = session.run_state.label_table
    assert len(table.picks.credited(table.labelled)) == 0
    assert session.run_state.label_table.counts.tolist() == [1, 1, 1]


def test_the_holdout_is_random_and_never_trained_on(tmp_path):
    session = begin(tmp_path / "a.db", Points(400), holdout=0.3)
    trained = set()
    fit = session.model.fit

    def watched(positions, labels, **more):
        trained.update(session.pool.ids[p] for p in positions)
        fit(positions, labels, **more)

    session.model.fit = watched
    holdout = set()
    for _ in range(8):
        asked = session.ask()
        holdout |= {s.id for s in asked if s.arm == "hold-out"}
        session.tell({i: answer(session.pool, "multi-class", i) for i in asked.ids})
    assert 15 <= len(holdout) <= 45
    assert not trained & holdout
    estimate = session.run_state.rounds[-1].estimate
    assert estimate.lower <= estimate.accuracy <= estimate.upper
    assert estimate.examples <= len(holdout)


def test_broken_entries_are_set_aside_and_listed(tmp_path):
    session = begin(tmp_path / "a.db", Points(60, broken=(5, 17)))
    asked = []
    while found := session.ask():
        asked += found.ids
        session.tell({i: answer(session.pool, "multi-class", i) for i in found.ids})
    assert set(session.pool.ids) - set(asked) == {"p00005", "p00017"}
    assert session.run_state.summary()["aside"] == {
        "p00005": "it is broken",
        "p00017": "it is broken",
    }


def test_a_pool_grows_between_rounds(tmp_path):
    session = begin(tmp_path / "a.db", Points(30))
    seen = play(session, 1)
    session.pool.hidden = [f"p{i:05d}" for i in range(30, 60)]
    counts = session.run_state.label_table.counts
    seen += session.ask(1).ids
    assert len(session.run_state.ids) == 60
    assert session.run_state.label_table.counts.tolist() == counts.tolist()
    while asked := session.ask():
        seen += asked.ids
        session.tell({i: answer(session.pool, "multi-class", i) for i in asked.ids})
    assert sorted(seen) == session.pool.ids


def test_new_files_that_sort_first_keep_old_positions(tmp_path):
    session = begin(tmp_path / "a.db", Points(30))
    play(session, 1)
    state = session.run_state.summary()["counts"]
    session.store.close()
    larger = Points(40)
    larger._ids = larger._ids[30:] + larger._ids[:30]  # as a sorted folder would list them
    again = begin(tmp_path / "a.db", larger)
    assert again.run_state.summary()["counts"] == state
    labelled = [again.run_state.ids[p] for p in again.run_state.label_table.labelled]
    assert all(
        again.run_state.label_table.labels_of(np.array([again.run_state.position[i]])).argmax()
        == larger.truth(i)
        for i in labelled
    )
    again.ask()
    assert len(again.run_state.ids) == 40


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        (Budget(30), "budget of 30"),
        (ClassCounts(3), "every class has 3"),
        (TargetAccuracy(0.5), "accuracy on the hold-out"),
        (Plateau(2, 0.5), "grew by less"),
    ],
)
def test_stopping_rules(tmp_path, rule, word):
    session = begin(tmp_path / "a.db", Points(400), stop=[rule], holdout=0.3)
    total = 0
    while asked := session.ask():
        total += len(asked)
        session.tell({i: answer(session.pool, "multi-class", i) for i in asked.ids})
    assert word in asked.stopped
    assert total < 400
    if isinstance(rule, Budget):
        assert total == 30


def test_bad_answers_change_nothing(tmp_path):
    session = begin(tmp_path / "a.db")
    ids = session.ask().ids
    events = len(list(session.store.events()))
    with pytest.raises(UnknownName, match="nope"):
        session.tell({ids[0]: "a", "nope": "a"})
    with pytest.raises(UnknownName, match="zebra"):
        session.tell({ids[0]: "a", ids[1]: "zebra"})
    assert session.run_state.answered() == 0
    assert len(list(session.store.events())) == events
    session.tell({ids[0]: "a"})
    with pytest.raises(InputError, match="not skipped"):
        session.tell({ids[0]: SKIP})


def test_other_settings_are_refused(tmp_path):
    begin(tmp_path / "a.db").store.close()
    with pytest.raises(InputError, match=r"seed = 3, now it is 4"):
        begin(tmp_path / "a.db", seed=4)
    begin(tmp_path / "a.db", batch=5)


def test_a_full_disk_loses_nothing_and_the_session_goes_on(tmp_path):
    session = begin(tmp_path / "a.db")
    ids = session.ask().ids
    session.tell({ids[0]: "a"})
    real = session.store.append

    def full(*args):
        raise OSError("no space left on device")

    session.store.append = full
    with pytest.raises(OSError, match="no space"):
        session.tell({ids[1]: "b"})
    assert session.run_state.answered() == 1
    session.store.append = real
    session.tell({ids[1]: "b"})
    assert session.run_state.answered() == 2
