"""The store in PostgreSQL, for a team: a run is a schema of its own, as in SQLite it is a file of
its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tailor.errors import InputError
from tailor.storage.address import Address
from tailor.storage.base import (
    Event,
    Store,
    StoreError,
    check_empty,
    check_storable,
    decode,
    encode,
)
from tailor.storage.postgres_connection import take_lock
from tailor.storage.postgres_schema import bring_up_to_date
from tailor.storage.postgres_session import PostgresSession

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

#: Bytes and number of the events that are read at once.
PAGE_BYTES = 16 << 20
PAGE_ROWS = 4096
#: Few at first: often only the first event is wanted.
FIRST_PAGE_ROWS = 8
#: Seconds to wait for the lock after a loss: the server may need a moment to notice that the
#: session before has ended.
LOCK_PATIENCE = 1.0

READ_PAGE = """
    SELECT number, time, kind, body, data FROM (
        SELECT *, sum(octet_length(body) + coalesce(octet_length(data), 0))
            OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes
        FROM (
            SELECT * FROM events WHERE number > %s AND number <= %s ORDER BY number LIMIT %s
        ) AS chosen
    ) AS sized WHERE coalesce(bytes, 0) < %s ORDER BY number
"""
#: One writer and the largest number plus one: a number that was rolled back is given again.
INSERT_EVENT = """
    INSERT INTO events (number, time, kind, body, data)
    SELECT coalesce(max(number), 0) + 1, %s, %s, %s, %s FROM events RETURNING number
"""
COPY_EXAMPLES = "COPY examples (position, id) FROM STDIN"
COPY_EVENTS = "COPY events (number, time, kind, body, data) FROM STDIN"


class PostgresStore(Store):
    """One session writes, by an advisory lock; the server has flushed an event to disk before
    append() returns.

    A lost connection is an error (StoreUnreachable); the next call connects again. It writes on if
    the lock could be had again and the events are those that this store knows of: whoever holds an
    outdated picture of the run must not add to it.

    url  postgresql://USER:PASSWORD@HOST:PORT/DATABASE?run=NAME
    run  the name of the run, where the URL names none
    """

    def __init__(self, url: str, run: str | None = None, *, readonly: bool = False) -> None:
        self.address = Address.parse(url, run)
        self._readonly = readonly
        #: The newest event's number, as far as this store knows; None until it is open.
        self._known_number: int | None = None
        #: (time, kind, body, data) of the event on its way to the server.
        self._in_flight: tuple[float, str, str, bytes | None] | None = None
        #: The number of that event, where the connection broke and it did arrive; else 0.
        self._arrived_number = 0
        self._outdated = ""
        self._session = PostgresSession(
            self.address,
            readonly=readonly,
            prepare=self._prepare,
            on_refusal=self._forget_in_flight,
        )
        try:
            with self._session.use("open") as db:
                self._known_number = self._newest(db)[0]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._session.close()

    # ------------------------------------------------------------------ after connecting

    def _prepare(self, db: Connection[Any]) -> None:
        """Make a new connection fit for writing, and find out what happened to the event that was
        on its way when the last one was lost.
        """
        if not self._readonly:
            is_first = self._known_number is None
            take_lock(db, self.address, patience=0.0 if is_first else LOCK_PATIENCE)
        bring_up_to_date(db, self.address, self._readonly)
        if self._known_number is None or self._readonly:
            return
        number, *newest = self._newest(db)
        sent = None if self._in_flight is None else self._in_flight[:3]
        if number == self._known_number + 1 and tuple(newest) == sent:
            self._arrived_number = number
        elif number != self._known_number:
            self._outdated = (
                f"{self.address} has {number} events where this process knows of "
                f"{self._known_number}"
            )

    def _forget_in_flight(self) -> None:
        """The server has refused what was sent: it did not arrive."""
        self._in_flight = None

    def _check_writable(self) -> None:
        if self._readonly:
            raise StoreError(f"{self.address} was opened for reading only")
        if self._outdated:
            raise StoreError(
                f"{self._outdated}: it was written to while the connection was lost; open the "
                "run again"
            )
        if self._arrived_number:
            raise StoreError(
                f"event {self._arrived_number} of {self.address} was on its way when the "
                "connection was lost, and did arrive: read the events, or open the run again, "
                "before you add to them"
            )

    # ------------------------------------------------------------------ writing

    def append(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> int:
        encoded_body = encode(body)
        _check_storable(kind)
        with self._session.use("write to") as db:
            if self._has_arrived(kind, encoded_body, data):
                return self._acknowledge(self._arrived_number)
            self._check_writable()
            with self._session.answering(db, len(encoded_body) + len(data or b"")):
                return self._acknowledge(self._insert(db.cursor(), kind, encoded_body, data))

    def _has_arrived(self, kind: str, encoded_body: str, data: bytes | None) -> bool:
        """Whether an event that is given again after an error had arrived at the first try."""
        if not self._arrived_number or self._in_flight is None:
            return False
        return self._in_flight[1:] == (kind, encoded_body, data)

    def add_examples(self, ids: Sequence[str]) -> None:
        _check_storable(*ids)
        with self._session.use("write to") as db:
            self._check_writable()
            with db.transaction(), db.cursor() as cursor:
                cursor.execute("SELECT coalesce(max(position) + 1, 0) FROM examples")
                (first,) = _fetch_row(cursor)
                _copy(cursor, COPY_EXAMPLES, enumerate(ids, first))
                body = encode({"first": first, "count": len(ids)})
                number = self._insert(cursor, "examples", body, None)
            self._acknowledge(number)

    def _insert(
        self,
        cursor: Cursor[Any],
        kind: str,
        encoded_body: str,
        data: bytes | None,
    ) -> int:
        self._in_flight = (time.time(), kind, encoded_body, data)
        cursor.execute(INSERT_EVENT, self._in_flight)
        (number,) = _fetch_row(cursor)
        return int(number)

    def _acknowledge(self, number: int) -> int:
        self._known_number = number
        self._in_flight = None
        self._arrived_number = 0
        return number

    def restore(
        self,
        ids: Sequence[str],
        events: Iterable[Event],
        verify: Callable[[], None],
    ) -> None:
        _check_storable(*ids)
        with self._session.use("write to") as db:
            self._check_writable()
            with db.transaction(), db.cursor() as cursor:
                check_empty(self, self.address)
                _copy(cursor, COPY_EXAMPLES, enumerate(ids))
                rows = (
                    (event.number, event.time, event.kind, encode(event.body), event.data)
                    for event in events
                )
                _copy(cursor, COPY_EVENTS, rows)
                verify()
            self._known_number = self._newest(db)[0]

    # ------------------------------------------------------------------ reading

    def events(self, after: int = 0) -> Iterator[Event]:
        with self._session.use("read") as db:
            newest_number = self._newest(db)[0]
        rows = FIRST_PAGE_ROWS
        while after < newest_number:
            page = self._read_page(after, newest_number, rows)
            if not page:
                return
            for event in page:
                # Another thread may have it acknowledged, and more written, meanwhile.
                with self._session.lock:
                    if event.number == self._arrived_number:
                        self._acknowledge(event.number)
                yield event
            after = page[-1].number
            rows = min(4 * rows, PAGE_ROWS)

    def _read_page(self, after: int, newest_number: int, rows: int) -> list[Event]:
        """The next events: so many, or fewer where they are large. No transaction stays open
        between pages.
        """
        with self._session.use("read") as db, db.cursor(binary=True) as cursor:
            cursor.execute(READ_PAGE, (after, newest_number, rows, PAGE_BYTES))
            page = cursor.fetchall()
        return [decode(row, self.address) for row in page]

    def last(self) -> Event | None:
        with self._session.use("read") as db:
            newest_number = self._newest(db)[0]
        return next(self.events(newest_number - 1), None) if newest_number else None

    def examples(self) -> list[str]:
        with self._session.use("read") as db:
            rows = db.execute("SELECT id FROM examples ORDER BY position").fetchall()
        return [example_id for (example_id,) in rows]

    def _newest(self, db: Connection[Any]) -> tuple[Any, ...]:
        """(number, time, kind, body) of the last event; number 0 where there is none."""
        query = "SELECT number, time, kind, body FROM events ORDER BY number DESC LIMIT 1"
        with self._session.answering(db):
            row = db.execute(query).fetchone()
        return row or (0, 0.0, "", "")


def _copy(cursor: Cursor[Any], statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
    with cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def _fetch_row(cursor: Cursor[Any]) -> tuple[Any, ...]:
    row = cursor.fetchone()
    assert row is not None
    return tuple(row)


def _check_storable(*texts: str) -> None:
    check_storable(*texts)
    for text in texts:
        if "\0" in text:
            raise InputError(
                f"{text!r} holds a NUL character, which PostgreSQL can't store: rename it, or keep "
                "the run in SQLite; nothing was changed"
            )
