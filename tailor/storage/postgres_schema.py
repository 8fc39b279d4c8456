"""The tables of a run in PostgreSQL, and how older ones are brought up to date."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tailor.storage.address import Address, driver
from tailor.storage.base import StoreError, StoreMissing, StoreOutdated
from tailor.storage.chain import BEGINNING, ids_digest, next_row
from tailor.storage.old_events import check_old_events

if TYPE_CHECKING:
    from psycopg import Connection

#: An index entry holds no more than 2,700 bytes, so long ids are kept apart by their hash (and
#: compared in full).
TABLES = """
    CREATE TABLE format (version integer NOT NULL);
    INSERT INTO format VALUES (0);
    CREATE TABLE events (
        number bigint PRIMARY KEY, time double precision NOT NULL, kind text NOT NULL,
        body text NOT NULL, data bytea
    );
    CREATE TABLE examples (
        position bigint PRIMARY KEY, id text COLLATE "C" NOT NULL,
        EXCLUDE USING hash (id WITH =) WHERE (octet_length(id) > 2000)
    );
    CREATE UNIQUE INDEX examples_id ON examples (id) WHERE octet_length(id) <= 2000
"""
#: Rows that a migration reads and writes at once.
BATCH_ROWS = 1000


def _make_tables(db: Connection[Any]) -> None:
    db.execute(TABLES)


def _add_digests(db: Connection[Any]) -> None:
    """Format 2: each event carries a checksum, and the table `head` knows the newest event: where
    the last events were deleted, that is noticed.
    """
    db.execute("ALTER TABLE events ADD COLUMN digest bytea")
    db.execute("CREATE TABLE head (number bigint NOT NULL, digest bytea NOT NULL)")
    rows = db.execute("SELECT id FROM examples ORDER BY position").fetchall()
    ids = [example_id for (example_id,) in rows]
    head = BEGINNING
    update = "UPDATE events SET data = %s, digest = %s WHERE number = %s"
    with db.cursor("old_events", binary=True) as old_rows, db.cursor() as writer:
        old_rows.itersize = BATCH_ROWS
        old_rows.execute("SELECT number, time, kind, body, data FROM events ORDER BY number")
        changes = []
        for event in check_old_events(old_rows, len(ids)):
            data = event.data
            if event.kind == "examples":
                data = ids_digest(ids[event.first : event.end])
            row, head = next_row(head, event.time, event.kind, event.body, data)
            changes.append((data, row[-1], event.number))
            if len(changes) == BATCH_ROWS:
                writer.executemany(update, changes)
                changes.clear()
        if changes:
            writer.executemany(update, changes)
    db.execute("ALTER TABLE events ALTER COLUMN digest SET NOT NULL")
    db.execute("INSERT INTO head VALUES (%s, %s)", head)


#: Each step brings a schema from version i to i + 1, in one transaction with the record of it.
MIGRATIONS: list[Callable[[Connection[Any]], None]] = [_make_tables, _add_digests]
VERSION = len(MIGRATIONS)

FIND_TABLES = """
    SELECT current_setting('server_encoding'),
        array(SELECT tablename::text FROM pg_tables WHERE schemaname = %s)
"""


def bring_up_to_date(db: Connection[Any], address: Address, readonly: bool) -> None:
    """Check that the run can be used, and for a writer make the tables where there are none.

    Raises StoreMissing where there is nothing to read, StoreOutdated where the run has an earlier
    format, and StoreError where it is newer than this program, or no run at all.
    """
    version = read_version(db, address)
    if readonly and version == 0:
        raise StoreMissing(
            f"{address} does not exist: start a run with `tailor init`, or name the right one"
        )
    if 0 < version < VERSION:
        raise StoreOutdated(address, version, VERSION)
    if version == 0:
        with db.transaction():
            sql = driver().sql
            schema = sql.Identifier(address.schema)
            db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
            migrate(db, 0)


def migrate(db: Connection[Any], version: int) -> None:
    """Bring a schema from a version to today's, inside the caller's transaction."""
    for step in range(version, VERSION):
        MIGRATIONS[step](db)
    db.execute("UPDATE format SET version = %s", (VERSION,))


def read_version(db: Connection[Any], address: Address) -> int:
    """The version of a run's tables; 0 where there are none yet.

    Raises StoreError where they are another program's, or newer than this one.
    """
    row = db.execute(FIND_TABLES, (address.schema,)).fetchone()
    assert row is not None
    encoding, tables = row
    if encoding != "UTF8":
        raise StoreError(
            f"{address} has encoding {encoding}: make a database by `createdb -E UTF8 -T "
            "template0 NAME`"
        )
    if not tables:
        return 0
    if "format" not in tables:
        raise StoreError(
            f"{address}: its schema {address.schema!r} is not a run of tailor: name another run"
        )
    sql = driver().sql
    # With the schema's name: without the right to use it, the search path would pass it over.
    table = sql.Identifier(address.schema, "format")
    version_row = db.execute(sql.SQL("SELECT version FROM {}").format(table)).fetchone()
    if version_row:
        version = int(version_row[0])
    else:
        version = 0
    if version > VERSION:
        raise StoreError(
            f"{address} was written by a newer tailor (format {version}, this one knows "
            f"{VERSION}): upgrade"
        )
    return version
