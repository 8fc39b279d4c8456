"""The store in one SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tailor.common.operating_system import check_operating_system
from tailor.storage.base import (
    Event,
    Store,
    StoreDamaged,
    check_empty,
    check_storable,
    decode,
    encode,
)
from tailor.storage.chain import (
    ADVICE,
    BEGINNING,
    ChainHead,
    StoredRow,
    check_ids,
    ids_digest,
    next_row,
    verify_rows,
)
from tailor.storage.sqlite_file import explained_errors, integrity_problems, newest_event
from tailor.storage.sqlite_schema import snapshot
from tailor.storage.sqlite_session import SqliteSession

#: With the checksum of the event before, which an event's own follows from.
SELECT_EVENTS = """
    SELECT event.number, event.time, event.kind, event.body, event.data, event.digest,
        before.digest
    FROM events AS event LEFT JOIN events AS before ON before.number = event.number - 1
"""
INSERT_EXAMPLES = "INSERT INTO examples VALUES (?, ?)"
INSERT_EVENTS = """
    INSERT INTO events (number, time, kind, body, data, digest) VALUES (?, ?, ?, ?, ?, ?)
"""


class SqliteStore(Store):
    """A store in a file with a write-ahead log, flushed to disk before append() returns.

    Beside the file lies its head (run_head.py): how far the run got, and a lock that keeps a second
    writer out.

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
        check_operating_system()
        self.path = Path(path)
        self._session = SqliteSession(self.path, readonly=readonly)

    def close(self) -> None:
        self._session.close()

    # ------------------------------------------------------------------ writing

    def append(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> int:
        encoded_body = encode(body)
        check_storable(kind)
        with self._session.writing() as db:
            db.execute(INSERT_EVENTS, self._next_row(time.time(), kind, encoded_body, data))
            return self._session.pending.number

    def add_examples(self, ids: Sequence[str]) -> None:
        check_storable(*ids)
        with self._session.writing() as db:
            (first,) = db.execute("SELECT count(*) FROM examples").fetchone()
            db.executemany(INSERT_EXAMPLES, enumerate(ids, first))
            body = encode({"first": first, "count": len(ids)})
            row = self._next_row(time.time(), "examples", body, ids_digest(ids))
            db.execute(INSERT_EVENTS, row)

    def restore(
        self,
        ids: Sequence[str],
        events: Iterable[Event],
        verify: Callable[[], None],
    ) -> None:
        check_storable(*ids)
        with self._session.writing() as db:
            check_empty(self, self.path)
            db.executemany(INSERT_EXAMPLES, enumerate(ids))
            rows = (
                self._next_row(event.time, event.kind, encode(event.body), event.data)
                for event in events
            )
            db.executemany(INSERT_EVENTS, rows)
            verify()

    def _next_row(
        self, seconds: float, kind: str, encoded_body: str, data: bytes | None
    ) -> StoredRow:
        session = self._session
        row, session.pending = next_row(session.pending, seconds, kind, encoded_body, data)
        return row

    def checkpoint(self) -> None:
        self._session.checkpoint()

    # ------------------------------------------------------------------ reading

    def events(self, after: int = 0) -> Iterator[Event]:
        session = self._session
        with explained_errors("read", self.path):
            with session.lock:
                newest = newest_event(session.connection)
                chain = self._chain_at(min(after, newest.number))
            for page in session.pages(chain, newest.number):
                before = chain
                chain = verify_rows(before, page, self.path)
                with session.lock:
                    if session.checked == before and not session.is_writable:
                        session.checked = chain
                for row in page:
                    yield decode(row, self.path)

    def _chain_at(self, number: int) -> ChainHead:
        """The chain up to an event, which is not checked."""
        if number <= 0:
            return BEGINNING
        query = "SELECT number, digest FROM events WHERE number = ?"
        row = self._connection.execute(query, (number,)).fetchone()
        if row is None:
            raise StoreDamaged(f"event {number} of {self.path} is lost; {ADVICE}")
        return ChainHead(*row)

    def find(self, kind: str) -> Iterator[Event]:
        query = f"{SELECT_EVENTS} WHERE event.kind = ? ORDER BY event.number"
        with explained_errors("read", self.path), self._session.lock:
            rows = self._connection.execute(query, (kind,)).fetchall()
        return (self._checked_event(row) for row in rows)

    def last(self) -> Event | None:
        query = f"{SELECT_EVENTS} WHERE event.number = (SELECT max(number) FROM events)"
        with explained_errors("read", self.path), self._session.lock:
            row = self._connection.execute(query).fetchone()
        if row:
            return self._checked_event(row)
        return None

    def _checked_event(self, row: tuple[Any, ...]) -> Event:
        number, seconds, kind, body, data, digest, digest_before = row
        before = ChainHead(number - 1, digest_before or BEGINNING.digest)
        stored = (number, seconds, kind, body, data, digest)
        verify_rows(before, [stored], self.path)
        return decode(stored, self.path)

    def examples(self) -> list[str]:
        with explained_errors("read", self.path), self._session.lock:
            db = self._connection
            with snapshot(db):
                rows = db.execute("SELECT id FROM examples ORDER BY position")
                ids = [example_id for (example_id,) in rows]
                joined = list(self.find("examples"))
        check_ids(ids, joined, self.path)
        return ids

    def database_problems(self) -> list[str]:
        with explained_errors("read", self.path), self._session.lock:
            return integrity_problems(self._connection)

    @property
    def _connection(self) -> sqlite3.Connection:
        return self._session.connection
