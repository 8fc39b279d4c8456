"""The store in PostgreSQL, for a team: a run is a schema of its own, as in SQLite it is a file of
its own.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tailor.errors import InputError
from tailor.storage.address import Address, driver
from tailor.storage.base import (
    Event,
    Store,
    StoreDamaged,
    StoreError,
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
    SELECT number, time, kind, body, data, digest FROM (
        SELECT *, sum(octet_length(body) + coalesce(octet_length(data), 0))
            OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes
        FROM (
            SELECT * FROM events WHERE number > %s AND number <= %s ORDER BY number LIMIT %s
        ) AS chosen
    ) AS sized WHERE coalesce(bytes, 0) < %s ORDER BY number
"""
#: With the checksum of the event before, which an event's own follows from.
FIND_EVENTS = """
    SELECT event.number, event.time, event.kind, event.body, event.data, event.digest,
        before.digest
    FROM events AS event LEFT JOIN events AS before ON before.number = event.number - 1
    WHERE event.kind = %s ORDER BY event.number
"""
#: The head in the same statement, so that both are there or neither is.
INSERT_EVENT = """
    WITH added AS (
        INSERT INTO events (number, time, kind, body, data, digest)
        VALUES (%s, %s, %s, %s, %s, %s) RETURNING number, digest
    )
    UPDATE head SET number = added.number, digest = added.digest FROM added
"""
READ_NEWEST = """
    SELECT event.number, event.time, event.kind, event.body, event.digest, head.number, head.digest
    FROM head LEFT JOIN (SELECT * FROM events ORDER BY number DESC LIMIT 1) AS event ON true
"""
COPY_EXAMPLES = "COPY examples (position, id) FROM STDIN"
COPY_EVENTS = "COPY events (number, time, kind, body, data, digest) FROM STDIN"


class NewestEvent(NamedTuple):
    """The newest event in the database.

    content  its (time, kind, body)
    """

    chain: ChainHead
    content: tuple[float, str, str]


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
        #: The newest event, as far as this store knows; None until it is open.
        self._known: ChainHead | None = None
        #: (time, kind, body, data) of the event on its way to the server.
        self._in_flight: tuple[float, str, str, bytes | None] | None = None
        #: That event, where the connection broke and it did arrive.
        self._arrived: ChainHead | None = None
        #: How far the chain was checked.
        self._checked = BEGINNING
        self._outdated = ""
        self._session = PostgresSession(
            self.address,
            readonly=readonly,
            prepare=self._prepare,
            on_refusal=self._forget_in_flight,
        )
        try:
            with self._session.use("open") as db:
                self._known = self._newest(db).chain
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
            patience = LOCK_PATIENCE
            if self._known is None:
                patience = 0.0
            take_lock(db, self.address, patience=patience)
        bring_up_to_date(db, self.address, self._readonly)
        if self._known is None or self._readonly:
            return
        newest = self._newest(db)
        if self._in_flight is None:
            sent = None
        else:
            sent = self._in_flight[:3]
        is_next = newest.chain.number == self._known.number + 1
        if is_next and newest.content == sent:
            self._arrived = newest.chain
        elif newest.chain != self._known:
            self._outdated = (
                f"{self.address} has {newest.chain.number} events where this process knows of "
                f"{self._known.number}"
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
        if self._arrived is not None:
            raise StoreError(
                f"event {self._arrived.number} of {self.address} was on its way when the "
                "connection was lost, and did arrive: read the events, or open the run again, "
                "before you add to them"
            )
        self._check_rest()

    def _check_rest(self) -> None:
        """Check what was not read yet, before the first event is written."""
        assert self._known is not None
        if self._checked.number < self._known.number:
            for page in self._pages(self._checked, self._known.number):
                self._checked = verify_rows(self._checked, page, self.address)

    # ------------------------------------------------------------------ writing

    def append(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> int:
        encoded_body = encode(body)
        _check_storable(kind)
        with self._session.use("write to") as db:
            if self._arrived is not None and self._was_sent(kind, encoded_body, data):
                return self._acknowledge(self._arrived)
            self._check_writable()
            with self._session.answering(db, len(encoded_body) + len(data or b"")):
                added = self._insert(db.cursor(), kind, encoded_body, data)
            return self._acknowledge(added)

    def _was_sent(self, kind: str, encoded_body: str, data: bytes | None) -> bool:
        """Whether an event is given again whose connection was lost at the first try."""
        return self._in_flight is not None and self._in_flight[1:] == (kind, encoded_body, data)

    def add_examples(self, ids: Sequence[str]) -> None:
        _check_storable(*ids)
        with self._session.use("write to") as db:
            self._check_writable()
            with db.transaction(), db.cursor() as cursor:
                cursor.execute("SELECT coalesce(max(position) + 1, 0) FROM examples")
                (first,) = _fetch_row(cursor)
                _copy(cursor, COPY_EXAMPLES, enumerate(ids, first))
                body = encode({"first": first, "count": len(ids)})
                added = self._insert(cursor, "examples", body, ids_digest(ids))
            self._acknowledge(added)

    def _insert(
        self,
        cursor: Cursor[Any],
        kind: str,
        encoded_body: str,
        data: bytes | None,
    ) -> ChainHead:
        assert self._known is not None
        self._in_flight = (time.time(), kind, encoded_body, data)
        row, added = next_row(self._known, *self._in_flight)
        cursor.execute(INSERT_EVENT, row)
        return added

    def _acknowledge(self, added: ChainHead) -> int:
        if self._checked == self._known:
            self._checked = added
        self._known = added
        self._in_flight = None
        self._arrived = None
        return added.number

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
                restored = BEGINNING

                def rows() -> Iterator[StoredRow]:
                    nonlocal restored
                    for event in events:
                        body = encode(event.body)
                        row, restored = next_row(restored, event.time, event.kind, body, event.data)
                        yield row

                _copy(cursor, COPY_EVENTS, rows())
                cursor.execute("UPDATE head SET number = %s, digest = %s", restored)
                verify()
            self._known = restored
            self._checked = restored

    # ------------------------------------------------------------------ reading

    def events(self, after: int = 0) -> Iterator[Event]:
        with self._session.use("read") as db:
            newest = self._newest(db).chain
            chain = self._chain_at(db, min(after, newest.number))
        for page in self._pages(chain, newest.number):
            before = chain
            chain = verify_rows(before, page, self.address)
            with self._session.lock:
                if self._checked == before:
                    self._checked = chain
            for row in page:
                # Another thread may have it acknowledged, and more written, meanwhile.
                with self._session.lock:
                    if self._arrived is not None and row[0] == self._arrived.number:
                        self._acknowledge(self._arrived)
                yield decode(row, self.address)

    def _chain_at(self, db: Connection[Any], number: int) -> ChainHead:
        """The chain up to an event, which is not checked."""
        if number <= 0:
            return BEGINNING
        row = db.execute(
            "SELECT number, digest FROM events WHERE number = %s", (number,)
        ).fetchone()
        if row is None:
            raise StoreDamaged(f"event {number} of {self.address} is lost; {ADVICE}")
        return ChainHead(*row)

    def _pages(self, chain: ChainHead, newest: int) -> Iterator[list[StoredRow]]:
        """The rows after a place of the chain: so many at once, or fewer where they are large. No
        transaction stays open between pages.
        """
        last = chain.number
        count = FIRST_PAGE_ROWS
        while last < newest:
            with self._session.use("read") as db, db.cursor(binary=True) as cursor:
                cursor.execute(READ_PAGE, (last, newest, count, PAGE_BYTES))
                page = cursor.fetchall()
            if not page:
                raise StoreDamaged(f"event {last + 1} of {self.address} is lost; {ADVICE}")
            yield page
            last = page[-1][0]
            count = min(4 * count, PAGE_ROWS)

    def find(self, kind: str) -> Iterator[Event]:
        with self._session.use("read") as db, db.cursor(binary=True) as cursor:
            cursor.execute(FIND_EVENTS, (kind,))
            rows = cursor.fetchall()
        for row in rows:
            number, seconds, kind, body, data, digest, digest_before = row
            before = ChainHead(number - 1, digest_before or BEGINNING.digest)
            stored = (number, seconds, kind, body, data, digest)
            verify_rows(before, [stored], self.address)
            yield decode(stored, self.address)

    def last(self) -> Event | None:
        with self._session.use("read") as db:
            newest_number = self._newest(db).chain.number
        if newest_number:
            return next(self.events(newest_number - 1), None)
        return None

    def examples(self) -> list[str]:
        with self._session.use("read") as db, _snapshot(db):
            rows = db.execute("SELECT id FROM examples ORDER BY position").fetchall()
            joined = list(self.find("examples"))
        ids = [example_id for (example_id,) in rows]
        check_ids(ids, joined, self.address)
        return ids

    def _newest(self, db: Connection[Any]) -> NewestEvent:
        """Raises StoreDamaged where it is not the one that the head knows."""
        with self._session.answering(db):
            row = db.execute(READ_NEWEST).fetchone()
        columns: tuple[Any, ...] = row or (None,) * 7
        number, seconds, kind, body, digest, head_number, head_digest = columns
        if number:
            newest = ChainHead(number, digest)
        else:
            newest = BEGINNING
        if tuple(newest) != (head_number, head_digest):
            raise StoreDamaged(
                f"{self.address} ends at event {newest.number} of {head_number or 0} that were "
                f"written; {ADVICE}"
            )
        return NewestEvent(newest, (seconds, kind, body))


@contextlib.contextmanager
def _snapshot(db: Connection[Any]) -> Iterator[None]:
    """What the block reads is of one moment."""
    in_transaction = db.info.transaction_status == driver().pq.TransactionStatus.INTRANS
    if in_transaction:  # it is the writer's own
        yield
        return
    with db.transaction():
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield


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
