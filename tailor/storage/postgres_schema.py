"""What a run looks like in PostgreSQL, and how an older one is brought up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailor.storage.address import Address, driver
from tailor.storage.base import Missing, StoreError

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


def bring_up_to_date(db: Connection[Any], address: Address, readonly: bool) -> None:
    """Check that the run can be used, and for a writer make what is missing."""
    version = _version(db, address)
    if version > VERSION:
        known = f"format {version}, this one knows {VERSION}"
        raise StoreError(f"{address} was written by a newer tailor ({known}): upgrade")
    if readonly and version == 0:
        raise Missing(
            f"{address} does not exist: start a run with `tailor init`, or name the right one"
        )
    if readonly and version < VERSION:
        raise StoreError(
            f"{address} has format {version}: open it once for writing to bring it to {VERSION}"
        )
    for step in range(version, VERSION):
        with db.transaction():
            if step == 0:
                sql = driver().sql
                db.execute(
                    sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(address.schema))
                )
            db.execute(MIGRATIONS[step])
            db.execute("UPDATE format SET version = %s", (step + 1,))


def _version(db: Connection[Any], address: Address) -> int:
    """0 where there is nothing yet."""
    found = db.execute(
        "SELECT current_setting('server_encoding'), array(SELECT tablename::text FROM pg_tables "
        "WHERE schemaname = %s)",
        (address.schema,),
    ).fetchone()
    assert found is not None
    encoding, tables = found
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
    sql = (
        driver().sql
    )  # in full: without the right to use the schema, the search path would pass it over
    row = db.execute(
        sql.SQL("SELECT version FROM {}").format(sql.Identifier(address.schema, "format"))
    ).fetchone()
    return int(row[0]) if row else 0
