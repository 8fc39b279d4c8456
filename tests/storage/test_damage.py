"""Damage is noticed: never an empty run, never a traceback, never a write to what is damaged."""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from stores import append_raw

from tailor.storage import SqliteStore, StoreDamaged, StoreError, open_store
from tailor.storage.chain import BEGINNING, ChainHead, next_row, verify_rows
from tailor.storage.run_head import HeadWriter, head_path, read_head

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import damage

#: of the thousand that benchmarks/damage.py tries
CASES = 240


def test_random_damages_are_noticed_or_do_no_harm():
    record = damage.main(CASES, seed=1)
    assert set(record["outcomes"]) == {"refused", "whole"}
    assert record["outcomes"]["refused"] > CASES / 3


@pytest.mark.parametrize("state", ["closed", "killed"])
def test_every_length_of_a_cut(tmp_path, state):
    """Also inside the last page, where SQLite itself sees an empty run."""
    damage.make_run(tmp_path / state, killed=state == "killed")
    whole = damage.read_all(tmp_path / state)
    size = (tmp_path / state / "run.db").stat().st_size
    for length in (*range(0, size, 1777), *range(size - 4096, size, 331)):
        cut = tmp_path / "cut"
        cut.mkdir()
        damage.copy_files(tmp_path / state, cut)
        content = (cut / "run.db").read_bytes()[:length]
        (cut / "run.db").write_bytes(content)
        assert damage.outcome(cut, whole) in ("refused", "whole")
        shutil.rmtree(cut)


def fill(store, count=40):
    store.append("opened", {})
    store.add_examples(["a", "b"])
    for number in range(count):
        store.append("told", {"n": number})


def changed(place, postgres, statement):
    """Change rows of a store by its database's own means."""
    if isinstance(place, Path):
        import sqlite3

        db = sqlite3.connect(place)
        db.execute(statement)
        db.commit()
        db.close()
    else:
        run = place.partition("run=")[2]
        postgres.execute(
            statement.replace(" events", f' "tailor_{run}".events').replace(
                " examples", f' "tailor_{run}".examples'
            )
        )


STATEMENTS = {
    "a body": "UPDATE events SET body = '{}' WHERE number = 20",
    "a kind": "UPDATE events SET kind = 'asked' WHERE number = 20",
    "a time": "UPDATE events SET time = 5.0 WHERE number = 20",
    "an id": "UPDATE examples SET id = 'c' WHERE position = 1",
    "a lost event": "DELETE FROM events WHERE number = 20",
    "the last event lost": "DELETE FROM events WHERE number = 42",
    "all events lost": "DELETE FROM events",
    "a lost id": "DELETE FROM examples WHERE position = 1",
}


@pytest.mark.parametrize("what", list(STATEMENTS))
def test_rows_that_were_changed(request, place, what):
    postgres = None if isinstance(place, Path) else request.getfixturevalue("postgres")
    with open_store(place) as store:
        fill(store)
    changed(place, postgres, STATEMENTS[what])

    def read():
        with open_store(place, readonly=True) as store:
            list(store.events())
            store.examples()

    with pytest.raises(StoreDamaged):
        read()
    is_of_ids = "id" in what.split()
    if not is_of_ids:
        with pytest.raises(StoreDamaged), open_store(place) as store:
            store.append("told", {})


def test_the_first_damaged_event_is_named_and_nothing_before_it_is_held_back():
    rows = []
    head = BEGINNING
    for number in range(5):
        row, head = next_row(head, float(number), "told", "{}", None)
        rows.append(row)
    assert verify_rows(BEGINNING, rows, "here") == head
    assert verify_rows(ChainHead(2, rows[1][-1]), rows[2:], "here") == head
    rows[3] = (4, 3.0, "told", "[]", *rows[3][4:])
    with pytest.raises(StoreDamaged, match=r"event 4 \(told\) of here is damaged"):
        verify_rows(BEGINNING, rows, "here")
    with pytest.raises(StoreDamaged, match="event 3 of here is lost"):
        verify_rows(BEGINNING, rows[:2] + rows[3:], "here")
    for odd in ((4, "x", "told", "{}", None, b""), (4, 1.0, None, b"{}", 7, None)):
        with pytest.raises(StoreDamaged):
            verify_rows(BEGINNING, [*rows[:3], odd], "here")


def test_a_kill_between_the_database_and_its_head_is_no_damage(tmp_path):
    """The head may be behind by any number of events, or half written."""
    path = tmp_path / "run.db"
    with SqliteStore(path) as store:
        fill(store)
        early = head_path(path).read_bytes()
        fill_more = [store.append("told", {}) for _ in range(3)]
        damage.copy_files(tmp_path, make(tmp_path / "killed"))
    killed = tmp_path / "killed" / "run.db"
    head_path(killed).write_bytes(early)
    with SqliteStore(killed) as store:
        assert store.append("told", {}) == fill_more[-1] + 1
    chance = random.Random(0)
    for _ in range(10):
        content = bytearray(head_path(path).read_bytes())
        slot = chance.randrange(2) * (len(content) // 2)
        content[slot + chance.randrange(40)] ^= 1
        head_path(path).write_bytes(content)
        assert read_head(head_path(path)) is not None
        with SqliteStore(path) as store:
            store.append("told", {})


def make(folder):
    folder.mkdir()
    return folder


def test_a_head_in_two_slots(tmp_path):
    writer = HeadWriter(tmp_path / "run.db")
    assert read_head(writer.path) is None
    for number in range(1, 6):
        writer.write(ChainHead(number, bytes([number]) * 16), durable=number == 3)
        assert read_head(writer.path) == writer.head
    content = writer.path.read_bytes()
    writer.close()
    newest = read_head(writer.path)
    assert newest.chain == ChainHead(5, b"\5" * 16)
    for length in range(len(content)):
        writer.path.write_bytes(content[:length])
        head = read_head(writer.path)
        assert head is None or head.chain.number in (4, 5)


def test_the_file_of_another_run_is_noticed(tmp_path):
    for name in ("a", "b"):
        with SqliteStore(make(tmp_path / name) / "run.db") as store:
            fill(store)
            store.append("told", {"in": name})
    shutil.copyfile(tmp_path / "a" / "run.db", tmp_path / "b" / "run.db")
    with pytest.raises(StoreDamaged, match="they are of two runs"):
        SqliteStore(tmp_path / "b" / "run.db")


def test_an_older_copy_over_a_newer_run_is_noticed(tmp_path):
    path = tmp_path / "run.db"
    with SqliteStore(path) as store:
        fill(store)
    shutil.copyfile(path, tmp_path / "older.db")
    with SqliteStore(path) as store:
        store.append("told", {})
    shutil.copyfile(tmp_path / "older.db", path)
    with pytest.raises(StoreDamaged, match="has 42 events of 43 that were written"):
        SqliteStore(path, readonly=True)
    with SqliteStore(tmp_path / "older.db") as store:  # by itself the copy is a whole run
        assert store.append("told", {}) == 43


def test_damage_that_no_event_shows_is_noticed_before_anything_is_written(tmp_path):
    """A bit in the index of ids, which reading does not need."""
    path = tmp_path / "run.db"
    with SqliteStore(path) as store:
        store.add_examples([f"picture {number:04d}" for number in range(300)])
        store.append("told", {})
    content = bytearray(path.read_bytes())
    copies = [start for start in range(len(content)) if content.startswith(b"picture 0017", start)]
    assert len(copies) == 2  # in the table and in the index
    for start in copies:
        content = bytearray(path.read_bytes())
        content[start + 11] ^= 1
        (tmp_path / "damaged.db").write_bytes(content)
        for with_head in (True, False):
            head = head_path(tmp_path / "damaged.db")
            head.unlink(missing_ok=True)
            if with_head:
                shutil.copyfile(head_path(path), head)
            with pytest.raises(StoreError):
                read_and_write(tmp_path / "damaged.db")
            assert (tmp_path / "damaged.db").read_bytes() == content


def read_and_write(path):
    with SqliteStore(path) as store:
        store.examples()
        store.append("told", {})


def test_what_can_be_read_but_not_understood_is_no_damage_of_the_store(tmp_path):
    with SqliteStore(tmp_path / "run.db") as store:
        fill(store)
    append_raw(tmp_path / "run.db", "told", "[1, 2]")
    with SqliteStore(tmp_path / "run.db", readonly=True) as store:
        assert "event 43" in store.problems()[0]


DIES = """
import os, signal, sys
from tailor.storage import SqliteStore, run_head, sqlite_schema, sqlite_session
left = [int(sys.argv[2])]
def dies(function):
    def wrapped(*args, **options):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return function(*args, **options)
    return wrapped
for owner, name in (
    (run_head.HeadWriter, "write"), (sqlite_session, "connect"), (sqlite_session, "migrate"),
    (sqlite_session, "note_closed"), (sqlite_session, "sha256_of"),
    (sqlite_session.SqliteSession, "_move_log"), (sqlite_session.SqliteSession, "_check_newest"),
):
    setattr(owner, name, dies(getattr(owner, name)))
with SqliteStore(sys.argv[1]) as store:
    for _ in range(3):
        print(store.append("told", {}), flush=True)
"""


def test_killed_at_any_step_of_writing_nothing_is_damaged(tmp_path):
    """From the first file of a new run to the last note of a closed one, and again later."""
    acknowledged = 0
    path = tmp_path / "run.db"
    steps_of_whole = []
    for step in range(60):
        child = subprocess.run(
            [sys.executable, "-c", DIES, str(path), str(step)], capture_output=True, text=True
        )
        assert child.returncode in (0, -9), child.stderr
        acknowledged = max([acknowledged, *map(int, child.stdout.split())])
        if child.returncode == 0:
            steps_of_whole.append(step)
        with SqliteStore(path) if acknowledged else contextlib.nullcontext() as store:
            if store is not None:
                numbers = [event.number for event in store.events()]
                assert len(numbers) - acknowledged in (0, 1)
                acknowledged = store.append("told", {})
        if len(steps_of_whole) == 2:
            break
    assert steps_of_whole[0] > 8
