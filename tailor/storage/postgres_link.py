"""A connection to PostgreSQL that is fit for a run, its writer's lock, and errors in words that say
what to do.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from tailor.storage.address import Address, driver
from tailor.storage.base import Away, Busy, StoreError

#: A vanished machine is noticed by both sides within a minute, and its lock is free again.
#: Keepalives say nothing while something that was sent is not acknowledged: without a limit of its
#: own that would last for a quarter of an hour.
PATIENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
#: seconds to connect again for someone who waits
AGAIN = 3
SESSION = """
    SELECT set_config('search_path', quote_ident(%(schema)s), false),
        set_config('default_transaction_read_only', %(readonly)s, false),
        set_config('synchronous_commit',
            CASE current_setting('synchronous_commit')
                WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END,
            false),
        set_config('tcp_keepalives_idle', '30', false),
        set_config('tcp_keepalives_interval', '10', false),
        set_config('tcp_keepalives_count', '3', false)
"""
HOLDER = """
    SELECT pid, application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND objsubid = 1
        AND pg_locks.database = pg_stat_activity.datid
        AND datname = current_database() AND (classid::bigint << 32) | objid::bigint = %s
"""


def connect(address: Address, readonly: bool, again: bool = False) -> Any:
    """A connection where every statement commits by itself, and safely, before it returns."""
    psycopg = driver()
    patience = PATIENCE | ({"connect_timeout": AGAIN} if again else {})
    fixed = {"application_name": who(), "client_encoding": "UTF8", "autocommit": True}
    db = None
    try:
        db = psycopg.connect(**{**patience, **address.settings, **fixed})
        db.execute(SESSION, {"schema": address.schema, "readonly": "on" if readonly else "off"})
        return db
    except psycopg.Error as error:
        if db is not None:
            db.close()
        raise explained(error, "open", address, Away) from None


@contextlib.contextmanager
def hanging_up(db: Any, after: float) -> Iterator[None]:
    """A server that is there and says nothing would be waited for without end: the line is cut,
    which is an error.
    """

    def hang_up() -> None:
        with (
            contextlib.suppress(OSError, driver().Error),
            socket.socket(fileno=os.dup(db.fileno())) as line,
        ):
            line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(after, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def who() -> str:
    return f"tailor on {platform.node()[:30]}, process {os.getpid()}"


def take_lock(db: Any, address: Address, patience: float) -> None:
    """Only one session may write. The server lets go of the lock when that session ends, however it
    ends.
    """
    digest = hashlib.sha256(address.schema.encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    until = time.monotonic() + patience
    while not db.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()[0]:
        if time.monotonic() >= until:
            break
        time.sleep(0.02)
    else:
        return
    row = db.execute(HOLDER, (key,)).fetchone()
    holder = (
        f"{row[1] or 'another program'} (server process {row[0]})" if row else "another process"
    )
    raise Busy(f"{address} is in use by {holder}: wait for it or stop it; nothing was changed")


def let_go(db: Any) -> None:
    """Give the lock back now: the server notices only some time later that a session has ended."""
    import psycopg

    with contextlib.suppress(psycopg.Error):  # the connection is lost, and the lock with it
        db.execute("SELECT pg_advisory_unlock_all()")


def explained(
    error: Any, what: str, address: Address, kind: type[StoreError] = StoreError
) -> StoreError:
    said = [error.diag.message_primary, error.diag.message_detail]
    text = address.hide(". ".join(part for part in said if part) or str(error))
    text = text if len(text) < 500 else text[:500] + " ..."
    advice = ADVICE.get(error.sqlstate or "") or next(
        (say for sign, say in SIGNS.items() if sign in text), None
    )
    return kind(f"can't {what} {address}: {text}; {advice or 'see the message'}")


ADVICE = {
    "23505": "an id is there already",
    "23P01": "an id is there already",
    "25006": "that server is a read-only copy: name the primary",
    "3F000": "the run is gone: was its schema dropped?",
    "42P01": "the run is gone: was its schema dropped?",
    "42501": "ask for the right: GRANT CREATE ON DATABASE to begin a run, and the tables' own "
    "rights to read or go on",
    "53100": "free some space on the server and go on, nothing acknowledged is lost",
    "53300": "the server has no connection left: close some, or raise max_connections",
    "57P03": "the server is starting or stopping: try again in a moment",
}
#: where a connection fails before the server gives a code
SIGNS = {
    "password": "check user and password; PGPASSWORD or ~/.pgpass keep it out of the URL",
    "pg_hba": "the server lets that user in from elsewhere only: see its pg_hba.conf",
    "starting up": "try again in a moment",
    "shutting down": "try again in a moment",
    "does not exist": "check the names; a database is made with `createdb NAME`",
    "resolve host": "check the name of the host",
    "connection": "check that the server runs and that its address is right",
}
