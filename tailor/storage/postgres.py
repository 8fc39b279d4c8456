"""The store in PostgreSQL, for a team: a run is a schema of its own, as elsewhere it is a file of
its own.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tailor.errors import InputError
from tailor.storage.address import Address, driver
from tailor.storage.base import (
    Away,
    Event,
    Store,
    StoreError,
    check_empty,
    check_text,
    decode,
    encode,
)
from tailor.storage.postgres_link import connect, explained, hanging_up, let_go, take_lock
from tailor.storage.postgres_schema import bring_up_to_date

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

#: bytes and number of the events that are read at once
PAGE = 16 << 20
ROWS = 4096
#: seconds in which the server must have taken an event; bytes a second that any line can carry; and
#: seconds after which a failure comes too late to be tried again at once
PATIENCE, SLOWEST, QUICK = 5.0, 100_000, 1.0


class PostgresStore(Store):
    """One session writes, by an advisory lock; the server has flushed an event to disk before
    append() returns.

    A lost connection is an error (Away); the next call connects again. It writes on if the lock
    could be had again and the events are those that this store knows of: whoever holds an outdated
    picture of the run must not add to it. After a call that waited in vain the others fail at once,
    for as long as it had waited: a crowd is not held up.
    """

    def __init__(self, url: str, run: str | None = None, *, readonly: bool = False) -> None:
        self.address = Address.parse(url, run)
        self._readonly = readonly
        self._closed = False
        self._mutex = threading.RLock()  # threads share the connection: one transaction at a time
        self._db: Connection[Any] | None = None
        self._known: int | None = (
            None  # the newest event's number, as far as this store knows; None: not opened yet
        )
        self._sent: tuple[float, str, str, bytes | None] | None = (
            None  # the event on its way to the server
        )
        self._unread = 0  # its number, where the connection broke and it did arrive
        self._outdated = ""
        self._rest_until = 0.0
        self._why_away = ""
        try:
            with self._session("open") as db:
                self._known = self._newest(db)[0]
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ connection

    @contextlib.contextmanager
    def _session(self, what: str) -> Iterator[Connection[Any]]:
        """The connection, for one thread at a time; a new one where it was lost; its errors in
        words.
        """
        with self._mutex:
            if self._closed:
                raise StoreError(f"{self.address} is closed")
            with self._not_in_vain_again():
                if self._db is None or self._db.closed:
                    self._db = connect(self.address, self._readonly, again=self._known is not None)
                    with _closed_if_it_fails(self._db), self._explained("open", self._db):
                        self._begin(self._db)
                with self._explained(what, self._db):
                    yield self._db

    @contextlib.contextmanager
    def _not_in_vain_again(self) -> Iterator[None]:
        began = time.monotonic()
        connected = self._db is not None and not self._db.closed
        if began < self._rest_until and not connected:
            raise Away(self._why_away)
        try:
            yield
        except Away as error:
            waited = time.monotonic() - began
            if waited > QUICK:
                self._rest_until = time.monotonic() + min(waited, PATIENCE)
                self._why_away = str(error)
            raise

    @contextlib.contextmanager
    def _explained(self, what: str, db: Connection[Any]) -> Iterator[None]:
        try:
            yield
        except driver().Error as error:
            if not db.closed and (error.sqlstate or "")[:3] not in ("57P", "080"):
                self._sent = None  # the server said no
                raise explained(error, what, self.address) from None
            db.close()
            raise Away(
                f"the connection to {self.address} was lost ({self.address.hide(str(error))}): "
                "the next call connects "
                "again; what was acknowledged is safe, what was on its way may have arrived"
            ) from None
        except Exception:
            raise
        except BaseException:  # Ctrl-C in the middle of a conversation: begin another
            db.close()
            raise

    def _begin(self, db: Connection[Any]) -> None:
        if not self._readonly:
            # After a loss the server may need a moment to notice that the session before has ended.
            take_lock(db, self.address, patience=0.0 if self._known is None else 1.0)
        bring_up_to_date(db, self.address, self._readonly)
        if self._known is None or self._readonly:
            return
        number, *event = self._newest(db)
        if self._sent and number == self._known + 1 and tuple(event) == self._sent[:3]:
            self._unread = number
        elif number != self._known:
            self._outdated = (
                f"{self.address} has {number} events where this process knows of {self._known}"
            )

    def _check_writable(self) -> None:
        if self._readonly:
            raise StoreError(f"{self.address} was opened for reading only")
        if self._outdated:
            raise StoreError(
                f"{self._outdated}: it was written to while the connection was lost; open the "
                "run again"
            )
        if self._unread:
            raise StoreError(
                f"event {self._unread} of {self.address} was on its way when the connection was "
                "lost, and did arrive: "
                "read the events, or open the run again, before you add to them"
            )

    def close(self) -> None:
        with self._mutex:
            self._closed = True
            if self._db is not None:
                let_go(self._db)
                self._db.close()

    # ------------------------------------------------------------------ writing

    def append(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> int:
        text = encode(body)
        _check_storable(kind)
        with self._session("write to") as db:
            if self._unread and self._sent and self._sent[1:] == (kind, text, data):
                return self._acknowledged(self._unread)  # given again after an error: it did arrive
            self._check_writable()
            with hanging_up(db, PATIENCE + (len(text) + len(data or b"")) / SLOWEST):
                return self._acknowledged(self._insert(db.cursor(), kind, text, data))

    def add_examples(self, ids: Sequence[str]) -> None:
        _check_storable(*ids)
        with self._session("write to") as db:
            self._check_writable()
            with db.transaction(), db.cursor() as cursor:
                (first,) = _one(
                    cursor.execute("SELECT coalesce(max(position) + 1, 0) FROM examples")
                )
                _copy(cursor, "COPY examples (position, id) FROM STDIN", enumerate(ids, first))
                number = self._insert(
                    cursor, "examples", encode({"first": first, "count": len(ids)}), None
                )
            self._acknowledged(number)

    def _insert(self, cursor: Cursor[Any], kind: str, body: str, data: bytes | None) -> int:
        """One writer and the largest number plus one: a number that was rolled back is given
        again.
        """
        self._sent = (time.time(), kind, body, data)
        insert = (
            "INSERT INTO events (number, time, kind, body, data) "
            "SELECT coalesce(max(number), 0) + 1, %s, %s, %s, %s FROM events RETURNING number"
        )
        return int(_one(cursor.execute(insert, self._sent))[0])

    def _acknowledged(self, number: int) -> int:
        self._known = number
        self._sent = None
        self._unread = 0
        return number

    def restore(
        self, ids: Sequence[str], events: Iterable[Event], verify: Callable[[], None]
    ) -> None:
        _check_storable(*ids)
        with self._session("write to") as db:
            self._check_writable()
            with db.transaction(), db.cursor() as cursor:
                check_empty(self, self.address)
                _copy(cursor, "COPY examples (position, id) FROM STDIN", enumerate(ids))
                rows = ((e.number, e.time, e.kind, encode(e.body), e.data) for e in events)
                _copy(cursor, "COPY events (number, time, kind, body, data) FROM STDIN", rows)
                verify()
            self._known = self._newest(db)[0]

    # ------------------------------------------------------------------ reading

    def events(self, after: int = 0) -> Iterator[Event]:
        with self._session("read") as db:
            upto = self._newest(db)[0]
        rows = 8  # few at first: often only the first event is wanted
        while after < upto and (page := self._page(after, upto, rows)):
            for event in page:
                with (
                    self._mutex
                ):  # another thread may have it acknowledged, and more written, meanwhile
                    if event.number == self._unread:
                        self._acknowledged(event.number)
                yield event
            after = page[-1].number
            rows = min(4 * rows, ROWS)

    def _page(self, after: int, upto: int, rows: int) -> list[Event]:
        """The next events: so many, or fewer where they are large. No transaction stays open
        between pages.
        """
        find = """
            SELECT number, time, kind, body, data FROM (
                SELECT *, sum(octet_length(body) + coalesce(octet_length(data), 0))
                    OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes
                FROM (
                    SELECT * FROM events WHERE number > %s AND number <= %s ORDER BY number LIMIT %s
                ) AS chosen
            ) AS sized WHERE coalesce(bytes, 0) < %s ORDER BY number
        """
        with self._session("read") as db, db.cursor(binary=True) as cursor:
            found = cursor.execute(find, (after, upto, rows, PAGE)).fetchall()
        return [decode(row, self.address) for row in found]

    def last(self) -> Event | None:
        with self._session("read") as db:
            upto = self._newest(db)[0]
        return next(self.events(upto - 1), None) if upto else None

    def examples(self) -> list[str]:
        with self._session("read") as db:
            return [
                one for (one,) in db.execute("SELECT id FROM examples ORDER BY position").fetchall()
            ]

    def _newest(self, db: Connection[Any]) -> tuple[Any, ...]:
        """(number, time, kind, body) of the last event; number 0 where there is none."""
        with hanging_up(db, PATIENCE):
            found = db.execute(
                "SELECT number, time, kind, body FROM events ORDER BY number DESC LIMIT 1"
            ).fetchone()
        return found or (0, 0.0, "", "")


@contextlib.contextmanager
def _closed_if_it_fails(db: Connection[Any]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        db.close()
        raise


def _copy(cursor: Cursor[Any], statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
    with cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def _one(cursor: Cursor[Any]) -> tuple[Any, ...]:
    row = cursor.fetchone()
    assert row is not None
    return tuple(row)


def _check_storable(*texts: str) -> None:
    check_text(*texts)
    bad = next((text for text in texts if "\0" in text), None)
    if bad is not None:
        raise InputError(
            f"{bad!r} holds a NUL character, which PostgreSQL can't store: rename it, or keep "
            "the run in SQLite; "
            "nothing was changed"
        )
