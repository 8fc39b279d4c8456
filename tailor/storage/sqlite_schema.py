"""The tables of a run in SQLite, and how older ones are brought up to date."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tailor.storage.base import StoreError, StoreMissing

#: Marks a file as one of ours: "TAIL".
APPLICATION_ID = 0x5441494C
#: Each step brings a file from version i to i + 1, in one transaction with the record of it.
MIGRATIONS = [
    """
    CREATE TABLE events (
        number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, kind TEXT NOT NULL,
        body TEXT NOT NULL, data BLOB
    ) STRICT;
    CREATE TABLE examples (position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE) STRICT;
    """,
]
VERSION = len(MIGRATIONS)


def bring_up_to_date(db: sqlite3.Connection, path: Path, readonly: bool) -> None:
    """Check that the file is a run that can be used, and for a writer make what is missing.

    Raises StoreMissing where there is nothing to read, and StoreError where the file is newer than
    this program, older than a reader can use, or no run at all.
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
    if readonly:
        # A process that was killed when it had just made the file leaves it empty.
        if not tables:
            raise StoreMissing(
                f"{path} is empty: start a run with `tailor init`, or name the right folder"
            )
        if version < VERSION:
            raise StoreError(
                f"{path} has format {version}: open it once for writing to bring it to {VERSION}"
            )
        return
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")  # flushed to disk before a commit returns
    for step in range(version, VERSION):
        with transaction(db):
            # executescript() would commit the transaction first.
            for statement in MIGRATIONS[step].split(";"):
                if statement.strip():
                    db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {step + 1}")


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
