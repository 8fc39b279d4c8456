"""A server that is there and says nothing: nobody waits long, nothing is lost, and it goes on by
itself.
"""

from __future__ import annotations

import time

import pytest
from wires import LONG, SHORT, Patience

from tailor.storage import StoreBusy, StoreUnreachable, open_store, postgres_session
from tailor.storage.postgres_connection import RECONNECT_SECONDS


@pytest.fixture
def patience(monkeypatch):
    return Patience(monkeypatch)


def is_away(use) -> None:
    with pytest.raises(StoreUnreachable):
        use()


def patiently(patience, use):
    """The server may need a moment to notice that the session before has ended."""
    until = time.monotonic() + LONG
    while True:
        try:
            return use()
        except (StoreUnreachable, StoreBusy):
            assert time.monotonic() < until, "it never came back"
            patience.rest()
            time.sleep(0.02)


def test_an_answer_is_waited_for_in_bounds_and_a_crowd_once(wire, patience):
    with open_store(wire.url()) as store:
        store.append("told", {"n": 1})
        patience.silence(wire)
        is_away(lambda: store.append("told", {"n": 2}))
        assert patience.waits == [("an answer", pytest.approx(SHORT, abs=0.1))]
        for use in (
            lambda: store.append("told", {"n": 2}),
            lambda: list(store.events()),
            store.examples,
        ):
            is_away(use)
        assert len(patience.waits) == 1  # the others learn it at once
        patience.rest()
        is_away(store.last)
        assert patience.waits[1:] == [("a connection", RECONNECT_SECONDS)]  # one tries to connect
        is_away(store.last)
        assert len(patience.waits) == 2  # and the others need not
        patience.speak(wire)
        assert (
            patiently(patience, lambda: store.append("told", {"n": 2})) == 2
        )  # it had arrived, and is there once
        assert [e.body["n"] for e in store.events()] == [1, 2]
        assert store.append("told", {"n": 3}) == 3


def test_reading_is_waited_for_in_bounds_too(wire, patience):
    with open_store(wire.url()) as store:
        store.append("told", {"n": 1})
        patience.silence(wire)
        is_away(store.last)
        assert patience.waits == [("an answer", SHORT)]
        patience.speak(wire)
        assert [e.number for e in patiently(patience, lambda: list(store.events()))] == [1]


def test_a_large_event_on_a_slow_line_gets_its_time(wire, patience, monkeypatch):
    """A limit that grows with what is sent: else a large round could never be written from afar."""
    limits = []
    real = postgres_session.hanging_up_after
    monkeypatch.setattr(
        postgres_session,
        "hanging_up_after",
        lambda db, after: limits.append(after) or real(db, after),
    )
    with open_store(wire.url()) as store:
        store.append("told", {})
        store.append("round", {}, b"x" * 3_000_000)
    *_, small, large = limits
    assert small == pytest.approx(LONG, abs=0.1)
    assert large >= LONG + 30
