"""The tables of a run in SQLite, and how older ones are brought up to date."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from tailor.storage.base import StoreError, StoreOutdated
from tailor.storage.chain import BEGINNING, ChainHead, ids_digest, next_row
from tailor.storage.old_events import check_old_events

#: Marks a file as one of ours: "TAIL".
APPLICATION_ID = 0x5441494C


def make_first_tables(db: sqlite3.Connection) -> None:
    db.execute(
        """
        CREATE TABLE events (
            number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, kind TEXT NOT NULL,
            body TEXT NOT NULL, data BLOB
        ) STRICT
        """
    )
    db.execute(
        "CREATE TABLE examples (position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE) STRICT"
    )


def _add_digests(db: sqlite3.Connection) -> None:
    """Format 2: each event carries a checksum, and a file that was closed knows its newest event.

    The table `closed` has a row only where nobody writes: a file that was copied without its log
    while the run was open has none, or not the newest event.
    """
    db.execute("ALTER TABLE events ADD COLUMN digest BLOB NOT NULL DEFAULT x''")
    db.execute("CREATE TABLE closed (number INTEGER NOT NULL, digest BLOB NOT NULL) STRICT")
    ids = [example_id for (example_id,) in db.execute("SELECT id FROM examples ORDER BY position")]
    head = BEGINNING
    rows = db.execute("SELECT number, time, kind, body, data FROM events ORDER BY number")
    for row in check_old_events(rows, len(ids)):
        data = row.data
        if row.kind == "examples":
            data = ids_digest(ids[row.first : row.end])
        stored, head = next_row(head, row.time, row.kind, row.body, data)
        number, *_, digest = stored
        db.execute(
            "UPDATE events SET data = ?, digest = ? WHERE number = ?", (data, digest, number)
        )
    if head != BEGINNING:
        note_closed(db, head)


#: Each step brings a file from version i to i + 1, in one transaction with the record of it.
MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [make_first_tables, _add_digests]
VERSION = len(MIGRATIONS)


def read_version(db: sqlite3.Connection, path: Path) -> int:
    """The format of a run's file; 0 where it holds nothing yet.

    Raises StoreError where it is another program's, or newer than this one.
    """
    (application_id,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and application_id != APPLICATION_ID:
        raise StoreError(f"{path} is a SQLite file, but not a run of tailor: name another file")
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer tailor (format {version}, this one knows {VERSION}): "
            "upgrade"
        )
    if tables:
        return int(version)
    return 0


def check_version(db: sqlite3.Connection, path: Path) -> bool:
    """Whether a file holds a run of today's format; False where it holds nothing.

    Raises StoreOutdated for an earlier one.
    """
    version = read_version(db, path)
    if 0 < version < VERSION:
        raise StoreOutdated(path, version, VERSION)
    return version > 0


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Bring a file from a version to today's, inside the caller's transaction."""
    for step in range(version, VERSION):
        MIGRATIONS[step](db)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def note_closed(db: sqlite3.Connection, head: ChainHead) -> None:
    """Note that nobody writes, and which event is the newest."""
    db.execute("DELETE FROM closed")
    db.execute("INSERT INTO closed VALUES (?, ?)", head)


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commits what the block did, or rolls it back where it raises."""
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """What the block reads is of one moment."""
    if db.in_transaction:
        yield
        return
    db.execute("BEGIN")
    try:
        yield
    finally:
        with contextlib.suppress(sqlite3.Error):
            db.execute("COMMIT")
