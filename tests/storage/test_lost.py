"""Connections that break, servers that crash: nothing acknowledged is lost, nobody goes on from a
false picture.
"""

from __future__ import annotations

import contextlib
import threading
import time

import pytest
from small import Centroids, Points, answer, settings

from tailor.annotation import Coordinator
from tailor.run.replay import rebuild
from tailor.run.session import Session
from tailor.storage import StoreBusy, StoreError, open_store


def cut(postgres, store):
    """End the session of a store, as a broken network does."""
    postgres.execute("SELECT pg_terminate_backend(%s)", store._session.connection.info.backend_pid)


def numbers(store):
    return [e.number for e in store.events()]


def test_a_lost_connection_is_an_error_and_the_next_call_goes_on(postgres):
    with open_store(postgres.url()) as store:
        store.append("told", {"n": 1})
        cut(postgres, store)
        with pytest.raises(StoreError, match=r"was lost.*the next call connects again"):
            store.append("told", {"n": 2})
        assert store.append("told", {"n": 3}) == 2
        cut(postgres, store)
        with pytest.raises(StoreError, match="was lost"):
            store.add_examples([f"{i}" for i in range(1000)])
        assert store.examples() == []
        store.add_examples(["a"])
        assert [e.body.get("n") for e in store.events()] == [1, 3, None]
        cut(postgres, store)
        with pytest.raises(StoreError, match="was lost"):
            list(store.events())
        assert numbers(store) == [1, 2, 3]


def test_reading_goes_on_too(postgres):
    url = postgres.url()
    with open_store(url) as store:
        store.append("told", {})
        with open_store(url, readonly=True) as reader:
            cut(postgres, reader)
            with pytest.raises(StoreError, match="was lost"):
                reader.last()
            store.append("told", {})
            assert numbers(reader) == [1, 2]


def test_the_lock_must_be_had_again(postgres):
    """Another writer came in between: StoreBusy while it is there. It wrote: reopen, whatever
    happens.
    """
    url = postgres.url()
    with open_store(url) as store:
        store.append("told", {"n": 1})
        cut(postgres, store)
        with pytest.raises(StoreError, match="was lost"):
            store.append("told", {"n": 2})
        with open_store(url), pytest.raises(StoreBusy):
            store.append("told", {"n": 3})
        assert store.append("told", {"n": 4}) == 2  # it only looked
        cut(postgres, store)
        with pytest.raises(StoreError, match="was lost"):
            store.append("told", {"n": 5})
        with open_store(url) as other:
            other.append("told", {"n": 6})
        for _ in range(2):
            with pytest.raises(
                StoreError, match=r"has 3 events where this process knows of 2.*open the run again"
            ):
                store.append("told", {"n": 7})
            assert numbers(store) == [1, 2, 3]  # reading is fine
    with open_store(url) as store:
        assert store.append("told", {"n": 8}) == 4


@pytest.mark.parametrize("what", ["append", "add_examples"])
def test_an_event_that_arrived_though_its_answer_did_not(postgres, wire, what):
    """It was not acknowledged, but is there: writing goes on only after it was read."""
    with open_store(wire.url()) as store:
        store.append("told", {"n": 1})
        wire.word = b"INSERT" if what == "append" else b"COMMIT"
        with pytest.raises(StoreError, match="may have arrived"):
            _ = (
                store.append("told", {"n": 2})
                if what == "append"
                else store.add_examples(["a", "b"])
            )
        wire.word = None
        wire.passed = False
        for _ in range(2):
            with pytest.raises(StoreError, match=r"event 2 .* did arrive: read the events"):
                store.append("told", {"n": 3})
        assert store.examples() == ([] if what == "append" else ["a", "b"])
        assert numbers(store) == [1, 2]
        assert store.append("told", {"n": 4}) == 3


def test_reading_what_arrived_never_undoes_what_another_thread_wrote(wire):
    """Whoever reads an event that was thought lost notes it while nobody writes: else the count
    could go back.
    """
    with open_store(wire.url()) as store:
        store.append("told", {"n": 1})
        wire.word = b"INSERT"
        with pytest.raises(StoreError, match="may have arrived"):
            store.append("told", {"n": 2})
        wire.word = None
        wire.passed = False
        noted = []
        real = store._acknowledge
        store._acknowledge = lambda added: (
            noted.append((added.number, store._session.lock._is_owned())) or real(added)
        )
        assert numbers(store) == [1, 2]
        assert noted == [(2, True)]


@pytest.mark.parametrize("again", [True, False])
def test_a_session_takes_in_what_arrived_unacknowledged(postgres, wire, again):
    """The answer that was told when the line went dead is there, once, whatever the annotator does
    about the error.
    """
    pool = Points()
    chosen = settings(holdout=0.0)
    with open_store(wire.url()) as store:
        session = Session(store, pool, Centroids(chosen.task, pool), chosen)
        first, second, *_ = session.ask().ids
        wire.word = b"INSERT"
        with pytest.raises(StoreError):
            session.tell({first: "a"})
        wire.word = None
        wire.passed = False
        if again:  # the same answer: acknowledged now
            session.tell({first: "a"})
        else:  # another one: first what arrived is taken in
            with pytest.raises(StoreError, match="did arrive"):
                session.tell({second: "b"})
            assert session.run_state.answered() == 1
            session.tell({second: "b"})
        assert session.run_state.answered() == 2 - again
        assert session.run_state.label_table.counts.tolist() == [1, 1 - again, 0]
        assert sum(e.kind == "told" for e in store.events()) == 2 - again


def test_a_crash_of_the_server_loses_nothing_acknowledged(postgres):
    """Stopped at once in the middle of appends, several times."""
    url = postgres.url()
    for _ in range(3):
        with open_store(url) as store:
            acknowledged = numbers(store)
            going = threading.Event()

            enough = len(acknowledged) + 20

            def write(store=store, acknowledged=acknowledged, going=going, enough=enough):
                with contextlib.suppress(StoreError):
                    while True:
                        acknowledged.append(store.append("told", {"x": "y" * 500}))
                        if len(acknowledged) > enough:
                            going.set()

            thread = threading.Thread(target=write)
            thread.start()
            assert going.wait(120)
            postgres.stop("immediate")
            thread.join()
            with pytest.raises(StoreError, match="check that the server runs"):
                store.append("told", {})
            postgres.start()
            stored_numbers = numbers(store)
            assert stored_numbers == list(range(1, len(stored_numbers) + 1))
            assert stored_numbers[: len(acknowledged)] == acknowledged
            assert len(stored_numbers) - len(acknowledged) in (0, 1)
            assert store.append("told", {}) == len(stored_numbers) + 1


def test_a_session_goes_on_with_the_same_picks(postgres, tmp_path):
    """The server is gone in the middle of asking and telling; what follows is what would have come
    anyway.
    """

    def play(place, disturb):
        pool = Points()
        chosen = settings(strategies=("galaxy(pending=revealed)", "badge", "random"))
        with open_store(place) as store:
            session = Session(store, pool, Centroids(chosen.task, pool), chosen)
            seen = []
            for n in range(14):
                (pick_record,) = patiently(
                    lambda session=session: session.ask(1), disturb and n in (3, 12)
                )
                seen.append((pick_record.id, pick_record.arm, pick_record.slot))
                told = {pick_record.id: answer(pool, "multi-class", pick_record.id)}
                patiently(lambda session=session, told=told: session.tell(told), disturb and n == 9)
            return seen

    def patiently(use, disturbed):
        if disturbed:
            postgres.stop("immediate")
            with pytest.raises(StoreError):
                use()
            with pytest.raises(StoreError):
                use()
            postgres.start()
        return use()

    assert play(postgres.url(), True) == play(tmp_path / "a.db", False)


def test_a_coordinator_goes_on_when_the_server_is_back(postgres, monkeypatch):
    """With its planner at work; nothing acknowledged is lost, and further rounds come."""
    monkeypatch.setattr("tailor.annotation.planner.PATIENCE", 0.05)
    pool = Points()
    chosen = settings(batch=10)
    url = postgres.url()
    told = {}

    def label(coordinator, n):
        until = time.monotonic() + 120
        while n:
            assert time.monotonic() < until, coordinator.overview()["training"]
            for item in coordinator.next("ann").items:
                coordinator.answer("ann", item.id, [answer(pool, "multi-class", item.id)])
                told[item.id] = answer(pool, "multi-class", item.id)
                n -= 1

    with Coordinator(
        Session(open_store(url), pool, Centroids(chosen.task, pool), chosen)
    ) as coordinator:
        label(coordinator, 13)
        postgres.stop("immediate")
        for _ in range(2):
            with pytest.raises(StoreError):
                coordinator.answer("ann", pool.ids[0], ["a"])
        assert (
            coordinator.overview()["progress"]["answered"] == 13
        )  # whoever looks sees it as it stood
        postgres.start()
        label(coordinator, 22)
    with open_store(url, readonly=True) as store:
        run_state = rebuild(chosen, store)
    assert {
        p: run_state.task.classes[run_state.label_of(run_state.position[p]).argmax()] for p in told
    } == told
    assert run_state.answered() == len(told) == 35
