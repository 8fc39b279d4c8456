"""The tables of a run in PostgreSQL, and how older ones are brought up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailor.storage.address import Address, driver
from tailor.storage.base import StoreError, StoreMissing

if TYPE_CHECKING:
    from psycopg import Connection

#: Each step brings a schema from version i to i + 1, in one transaction with the record of it. An
#: index entry holds no more than 2,700 bytes, so long ids are kept apart by their hash (and
#: compared in full).
MIGRATIONS = [
    """
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
    """,
]
VERSION = len(MIGRATIONS)

FIND_TABLES = """
    SELECT current_setting('server_encoding'),
        array(SELECT tablename::text FROM pg_tables WHERE schemaname = %s)
"""


def bring_up_to_date(db: Connection[Any], address: Address, readonly: bool) -> None:
    """Check that the run can be used, and for a writer make what is missing.

    Raises StoreMissing where there is nothing to read, and StoreError where the run is newer than
    this program, older than a reader can use, or no run at all.
    """
    version = _read_version(db, address)
    if version > VERSION:
        raise StoreError(
            f"{address} was written by a newer tailor (format {version}, this one knows "
            f"{VERSION}): upgrade"
        )
    if readonly and version == 0:
        raise StoreMissing(
            f"{address} does not exist: start a run with `tailor init`, or name the right one"
        )
    if readonly and version < VERSION:
        raise StoreError(
            f"{address} has format {version}: open it once for writing to bring it to {VERSION}"
        )
    sql = driver().sql
    for step in range(version, VERSION):
        with db.transaction():
            if step == 0:
                schema = sql.Identifier(address.schema)
                db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
            db.execute(MIGRATIONS[step])
            db.execute("UPDATE format SET version = %s", (step + 1,))


def _read_version(db: Connection[Any], address: Address) -> int:
    """The version of a run's tables; 0 where there are none yet."""
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
    return int(version_row[0]) if version_row else 0
