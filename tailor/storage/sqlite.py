"""The store in one SQLite file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tailor.storage.base import (
    Busy,
    Event,
    Missing,
    Store,
    StoreError,
    check_empty,
    check_text,
    decode,
    encode,
)

APPLICATION = 0x5441494C  # "TAIL"
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


class SqliteStore(Store):
    """WAL, flushed to disk before append() returns. A lock beside the file keeps a second writer
    out; the system lets go of it when its holder dies, however it dies.
    """

    def __init__(self, path: str | Path, *, readonly: bool = False) -> None:
        self.path = Path(path)
        self._lock: int | None = None
        self._db: sqlite3.Connection | None = None
        self._mutex = threading.RLock()  # threads share the connection: one transaction at a time
        if readonly and not self.path.exists():
            raise Missing(
                f"{self.path} does not exist: start a run with `tailor init`, or name the right "
                "folder"
            )
        try:
            if not readonly:
                self._lock = self._take_lock()
            mode = "ro" if readonly else "rwc"
            self._db = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                timeout=10,
                check_same_thread=False,
            )
            with self._explained("open"):
                self._check(readonly)
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ opening

    def _take_lock(self) -> int:
        import fcntl

        path = self.path.with_name(self.path.name + ".lock")
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(
                f"{path} can't be written ({error.strerror}): the folder of a run must exist and "
                "be writable"
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(handle, 32).decode(errors="replace").strip()
            os.close(handle)
            who = f"process {holder}" if holder else "another process"
            raise Busy(
                f"{self.path} is in use by {who}: wait for it or stop it; nothing was changed"
            ) from error
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        return handle

    def _check(self, readonly: bool) -> None:
        db = self._connection
        (application,), (version,) = (
            db.execute("PRAGMA application_id").fetchone(),
            db.execute("PRAGMA user_version").fetchone(),
        )
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != APPLICATION:
            raise StoreError(
                f"{self.path} is a SQLite file, but not a run of tailor: name another file"
            )
        if version > VERSION:
            raise StoreError(
                f"{self.path} was written by a newer tailor (format {version}, this one knows "
                f"{VERSION}): upgrade"
            )
        if readonly:
            if not tables:  # as a process leaves it that was killed when it had just made the file
                raise Missing(
                    f"{self.path} is empty: start a run with `tailor init`, or name the right "
                    "folder"
                )
            if version < VERSION:
                raise StoreError(
                    f"{self.path} has format {version}: open it once for writing to bring it to "
                    f"{VERSION}"
                )
            return
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        for step in range(version, VERSION):
            with self._transaction():
                for statement in MIGRATIONS[step].split(";"):
                    if statement.strip():
                        db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {step + 1}")

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            raise StoreError(f"{self.path} is closed")
        return self._db

    @contextlib.contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """SQLite's errors in words that say what to do."""
        try:
            yield
        except UnicodeDecodeError as error:  # SQLite quotes the damaged text in its message
            damaged = _ADVICE["malformed"]
            raise StoreError(
                f"can't {what} {self.path}: {error.object[:80]!r}; {damaged}"
            ) from error
        except sqlite3.DatabaseError as error:
            text = str(error)
            advice = next((say for sign, say in _ADVICE.items() if sign in text), "see the message")
            raise StoreError(f"can't {what} {self.path}: {text}; {advice}") from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._mutex:
            db = self._connection
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                raise

    # ------------------------------------------------------------------ use

    def append(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> int:
        text = encode(body)
        check_text(kind)
        with self._explained("write to"), self._transaction() as db:
            row = db.execute(
                "INSERT INTO events (time, kind, body, data) VALUES (?, ?, ?, ?)",
                (time.time(), kind, text, data),
            )
            return int(row.lastrowid or 0)

    def add_examples(self, ids: Sequence[str]) -> None:
        check_text(*ids)
        with self._explained("write to"), self._transaction() as db:
            (first,) = db.execute("SELECT count(*) FROM examples").fetchone()
            db.executemany("INSERT INTO examples VALUES (?, ?)", enumerate(ids, first))
            body = encode({"first": first, "count": len(ids)})
            db.execute(
                "INSERT INTO events (time, kind, body) VALUES (?, 'examples', ?)",
                (time.time(), body),
            )

    def events(self, after: int = 0) -> Iterator[Event]:
        find = f"{_EVENTS} WHERE number > ? AND number <= {_LAST} ORDER BY number"
        with self._explained("read"):
            with self._mutex:  # never in the middle of another thread's transaction
                rows = self._connection.execute(find, (after,))
            while row := self._next(rows):
                yield decode(row, self.path)

    def find(self, kind: str) -> Iterator[Event]:
        with self._explained("read"), self._mutex:
            rows = self._connection.execute(
                f"{_EVENTS} WHERE kind = ? ORDER BY number", (kind,)
            ).fetchall()
        return (decode(row, self.path) for row in rows)

    def last(self) -> Event | None:
        with self._explained("read"), self._mutex:
            row = self._connection.execute(f"{_EVENTS} WHERE number = {_LAST}").fetchone()
            return decode(row, self.path) if row else None

    def _next(self, rows: sqlite3.Cursor) -> Any:
        with self._mutex:
            return rows.fetchone()

    def examples(self) -> list[str]:
        with self._explained("read"), self._mutex:
            return [
                one
                for (one,) in self._connection.execute("SELECT id FROM examples ORDER BY position")
            ]

    def restore(
        self, ids: Sequence[str], events: Iterable[Event], verify: Callable[[], None]
    ) -> None:
        check_text(*ids)
        with self._explained("write to"), self._transaction() as db:
            check_empty(self, self.path)
            db.executemany("INSERT INTO examples VALUES (?, ?)", enumerate(ids))
            rows = ((e.number, e.time, e.kind, encode(e.body), e.data) for e in events)
            db.executemany(
                "INSERT INTO events (number, time, kind, body, data) VALUES (?, ?, ?, ?, ?)", rows
            )
            verify()

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


_EVENTS, _LAST = (
    "SELECT number, time, kind, body, data FROM events",
    "(SELECT max(number) FROM events)",
)
_ADVICE = {
    "full": "free some space and go on, nothing acknowledged is lost",
    "readonly": "the file or its folder is read-only: make it writable, or copy the run elsewhere",
    "malformed": "the file is damaged and was left as it is: restore a copy of it",
    "not a database": "the file is no SQLite database, or damaged; it was left as it is",
    "unable to open": "check that the folder exists and may be written",
    "locked": "another program holds the file: close it",
    "UNIQUE": "an id is there already",
}
