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
from tailor.storage.base import StoreBusy, StoreError, StoreUnreachable

#: Settings of a connection, in seconds and milliseconds. A vanished machine is noticed by both
#: sides within a minute, and its lock is free again. Keepalives say nothing while something that
#: was sent is not acknowledged: without tcp_user_timeout that would last for a quarter of an hour.
TIMEOUTS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
#: Seconds to connect again for someone who waits.
RECONNECT_SECONDS = 3
SET_UP_SESSION = """
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
FIND_LOCK_HOLDER = """
    SELECT pid, application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND objsubid = 1
        AND pg_locks.database = pg_stat_activity.datid
        AND datname = current_database() AND (classid::bigint << 32) | objid::bigint = %s
"""
#: Characters of the server's own words in a message.
LONGEST_REASON = 500


def connect(address: Address, readonly: bool, again: bool = False) -> Any:
    """A psycopg connection where every statement commits by itself, and safely, before it returns.

    again  whether this connection takes the place of a lost one: someone waits for it

    Raises StoreUnreachable where it can't be made.
    """
    psycopg = driver()
    timeouts = dict(TIMEOUTS)
    if again:
        timeouts["connect_timeout"] = RECONNECT_SECONDS
    # The URL may change the timeouts, but not these.
    fixed = {"application_name": process_name(), "client_encoding": "UTF8", "autocommit": True}
    connection = None
    try:
        connection = psycopg.connect(**{**timeouts, **address.settings, **fixed})
        session = {"schema": address.schema, "readonly": "off"}
        if readonly:
            session["readonly"] = "on"
        connection.execute(SET_UP_SESSION, session)
        return connection
    except psycopg.Error as error:
        if connection is not None:
            connection.close()
        raise explained(error, "open", address, StoreUnreachable) from None


@contextlib.contextmanager
def hanging_up_after(connection: Any, seconds: float) -> Iterator[None]:
    """Cuts the line where the block takes longer, which is an error in it: a server that is there
    and says nothing would be waited for without end.
    """

    def hang_up() -> None:
        with (
            contextlib.suppress(OSError, driver().Error),
            socket.socket(fileno=os.dup(connection.fileno())) as line,
        ):
            line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def process_name() -> str:
    """How this process is named to others that find a run in use."""
    return f"tailor on {platform.node()[:30]}, process {os.getpid()}"


def take_lock(connection: Any, address: Address, patience: float) -> None:
    """Take the writer's lock of a run. The server lets go of it when the session ends, however it
    ends.

    patience  seconds to wait for it

    Raises StoreBusy, which names the holder.
    """
    digest = hashlib.sha256(address.schema.encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    deadline = time.monotonic() + patience
    while not connection.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()[0]:
        if time.monotonic() >= deadline:
            break
        time.sleep(0.02)
    else:
        return
    row = connection.execute(FIND_LOCK_HOLDER, (key,)).fetchone()
    holder = "another process"
    if row:
        server_process, application = row
        holder = f"{application or 'another program'} (server process {server_process})"
    raise StoreBusy(f"{address} is in use by {holder}: wait for it or stop it; nothing was changed")


def release_lock(connection: Any) -> None:
    """Give the lock back now: the server notices only some time later that a session has ended."""
    with contextlib.suppress(driver().Error):  # the connection is lost, and the lock with it
        connection.execute("SELECT pg_advisory_unlock_all()")


def explained(
    error: Any,
    action: str,
    address: Address,
    kind: type[StoreError] = StoreError,
) -> StoreError:
    """An error of psycopg as one of ours, with advice.

    action  what could not be done, such as "write to"
    """
    server_words = []
    for words in (error.diag.message_primary, error.diag.message_detail):
        if words:
            server_words.append(words)
    reason = ". ".join(server_words) or str(error)
    reason = address.hide_password(reason)
    if len(reason) >= LONGEST_REASON:
        reason = reason[:LONGEST_REASON] + " ..."
    advice = ADVICE_BY_CODE.get(error.sqlstate or "") or _advice_by_words(reason)
    return kind(f"can't {action} {address}: {reason}; {advice}")


def _advice_by_words(reason: str) -> str:
    for words, advice in ADVICE_BY_WORDS.items():
        if words in reason:
            return advice
    return "see the message"


#: By SQLSTATE.
ADVICE_BY_CODE = {
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
#: By words in the message, where a connection fails before the server gives a code.
ADVICE_BY_WORDS = {
    "password": "check user and password; PGPASSWORD or ~/.pgpass keep it out of the URL",
    "pg_hba": "the server lets that user in from elsewhere only: see its pg_hba.conf",
    "starting up": "try again in a moment",
    "shutting down": "try again in a moment",
    "does not exist": "check the names; a database is made with `createdb NAME`",
    "resolve host": "check the name of the host",
    "connection": "check that the server runs and that its address is right",
}
