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

from tailor.common.operating_system import check_operating_system
from tailor.storage.base import (
    Event,
    Store,
    StoreBusy,
    StoreError,
    StoreMissing,
    check_empty,
    check_storable,
    decode,
    encode,
)
from tailor.storage.sqlite_schema import bring_up_to_date, transaction

SELECT_EVENTS = "SELECT number, time, kind, body, data FROM events"
LAST_NUMBER = "(SELECT max(number) FROM events)"
INSERT_EXAMPLES = "INSERT INTO examples VALUES (?, ?)"
INSERT_EVENTS = "INSERT INTO events (number, time, kind, body, data) VALUES (?, ?, ?, ?, ?)"
#: Seconds to wait for another program that holds the file.
LOCKED_SECONDS = 10

#: What to do, by words in SQLite's message.
ADVICE = {
    "full": "free some space and go on, nothing acknowledged is lost",
    "readonly": "the file or its folder is read-only: make it writable, or copy the run elsewhere",
    "malformed": "the file is damaged and was left as it is: restore a copy of it",
    "not a database": "the file is no SQLite database, or damaged; it was left as it is",
    "unable to open": "check that the folder exists and may be written",
    "locked": "another program holds the file: close it",
    "UNIQUE": "an id is there already",
}


class SqliteStore(Store):
    """A store in a file with a write-ahead log, flushed to disk before append() returns. A lock
    beside the file keeps a second writer out; the system lets go of it when its holder dies,
    however it dies.

    path      the file, created where it isn't there; its folder must exist
    readonly  open it for reading; StoreMissing where there is nothing

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with SqliteStore(Path(folder) / "run.db") as store:
    ...         number = store.append("told", {"label": "cat"})
    ...         print(number, store.last().body)
    1 {'label': 'cat'}
    """

    def __init__(self, path: str | Path, *, readonly: bool = False) -> None:
        self.path = Path(path)
        self._lock: int | None = None  # the open lock file
        self._db: sqlite3.Connection | None = None
        self._mutex = threading.RLock()  # threads share the connection: one transaction at a time
        if readonly and not self.path.exists():
            raise StoreMissing(
                f"{self.path} does not exist: start a run with `tailor init`, or name the right "
                "folder"
            )
        try:
            if not readonly:
                self._lock = take_lock(self.path)
            mode = "ro" if readonly else "rwc"
            self._db = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                timeout=LOCKED_SECONDS,
                check_same_thread=False,
            )
            with self._explained_errors("open"):
                bring_up_to_date(self._db, self.path, readonly)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            raise StoreError(f"{self.path} is closed")
        return self._db

    @contextlib.contextmanager
    def _explained_errors(self, action: str) -> Iterator[None]:
        """SQLite's errors in words that say what to do."""
        try:
            yield
        except UnicodeDecodeError as error:  # SQLite quotes the damaged text in its message
            damaged_text = error.object[:80]
            raise StoreError(
                f"can't {action} {self.path}: {damaged_text!r}; {ADVICE['malformed']}"
            ) from error
        except sqlite3.DatabaseError as error:
            reason = str(error)
            known_advice = [advice for words, advice in ADVICE.items() if words in reason]
            advice = known_advice[0] if known_advice else "see the message"
            raise StoreError(f"can't {action} {self.path}: {reason}; {advice}") from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """The connection inside a transaction, for this thread alone."""
        with self._explained_errors("write to"), self._mutex:
            db = self._connection
            with transaction(db):
                yield db

    # ------------------------------------------------------------------ writing

    def append(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> int:
        encoded_body = encode(body)
        check_storable(kind)
        with self._writing() as db:
            cursor = db.execute(
                "INSERT INTO events (time, kind, body, data) VALUES (?, ?, ?, ?)",
                (time.time(), kind, encoded_body, data),
            )
            return int(cursor.lastrowid or 0)

    def add_examples(self, ids: Sequence[str]) -> None:
        check_storable(*ids)
        with self._writing() as db:
            (first,) = db.execute("SELECT count(*) FROM examples").fetchone()
            db.executemany(INSERT_EXAMPLES, enumerate(ids, first))
            body = encode({"first": first, "count": len(ids)})
            db.execute(
                "INSERT INTO events (time, kind, body) VALUES (?, 'examples', ?)",
                (time.time(), body),
            )

    def restore(
        self,
        ids: Sequence[str],
        events: Iterable[Event],
        verify: Callable[[], None],
    ) -> None:
        check_storable(*ids)
        with self._writing() as db:
            check_empty(self, self.path)
            db.executemany(INSERT_EXAMPLES, enumerate(ids))
            rows = (
                (event.number, event.time, event.kind, encode(event.body), event.data)
                for event in events
            )
            db.executemany(INSERT_EVENTS, rows)
            verify()

    # ------------------------------------------------------------------ reading

    def events(self, after: int = 0) -> Iterator[Event]:
        query = f"{SELECT_EVENTS} WHERE number > ? AND number <= {LAST_NUMBER} ORDER BY number"
        with self._explained_errors("read"):
            with self._mutex:  # never in the middle of another thread's transaction
                rows = self._connection.execute(query, (after,))
            while True:
                with self._mutex:
                    row = rows.fetchone()
                if row is None:
                    return
                yield decode(row, self.path)

    def find(self, kind: str) -> Iterator[Event]:
        query = f"{SELECT_EVENTS} WHERE kind = ? ORDER BY number"
        with self._explained_errors("read"), self._mutex:
            rows = self._connection.execute(query, (kind,)).fetchall()
        return (decode(row, self.path) for row in rows)

    def last(self) -> Event | None:
        with self._explained_errors("read"), self._mutex:
            query = f"{SELECT_EVENTS} WHERE number = {LAST_NUMBER}"
            row = self._connection.execute(query).fetchone()
            return decode(row, self.path) if row else None

    def examples(self) -> list[str]:
        with self._explained_errors("read"), self._mutex:
            rows = self._connection.execute("SELECT id FROM examples ORDER BY position")
            return [example_id for (example_id,) in rows]


def take_lock(path: Path) -> int:
    """Lock a run's file for writing -> the open lock file beside it, to be closed at the end.

    Raises StoreBusy where another process has it, StoreError where the folder can't be written.
    """
    check_operating_system()
    import fcntl

    lock_path = path.with_name(path.name + ".lock")
    try:
        handle = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(
            f"{lock_path} can't be written ({error.strerror}): the folder of a run must exist and "
            "be writable"
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(handle, 32).decode(errors="replace").strip()
        os.close(handle)
        process = f"process {holder}" if holder else "another process"
        raise StoreBusy(
            f"{path} is in use by {process}: wait for it or stop it; nothing was changed"
        ) from error
    os.ftruncate(handle, 0)
    os.write(handle, str(os.getpid()).encode())
    return handle
