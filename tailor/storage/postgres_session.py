"""A connection to PostgreSQL that is made anew when it was lost."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tailor.storage.address import Address, driver
from tailor.storage.base import StoreError, StoreUnreachable
from tailor.storage.postgres_connection import connect, explained, hanging_up_after, release_lock

if TYPE_CHECKING:
    from psycopg import Connection

#: Seconds in which the server must have answered, for what is quickly sent.
ANSWER_SECONDS = 5.0
#: Bytes a second that any line can carry.
SLOWEST_LINE = 100_000
#: Seconds after which a failure comes too late to be tried again at once.
QUICK_FAILURE = 1.0
#: Codes of errors after which a connection is of no use: the server is going away, or the line is
#: broken.
LOST_CODES = ("57P", "080")


class PostgresSession:
    """Gives out a connection to one thread at a time; a new one where it was lost.

    A lost connection is an error (StoreUnreachable), and the next use connects again. After a use
    that waited in vain, others fail at once for as long as it had waited: a crowd is not held up.

    prepare     called with each new connection before it is used
    on_refusal  called where the server refused something, the connection being whole
    """

    def __init__(
        self,
        address: Address,
        *,
        readonly: bool,
        prepare: Callable[[Connection[Any]], None],
        on_refusal: Callable[[], None],
    ) -> None:
        self.address = address
        #: Held while the connection is in use.
        self.lock = threading.RLock()
        self.connection: Connection[Any] | None = None
        self._readonly = readonly
        self._prepare = prepare
        self._on_refusal = on_refusal
        self._was_connected = False
        self._is_closed = False
        self._rest_until = 0.0
        self._rest_reason = ""

    @contextlib.contextmanager
    def use(self, action: str) -> Iterator[Connection[Any]]:
        """The connection, inside the context for this thread alone.

        action  what it is used for, such as "write to", in the message of a StoreError
        """
        with self.lock:
            if self._is_closed:
                raise StoreError(f"{self.address} is closed")
            with self._resting_after_failure():
                connection = self._open()
                with self._explained_errors(action, connection):
                    yield connection

    def _open(self) -> Connection[Any]:
        if self._is_connected():
            assert self.connection is not None
            return self.connection
        connection = connect(self.address, self._readonly, again=self._was_connected)
        self.connection = connection
        try:
            with self._explained_errors("open", connection):
                self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._was_connected = True
        return connection

    def _is_connected(self) -> bool:
        return self.connection is not None and not self.connection.closed

    @contextlib.contextmanager
    def answering(self, connection: Connection[Any], sent_bytes: int = 0) -> Iterator[None]:
        """Limits the time of the block to what the server may take for so many bytes."""
        with hanging_up_after(connection, ANSWER_SECONDS + sent_bytes / SLOWEST_LINE):
            yield

    @contextlib.contextmanager
    def _resting_after_failure(self) -> Iterator[None]:
        started = time.monotonic()
        if started < self._rest_until and not self._is_connected():
            raise StoreUnreachable(self._rest_reason)
        try:
            yield
        except StoreUnreachable as error:
            waited = time.monotonic() - started
            if waited > QUICK_FAILURE:
                self._rest_until = time.monotonic() + min(waited, ANSWER_SECONDS)
                self._rest_reason = str(error)
            raise

    @contextlib.contextmanager
    def _explained_errors(self, action: str, connection: Connection[Any]) -> Iterator[None]:
        try:
            yield
        except driver().Error as error:
            is_lost = connection.closed or (error.sqlstate or "")[:3] in LOST_CODES
            if not is_lost:
                self._on_refusal()
                raise explained(error, action, self.address) from None
            connection.close()
            reason = self.address.hide_password(str(error))
            raise StoreUnreachable(
                f"the connection to {self.address} was lost ({reason}): the next call connects "
                "again; what was acknowledged is safe, what was on its way may have arrived"
            ) from None
        except Exception:
            raise
        except BaseException:  # Ctrl-C in the middle of a conversation: begin another
            connection.close()
            raise

    def close(self) -> None:
        """Let go of the connection and of the writer's lock. May be called again."""
        with self.lock:
            self._is_closed = True
            if self.connection is not None:
                release_lock(self.connection)
                self.connection.close()
