"""What only SQLite has: files that are damaged, foreign, newer, or on a full disk."""

from __future__ import annotations

import sqlite3

import pytest

from tailor.storage import SqliteStore, StoreDamaged, StoreError, StoreMissing
from tailor.storage.chain import BEGINNING
from tailor.storage.run_head import HeadWriter
from tailor.storage.sqlite_schema import VERSION


def test_a_newer_format_is_left_alone(tmp_path):
    SqliteStore(tmp_path / "a.db").close()
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(
        StoreError, match=f"newer tailor .format {VERSION + 1}, this one knows {VERSION}"
    ):
        SqliteStore(tmp_path / "a.db")
    assert (tmp_path / "a.db").read_bytes() == before


@pytest.mark.parametrize("damage", ["garbage", "truncated"])
def test_a_damaged_file_is_left_alone(tmp_path, damage):
    path = tmp_path / "a.db"
    with SqliteStore(path) as store:
        for _ in range(200):
            store.append("told", {"text": "x" * 500})
    whole = path.read_bytes()
    path.write_bytes(
        b"no database at all" * 100 if damage == "garbage" else whole[: len(whole) // 3]
    )
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"damaged|left as it is"), SqliteStore(path) as store:
        list(store.events())
    assert path.read_bytes() == before


def test_another_program_s_database_is_refused(tmp_path):
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(StoreError, match="not a run of tailor"):
        SqliteStore(tmp_path / "a.db")


def test_missing_folder_and_missing_file(tmp_path):
    with pytest.raises(StoreError, match="must exist and be writable"):
        SqliteStore(tmp_path / "no" / "a.db")
    with pytest.raises(StoreError, match="does not exist"):
        SqliteStore(tmp_path / "a.db", readonly=True)


def test_a_full_disk_is_explained_and_nothing_is_half_written(tmp_path):
    with SqliteStore(tmp_path / "a.db") as store:
        store.append("told", {"n": 1})
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match=r"full.*free some space"):
            store.append("told", {"text": "x" * 100_000})
        store._connection.execute("PRAGMA max_page_count = 1000000")
        store.append("told", {"n": 2})
        assert [e.body for e in store.events()] == [{"n": 1}, {"n": 2}]


def test_a_file_that_was_only_just_made_is_no_run_yet(tmp_path):
    """As kill -9 leaves it between making the head, the file, and the tables in it."""
    path = tmp_path / "a.db"
    writer = HeadWriter(path)
    writer.write(BEGINNING)
    writer.close()
    for content in (None, b""):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(StoreMissing, match="is empty"):
            SqliteStore(path, readonly=True)
    with SqliteStore(path) as store:
        assert store.append("told", {}) == 1


def test_an_empty_file_that_nobody_just_made_is_no_new_run(tmp_path):
    (tmp_path / "a.db").touch()
    for readonly in (True, False):
        with pytest.raises(StoreDamaged, match="nothing tells whether a run was in it"):
            SqliteStore(tmp_path / "a.db", readonly=readonly)
    assert [path.name for path in tmp_path.glob("*.head")] == []


def test_an_id_that_is_there_is_named_as_the_reason(tmp_path):
    with SqliteStore(tmp_path / "a.db") as store:
        store.add_examples(["x"])
        with pytest.raises(StoreError, match="an id is there already"):
            store.add_examples(["y", "x"])
