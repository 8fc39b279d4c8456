"""A server that is there and says nothing: nobody waits long, nothing is lost, and it goes on by itself."""

from __future__ import annotations

import time

import pytest

from tailor.store import Away, Busy, open_store, postgres
from tailor.store.postgres_link import AGAIN

PATIENCE, AT_ONCE, SLACK = 1.5, 1.0, 10.0


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr("tailor.store.postgres.PATIENCE", PATIENCE)


def seconds(use) -> float:
    """How long it takes to learn that the server is away."""
    began = time.monotonic()
    with pytest.raises(Away):
        use()
    return time.monotonic() - began


def patiently(use):
    """The server may need a moment to notice that the session before has ended."""
    until = time.monotonic() + 30
    while True:
        try:
            return use()
        except (Away, Busy):
            assert time.monotonic() < until, "it never came back"


def test_an_answer_is_waited_for_in_bounds_and_a_crowd_once(wire):
    with open_store(wire.url()) as store:
        store.append("told", {"n": 1})
        wire.silence()
        assert PATIENCE <= seconds(lambda: store.append("told", {"n": 2})) < PATIENCE + SLACK
        for use in (lambda: store.append("told", {"n": 2}), lambda: list(store.events()), store.examples):
            assert seconds(use) < AT_ONCE
        time.sleep(max(0.0, store._rest_until - time.monotonic()))
        assert AGAIN <= seconds(store.last) < AGAIN + SLACK  # one tries to connect
        assert seconds(store.last) < AT_ONCE  # and the others need not
        wire.speak()
        assert patiently(lambda: store.append("told", {"n": 2})) == 2  # it had arrived, and is there once
        assert [e.body["n"] for e in store.events()] == [1, 2]
        assert store.append("told", {"n": 3}) == 3


def test_reading_is_waited_for_in_bounds_too(wire):
    with open_store(wire.url()) as store:
        store.append("told", {"n": 1})
        wire.silence()
        assert PATIENCE <= seconds(store.last) < PATIENCE + SLACK
        wire.speak()
        assert [e.number for e in patiently(lambda: list(store.events()))] == [1]


def test_a_large_event_on_a_slow_line_gets_its_time(wire, monkeypatch):
    """A limit that grows with what is sent: else a large round could never be written from afar."""
    limits, real = [], postgres.hanging_up
    monkeypatch.setattr(postgres, "hanging_up", lambda db, after: limits.append(after) or real(db, after))
    with open_store(wire.url()) as store:
        store.append("told", {})
        store.append("round", {}, b"x" * 3_000_000)
    *_, small, large = limits
    assert small == pytest.approx(PATIENCE, abs=0.1)
    assert large >= PATIENCE + 30
