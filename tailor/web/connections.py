"""Connections that send their requests too slowly, or not at all, are closed: they must not keep
others out.

uvicorn has a time-out between two requests of a connection, but none for a request that has begun.
A thousand half-sent ones would take every file that the process may open, and the page would be
gone for everybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tailor.web.limits import neighbourhood

#: connections that wait to be accepted; and files that the process needs beside its connections,
#: these among them
BACKLOG, OTHER_FILES = 128, 256
#: how many times the patience for a request a closed connection is given to fetch what was written
#: to it
LINGER = 10


@dataclass(frozen=True)
class Patience:
    """How long, how many and how much is waited for."""

    seconds: float = (
        20.0  # for a whole request, head and body, from its first byte (or from the connection)
    )
    connections: int = 512  # in all
    of_address: int | None = (
        256  # from one address; None: no such limit, since all come from a proxy
    )
    head: int = 64 * 1024  # bytes before a request's head is complete


class Connections:
    """All that are open. Where there are too many, the one whose request has been incomplete for
    longest is closed, or where there is none the one that has been idle for longest. So half-sent
    requests only ever push each other out, and those that are being answered are left alone.
    """

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.most = min(patience.connections, _files_allowed())
        self._open: dict[Any, str] = {}  # protocol -> address

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, protocol: Any, address: str) -> bool:
        """Whether there is room for it, if need be in the place of another one."""
        client = neighbourhood(address)
        of_address = self.patience.of_address
        neighbours = [one for one, theirs in self._open.items() if theirs == client]
        has_room = True
        if of_address is not None and len(neighbours) >= of_address:
            has_room = _close_one(neighbours)
        elif len(self._open) >= self.most:
            has_room = _close_one(list(self._open))
        if has_room:
            self._open[protocol] = client
        return has_room

    def forget(self, protocol: Any) -> None:
        self._open.pop(protocol, None)


def _close_one(protocols: list[Any]) -> bool:
    """Whether one could be closed: of those that wait, or else one that does not fetch what it
    asked for.
    """
    waiting = [one for one in protocols if one.is_waiting and not one.transport.is_closing()]
    if waiting:
        # an idle connection costs its owner nothing but patience: an incomplete request goes before
        # it
        longest = min(waiting, key=lambda one: (not one.has_begun, one.waiting_since))
        longest.give_up()
        return True
    lingering = next((one for one in protocols if one.transport.is_closing()), None)
    if lingering is not None:
        lingering.transport.abort()
    return lingering is not None


def _files_allowed() -> int:
    """How many connections fit into what the system lets this process open."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 512
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if allowed == resource.RLIM_INFINITY else max(allowed - OTHER_FILES, allowed // 2)


def impatient(patience: Patience) -> type[asyncio.Protocol]:
    """uvicorn's own protocol for HTTP, which closes what takes too long."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    connections = Connections(patience)

    class Impatient(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
        _clock: asyncio.TimerHandle | None = None
        _head = 0  # bytes of a head that is not complete
        # by the loop's clock: the connection, a request's first byte, or the last response's end
        waiting_since = 0.0

        @property
        def has_begun(self) -> bool:
            """Whether a request is awaited whose time runs: the first one, or one of which a part
            is there.
            """
            return self._clock is not None

        @property
        def is_waiting(self) -> bool:
            """Whether the client has to send something before there is anything to do: a request,
            or the rest.
            """
            return self._awaits_head or self.cycle.more_body

        @property
        def _awaits_head(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            if connections.admit(self, self.client[0] if self.client else "nobody"):
                self._begin()
            else:
                transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_clock()
            connections.forget(self)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            super().data_received(data)
            self._look_at_clock()
            self._head = self._head + len(data) if self._awaits_head else 0
            if self._head > patience.head:
                self.give_up(431, "Request Header Fields Too Large")

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._head = 0
            if self._awaits_head and not self.cycle.more_body:
                self._stop_clock()  # the next request's time begins with its first byte
                self.waiting_since = self.loop.time()
            else:  # one that was sent along with the last, and is not complete
                self._look_at_clock()

        def timeout_keep_alive_handler(self) -> None:
            super().timeout_keep_alive_handler()
            self._set_clock(LINGER * patience.seconds, self.transport.abort)

        def give_up(self, status: int = 408, reason: str = "Request Timeout") -> None:
            """Close it, with a word where a first request is awaited: between two the client may be
            sending by now.
            """
            if self.transport.is_closing():
                return
            if self.cycle is None:
                head = (
                    f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                )
                self.transport.write(head.encode())
            self.transport.close()
            self._set_clock(LINGER * patience.seconds, self.transport.abort)

        def _look_at_clock(self) -> None:
            """A request's time runs from its first byte until it is complete, however often a byte
            comes.
            """
            if not self.is_waiting:
                self._stop_clock()
            elif self._clock is None and not self.transport.is_closing():
                self._begin()

        def _begin(self) -> None:
            """A request's time."""
            self.waiting_since = self.loop.time()
            self._set_clock(patience.seconds, self.give_up)

        def _set_clock(self, seconds: float, then: Callable[[], None]) -> None:
            self._stop_clock()
            self._clock = self.loop.call_later(seconds, then)

        def _stop_clock(self) -> None:
            if self._clock is not None:
                self._clock.cancel()
                self._clock = None

    return Impatient
