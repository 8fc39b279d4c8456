"""tailor move: from one store to the other and back, all or nothing."""

from __future__ import annotations

import sqlite3

import pytest
from runs import python_m, refused

from tailor.errors import InputError
from tailor.storage import StoreBusy, StoreError, is_begun, open_store
from tailor.storage import move as moving
from tailor.storage.move import fingerprint, move
from tailor.testing.store_contract import ODD_IDS


def fill(place):
    with open_store(place) as store:
        store.append("opened", {"ü": ["\0", 0.1, None]})
        store.add_examples(ODD_IDS)
        for n in range(60):
            store.append("told", {"n": n}, bytes([n]) * (n * 100) if n % 2 else None)
        store.add_examples([f"id {i}" for i in range(2000)])
        return state(store)


def state(store):
    return list(store.events()), store.examples()


def state_of(place):
    with open_store(place, readonly=True) as store:
        return state(store)


def test_there_and_back_and_every_way(postgres, tmp_path):
    """SQLite to PostgreSQL to PostgreSQL to SQLite: numbers, times, bytes and ids as they were."""
    places = [tmp_path / "a.db", postgres.url(), postgres.url(), tmp_path / "b.db"]
    before = fill(places[0])
    for source, target in zip(places, places[1:]):
        moved = move(source, target)
        assert (moved.events, moved.examples) == (len(before[0]), len(before[1]))
        assert moved == fingerprint(before[1], before[0])
        assert state_of(target) == before
    with open_store(places[-1]) as store:
        assert store.append("told", {}) == len(before[0]) + 1


def test_the_old_place_opens_no_more_but_is_kept(postgres, tmp_path):
    old = tmp_path / "a.db"
    new = postgres.url()
    before = fill(old)
    move(old, new)
    for readonly in (False, True):
        with pytest.raises(
            StoreError, match=r"was moved to postgresql://tailor@.*name that as `store`"
        ) as caught:
            open_store(old, readonly=readonly)
        assert postgres.password not in str(caught.value)
    move(old, tmp_path / "again.db")  # the copy is whole, and can be had back
    assert state_of(tmp_path / "again.db") == before


def test_a_place_that_is_not_empty_is_refused(new_place):
    source = new_place()
    target = new_place()
    before = fill(source)
    there = fill(target)
    with pytest.raises(
        StoreError, match=f"holds {len(there[0])} events already: name a place that is empty"
    ):
        move(source, target)
    assert (state_of(source), state_of(target)) == (before, there)
    with pytest.raises(StoreError, match="moved to itself"):
        move(source, source)
    with pytest.raises(StoreError, match="there is no run in"):
        move(new_place(), target)


def test_nobody_writes_meanwhile(new_place):
    source = new_place()
    target = new_place()
    fill(source)
    with open_store(source), pytest.raises(StoreBusy):
        move(source, target)
    with open_store(target), pytest.raises(StoreBusy):
        move(source, target)
    move(source, target)


def test_what_postgresql_can_t_hold_moves_nothing(postgres, tmp_path):
    with open_store(tmp_path / "a.db") as store:
        store.add_examples(["fine", "a\0b"])
        before = state(store)
    url = postgres.url()
    with pytest.raises(InputError, match="holds a NUL character"):
        move(tmp_path / "a.db", url)
    assert state_of(tmp_path / "a.db") == before
    assert not is_begun(url)


def test_damage_on_the_way_moves_nothing(new_place, monkeypatch):
    """The last event is lost on its way: seen before it counts."""
    source = new_place()
    target = new_place()
    before = fill(source)
    whole = moving._events_to_move

    def short(store):
        short.calls += 1
        events = list(whole(store))
        return iter(events if short.calls == 1 else events[:-1])

    short.calls = 0
    monkeypatch.setattr(moving, "_events_to_move", short)
    with pytest.raises(StoreError, match="what arrived differs"):
        move(source, target)
    assert state_of(source) == before
    assert not is_begun(target)


def test_killed_before_the_end_nothing_has_moved(postgres, tmp_path):
    """The connection is cut between the last byte and the commit."""
    url = postgres.url()
    before = fill(tmp_path / "a.db")
    with open_store(tmp_path / "a.db", readonly=True) as old, open_store(url) as new:

        def cut():
            postgres.execute(
                "SELECT pg_terminate_backend(%s)", new._session.connection.info.backend_pid
            )

        with pytest.raises(StoreError, match="was lost"):
            new.restore(old.examples(), old.events(), cut)
        assert state(new) == ([], [])
        new.restore(old.examples(), old.events(), lambda: None)
    assert state_of(url) == before


def test_the_command(postgres, tmp_path):
    """In the run's folder; the folder's name is the run's, as the project will look for it."""
    folder = tmp_path / "moved photos"
    folder.mkdir()
    before = fill(folder / "run.db")
    bare = postgres.url().partition("?")[0]
    done = python_m("move", "run.db", bare, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (
        f"{len(before[0])} events and {len(before[1])} examples are in postgresql://" in done.stdout
    )
    assert "run=moved%20photos" in done.stdout
    assert postgres.password not in done.stdout + done.stderr
    assert state_of(f"{bare}?run=moved%20photos") == before
    assert "holds" in refused("move", "run.db", bare, cwd=folder)
    assert python_m("move", bare, "back.db", cwd=folder).returncode == 0
    assert state_of(folder / "back.db") == before
    said = refused("move", "nothing.db", bare + "?run=other", cwd=folder)
    assert f"there is no run in {folder / 'nothing.db'}" in said
    sqlite3.connect(folder / "foreign.db").executescript("CREATE TABLE mine (x)")
    assert "not a run of tailor" in refused("move", "foreign.db", bare + "?run=other", cwd=folder)
    assert "no store" in refused("move", "run.db", "mysql://me:hush@host/db", cwd=folder)
