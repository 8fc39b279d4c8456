"""Stores as earlier versions wrote them, and events that were thought lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from stores import rewrite
from test_session import begin, play

from tailor.storage import StoreError


def test_rounds_without_as_of_and_without_what_was_learned(tmp_path):
    """A round's model knew everything before its event, and the selector learned from all that was
    new.
    """
    from tailor.run.array_codec import pack, unpack

    session = begin(tmp_path / "a.db")
    play(session, 3)
    session.tell({i: "a" for i in session.ask(5).ids})
    expected = session.ask(4).ids
    state = session.run_state.learner.selector.state()
    session.store.close()
    old = begin(tmp_path / "b.db")
    play(old, 3)
    old.tell({i: "a" for i in old.ask(5).ids})
    old.store.close()

    def as_then(event):
        if event.kind != "round":
            return event
        arrays = unpack(event.data)
        arrays.pop("learned", None)
        body = {key: value for key, value in event.body.items() if key not in ("as_of", "labels")}
        return replace(event, body=body, data=pack(arrays))

    rewrite(tmp_path / "b.db", as_then)
    old = begin(tmp_path / "b.db")
    assert old.ask(4).ids == expected
    for name, value in old.run_state.learner.selector.state().items():
        assert (value == state[name]).all()


def test_an_append_that_raised_but_came_through(tmp_path):
    """As when a connection breaks between commit and reply, and the store can't be read just then
    either.
    """
    session = begin(tmp_path / "a.db")
    one, two = session.ask(2).ids
    append = session.store.append
    events = session.store.events

    def broken(*args):
        append(*args)
        raise StoreError("the connection is gone")

    def away(*args, **more):
        raise StoreError("the connection is gone")

    session.store.append = broken
    session.store.events = away
    with pytest.raises(StoreError):
        session.tell({one: "a"})
    session.store.append = append
    session.store.events = events
    session.tell({two: "b"})
    assert session.run_state.counts() == {"a": 1, "b": 1, "c": 0}
    assert len(session.ask()) == 10
