"""Runs of earlier formats, brought up to date: a backup first, then one transaction."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailor.common.operating_system import check_operating_system
from tailor.storage import postgres_schema, sqlite_schema
from tailor.storage.address import Address, driver, is_url
from tailor.storage.base import StoreDamaged, StoreError, StoreMissing
from tailor.storage.chain import BEGINNING
from tailor.storage.network_disks import check_local_disk
from tailor.storage.postgres_connection import connect as connect_to_server
from tailor.storage.postgres_connection import explained, release_lock
from tailor.storage.postgres_connection import take_lock as take_server_lock
from tailor.storage.run_head import HeadWriter
from tailor.storage.sqlite_file import (
    connect,
    explained_errors,
    integrity_problems,
    newest_event,
    sha256_of,
)
from tailor.storage.writer_lock import take_lock

OLD_EVENTS = "SELECT number, time, kind, body, data FROM events ORDER BY number"
OLD_EXAMPLES = "SELECT position, id FROM examples ORDER BY position"
#: Of SQLite and of PostgreSQL: they count together.
VERSION = sqlite_schema.VERSION
assert VERSION == postgres_schema.VERSION


@dataclass(frozen=True)
class Upgrade:
    """What was done: the formats before and after, equal where nothing was; the number of events;
    and the file that holds the run as it was, None where nothing was done.
    """

    before: int
    after: int
    events: int
    backup: Path | None


def upgrade(place: str | Path, backup: Path, *, run: str | None = None) -> Upgrade:
    """Bring the run at a place to today's format.

    backup  a file that is not there: the run as it was, in SQLite, is written to it before anything
            is changed
    run     the name of the run, where the URL names none

    Raises StoreMissing where there is no run, StoreBusy where another process writes to it,
    StoreDamaged where something in it is lost, and StoreError where it is newer than this program.
    Nothing was changed then.
    """
    check_operating_system()
    if is_url(place):
        return _upgrade_schema(Address.parse(str(place), run), backup)
    return _upgrade_file(Path(place), backup)


def _upgrade_file(path: Path, backup: Path) -> Upgrade:
    file = path.resolve()
    if not file.exists():
        raise StoreMissing(f"{path} does not exist: name the folder of a run")
    check_local_disk(file)
    lock = take_lock(file)
    try:
        with explained_errors("upgrade", path), contextlib.closing(connect(file, "ro")) as db:
            version = sqlite_schema.read_version(db, path)
            if version == 0:
                raise StoreMissing(f"{path} is empty: there is no run in it")
            if version == VERSION:
                return Upgrade(version, version, newest_event(db).number, None)
            problems = integrity_problems(db)
            if problems:
                raise StoreDamaged(f"{path} is damaged: {problems[0]}; nothing was changed")
            with contextlib.closing(connect(backup, "rwc")) as target:
                db.backup(target)
        _flush(backup)
        with explained_errors("upgrade", path):
            events = _migrate_file(file, version)
        return Upgrade(version, VERSION, events, backup)
    finally:
        os.close(lock)


def _migrate_file(file: Path, version: int) -> int:
    """-> the number of events."""
    head_writer = HeadWriter(file)
    try:
        # Before the file has the new format: without a head it would count as damaged.
        if head_writer.head is None:
            head_writer.write(BEGINNING, durable=True)
        with contextlib.closing(connect(file, "rwc")) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            with sqlite_schema.transaction(db):
                sqlite_schema.migrate(db, version)
            newest = newest_event(db)
            _, in_log, moved = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if in_log == moved:
            head_writer.write(newest, sha256_of(file), durable=True)
        return newest.number
    finally:
        head_writer.close()


def _upgrade_schema(address: Address, backup: Path) -> Upgrade:
    connection = connect_to_server(address, readonly=False)
    try:
        take_server_lock(connection, address, patience=0.0)
        version = postgres_schema.read_version(connection, address)
        if version == 0:
            raise StoreMissing(f"{address} does not exist: there is no run in it")
        (events,) = connection.execute("SELECT count(*) FROM events").fetchone()
        if version == VERSION:
            return Upgrade(version, version, events, None)
        _copy_to_file(connection, backup, version)
        with connection.transaction():
            postgres_schema.migrate(connection, version)
        return Upgrade(version, VERSION, events, backup)
    except driver().Error as error:
        raise explained(error, "upgrade", address) from None
    finally:
        release_lock(connection)
        connection.close()


def _copy_to_file(connection: Any, backup: Path, version: int) -> None:
    """Write a run of PostgreSQL to a new SQLite file of the same format."""
    if version != 1:
        raise StoreError(f"a backup of format {version} can't be made by this tailor")
    with explained_errors("write to", backup), contextlib.closing(connect(backup, "rwc")) as db:
        db.execute("PRAGMA synchronous = FULL")
        with sqlite_schema.transaction(db):
            sqlite_schema.make_first_tables(db)
            with connection.transaction(), connection.cursor("backup", binary=True) as rows:
                rows.execute(OLD_EVENTS)
                _insert(db, "INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
            with connection.transaction(), connection.cursor("backup", binary=True) as rows:
                rows.execute(OLD_EXAMPLES)
                _insert(db, "INSERT INTO examples VALUES (?, ?)", rows)
            db.execute(f"PRAGMA application_id = {sqlite_schema.APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {version}")


def _insert(db: sqlite3.Connection, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
    db.executemany(statement, rows)


def _flush(file: Path) -> None:
    handle = os.open(file, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
