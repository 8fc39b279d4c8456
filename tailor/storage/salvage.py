"""What is whole in a damaged store: every event that is what was written, and every id."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tailor.storage.address import Address, driver, is_url
from tailor.storage.base import Event, StoreDamaged
from tailor.storage.chain import BEGINNING, event_digest, ids_digest, is_whole
from tailor.storage.postgres_connection import connect as connect_to_server
from tailor.storage.postgres_connection import explained
from tailor.storage.run_head import head_path, read_head
from tailor.storage.sqlite_file import connect

COLUMNS = "number, time, kind, body, data, digest"
OLD_COLUMNS = "number, time, kind, body, data, NULL"
#: Of an event without a row, or of an id that can't be read.
UNREADABLE = "it can't be read"
#: Of an event whose predecessor can't be read.
UNCHECKED = "it can't be checked, as the one before it can't be read"
CHANGED = "it is not what was written"

#: (number, time, kind, body, data, digest), of any types: they may be damaged
Row = Sequence[Any]


@dataclass(frozen=True)
class Loss:
    """Something that is not whole.

    number  of the event
    kind    of the event as far as it can be read; empty where it can't
    reason  what is wrong with it
    """

    number: int
    kind: str
    reason: str


@dataclass
class WholeParts:
    """What is whole in a store.

    events  by number
    losses  the other events, in order
    newest  the highest number that was written, as far as that is known
    ids     of all examples, by position; None where one can't be read
    """

    events: dict[int, Event] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    newest: int = 0
    ids: list[str | None] = field(default_factory=list)


def read_whole_parts(place: str | Path, run: str | None = None) -> WholeParts:
    """Read all that can be read of a store, whatever is wrong with it; it is not changed.

    Raises StoreDamaged where nothing can be read.
    """
    if is_url(place):
        address = Address.parse(str(place), run)
        rows, newest, ids = _read_schema(address)
    else:
        rows, newest, ids = _read_file(Path(place))
    if not rows:
        raise StoreDamaged(f"no event can be read in {place}: bring a backup back")
    newest_read = max(rows)
    parts = WholeParts(newest=max(newest, newest_read), ids=ids)
    _sort_out(rows, parts)
    return parts


def _sort_out(rows: dict[int, Row], parts: WholeParts) -> None:
    """Tell events that are whole from those that are not."""
    previous: bytes | None = BEGINNING.digest
    for number in range(1, parts.newest + 1):
        row = rows.get(number)
        if row is None:
            loss = Loss(number, "", UNREADABLE)
            parts.losses.append(loss)
            previous = None
            continue
        *_, digest = row
        if previous is None:
            loss = Loss(number, _readable_kind(row), UNCHECKED)
            parts.losses.append(loss)
        elif is_whole(previous, row):
            parts.events[number] = _event(row)
        elif _only_digest_is_damaged(previous, row, rows.get(number + 1)):
            parts.events[number] = _event(row)
            digest = _digest(previous, row)
        else:
            loss = Loss(number, _readable_kind(row), CHANGED)
            parts.losses.append(loss)
        if isinstance(digest, bytes):
            previous = digest
        else:
            previous = None


def _event(row: Row) -> Event:
    number, time, kind, stored_body, data, _ = row
    body = json.loads(stored_body)
    return Event(number, time, kind, body, data)


def _digest(previous: bytes, row: Row) -> bytes:
    try:
        return event_digest(previous, *row[:5])
    except Exception:  # whatever a damaged row may hold
        return b""


def _only_digest_is_damaged(previous: bytes, row: Row, following: Row | None) -> bool:
    """Whether the event after it vouches for an event whose own checksum is wrong."""
    digest = _digest(previous, row)
    if not digest or following is None:
        return False
    return is_whole(digest, following)


def _readable_kind(row: Row) -> str:
    kind = row[2]
    if isinstance(kind, str):
        return kind
    return ""


# ---------------------------------------------------------------------- SQLite


def _read_file(path: Path) -> tuple[dict[int, Row], int, list[str | None]]:
    """(rows by number, the highest number known, ids)"""
    file = path.resolve()
    newest = 0
    head = read_head(head_path(file))
    if head is not None:
        newest = head.chain.number
    if not file.exists() or file.stat().st_size == 0:
        return {}, newest, []
    with contextlib.closing(connect(file, "ro")) as db:
        highest = _highest(db, "number", "events")
        newest = max(newest, highest)
        has_digests = _has_digests(db)
        if has_digests:
            columns = COLUMNS
        else:
            columns = OLD_COLUMNS
        query = f"SELECT {columns} FROM events WHERE number"
        rows = {}
        for row in _readable_rows(db, query, 1, newest):
            number = int(row[0])
            rows[number] = row
        last_position = _highest(db, "position", "examples")
        query = "SELECT position, id FROM examples WHERE position"
        id_rows = dict(_readable_rows(db, query, 0, last_position))
    ids = _ids_by_position(id_rows)
    if not has_digests:
        rows = _with_digests(rows, ids)
    return rows, newest, ids


def _has_digests(db: sqlite3.Connection) -> bool:
    """Whether events carry checksums; those of format 1 do not."""
    try:
        db.execute("SELECT digest FROM events LIMIT 0")
    except sqlite3.Error as error:
        return "no such column" not in str(error)
    return True


def _with_digests(rows: dict[int, Row], ids: Sequence[str | None]) -> dict[int, Row]:
    """Rows of format 1, taken as they are where they can be understood, with the checksums that
    they would have.
    """
    previous = BEGINNING.digest
    with_digests: dict[int, Row] = {}
    for number, row in sorted(rows.items()):
        _, time, kind, stored_body, data, _ = row
        try:
            body = json.loads(stored_body)
            if kind == "examples":
                first = body["first"]
                end = first + body["count"]
                names = [str(name) for name in ids[first:end]]
                data = ids_digest(names)
            digest = event_digest(previous, row[0], time, kind, stored_body, data)
        except Exception:  # whatever a damaged row may hold
            continue
        with_digests[number] = (row[0], time, kind, stored_body, data, digest)
        previous = digest
    return with_digests


def _ids_by_position(id_rows: dict[int, Any]) -> list[str | None]:
    """The ids up to the last position that has one; None where one can't be read."""
    last = max(id_rows, default=-1)
    ids = []
    for position in range(last + 1):
        value = id_rows.get(position)
        if not isinstance(value, str):
            value = None
        ids.append(value)
    return ids


def _highest(db: sqlite3.Connection, column: str, table: str) -> int:
    try:
        (highest,) = db.execute(f"SELECT max({column}) FROM {table}").fetchone()
    except (sqlite3.Error, UnicodeDecodeError):
        return 0
    # No run has so many: a damaged number would be counted up to for ever.
    if isinstance(highest, int) and highest < 1 << 32:
        return highest
    return 0


def _readable_rows(db: sqlite3.Connection, query: str, first: int, last: int) -> Iterator[Any]:
    """The rows from a number to another that can be read: all in one go, and one by one from where
    that breaks off.
    """
    following = first
    try:
        for row in db.execute(f"{query} BETWEEN ? AND ?", (first, last)):
            number = row[0]
            if isinstance(number, int) and following <= number <= last:
                following = number + 1
                yield row
        return
    except (sqlite3.Error, UnicodeDecodeError):
        pass
    for number in range(following, last + 1):
        with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):
            row = db.execute(f"{query} = ?", (number,)).fetchone()
            if row is not None and row[0] == number:
                yield row


# ---------------------------------------------------------------------- PostgreSQL


def _read_schema(address: Address) -> tuple[dict[int, Row], int, list[str | None]]:
    connection = connect_to_server(address, readonly=True)
    try:
        with connection.transaction(), connection.cursor(binary=True) as cursor:
            cursor.execute("SELECT number FROM head")
            (newest,) = cursor.fetchone() or (0,)
            cursor.execute(f"SELECT {COLUMNS} FROM events ORDER BY number")
            rows = {row[0]: row for row in cursor.fetchall()}
            cursor.execute("SELECT position, id FROM examples ORDER BY position")
            id_rows = dict(cursor.fetchall())
    except driver().Error as error:
        raise explained(error, "read", address) from None
    finally:
        connection.close()
    return rows, newest, _ids_by_position(id_rows)


def placeholder_id(position: int) -> str:
    """What stands where an id can't be read: positions after it stay what they are."""
    return f"(lost example {position})"


def with_digests_of(events: Sequence[Event], ids: Sequence[str]) -> tuple[list[Event], list[Loss]]:
    """Events whose checksums of ids are those of these ids; a loss for each that was another."""
    kept = []
    losses = []
    for event in events:
        if event.kind == "examples":
            first = event.body["first"]
            end = first + event.body["count"]
            digest = ids_digest(ids[first:end])
            if digest != event.data:
                reason = f"of the ids of examples {first} to {end - 1} some are lost or changed"
                loss = Loss(event.number, event.kind, reason)
                losses.append(loss)
                event = Event(event.number, event.time, event.kind, event.body, digest)
        kept.append(event)
    return kept, losses
