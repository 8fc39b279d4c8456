"""Connections that send their requests too slowly, or not at all, are closed: they must not keep
others out.

uvicorn has a time-out between two requests of a connection, but none for a request that has begun.
A thousand half-sent ones would take every file that the process may open, and the page would be
gone for everybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tailor.web.limits import client_network
from tailor.web.proxies import Proxies

#: connections that wait to be accepted
BACKLOG = 128
#: files that the process needs beside its connections, those in the backlog among them
OTHER_FILES = 256
#: times the patience for a request that a closed connection is given to fetch what was written to
#: it
LINGER = 10


@dataclass(frozen=True)
class Patience:
    """How long, how many and how much is waited for."""

    # seconds for a whole request, head and body, from its first byte (or from the connection)
    seconds: float = 20.0
    connections: int = 512  # in all
    of_address: int | None = 256  # from one address, unless it is a proxy's; None: no limit
    head: int = 64 * 1024  # bytes before a request's head is complete
    proxies: Proxies = field(default_factory=Proxies)


class Transport(Protocol):
    """What is needed of a connection's socket."""

    def is_closing(self) -> bool: ...

    def abort(self) -> None: ...


class HttpConnection(Protocol):
    """What is needed of a connection to choose which one to close."""

    @property
    def transport(self) -> Transport: ...

    @property
    def waiting_since(self) -> float: ...

    @property
    def is_waiting(self) -> bool: ...

    @property
    def has_begun(self) -> bool: ...

    def give_up(self) -> None: ...


class Connections:
    """All that are open. Where there are too many, the one whose request has been incomplete for
    longest is closed, or where there is none the one that has been idle for longest. So half-sent
    requests only ever push each other out, and those that are being answered are left alone.
    """

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.most = min(patience.connections, _files_allowed())
        self._clients: dict[HttpConnection, str] = {}

    def __len__(self) -> int:
        return len(self._clients)

    def admit(self, connection: HttpConnection, address: str) -> bool:
        """Whether there is a place for it, if need be that of another one."""
        client = client_network(address)
        of_address = self.patience.of_address
        if self.patience.proxies.include(address):
            of_address = None
        neighbours = []
        for other, owner in self._clients.items():
            if owner == client:
                neighbours.append(other)
        has_place = True
        if of_address is not None and len(neighbours) >= of_address:
            has_place = _close_one(neighbours)
        elif len(self._clients) >= self.most:
            has_place = _close_one(list(self._clients))
        if has_place:
            self._clients[connection] = client
        return has_place

    def forget(self, connection: HttpConnection) -> None:
        self._clients.pop(connection, None)


def _close_one(connections: list[HttpConnection]) -> bool:
    """Whether one could be closed: of those that wait, or else one that does not fetch what it
    asked for.
    """
    closing = []
    waiting = []
    for connection in connections:
        if connection.transport.is_closing():
            closing.append(connection)
        elif connection.is_waiting:
            waiting.append(connection)
    if waiting:
        # An idle connection costs its owner nothing but patience: an incomplete request goes
        # before it.
        longest = min(waiting, key=lambda other: (not other.has_begun, other.waiting_since))
        longest.give_up()
        return True
    if closing:
        closing[0].transport.abort()
        return True
    return False


def _files_allowed() -> int:
    """How many connections fit into what the system lets this process open."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 512
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return 2**31
    return max(allowed - OTHER_FILES, allowed // 2)


def impatient_protocol(patience: Patience) -> type[ImpatientProtocol]:
    """The protocol of one server, whose connections share their limits."""

    class ServerProtocol(ImpatientProtocol):
        open_connections = Connections(patience)

    return ServerProtocol


class ImpatientProtocol(HttpToolsProtocol):
    """uvicorn's own protocol for HTTP, which closes what takes too long."""

    open_connections: ClassVar[Connections]  # all of the server, with its patience
    _timer: asyncio.TimerHandle | None = None  # runs out with the patience
    _head = 0  # bytes of a head that is not complete
    # by the loop's clock: the connection, a request's first byte, or the last response's end
    waiting_since = 0.0

    @property
    def has_begun(self) -> bool:
        """Whether a request is awaited whose time runs: the first one, or one of which a part is
        there.
        """
        return self._timer is not None

    @property
    def is_waiting(self) -> bool:
        """Whether the client has to send something before there is anything to do: a request, or
        the rest.
        """
        return self._awaits_head or self.cycle.more_body

    @property
    def _awaits_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        client = "nobody"
        if self.client:
            client = self.client[0]
        if self.open_connections.admit(self, client):
            self._begin_request()
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.open_connections.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._check_timer()
        if self._awaits_head:
            self._head = self._head + len(data)
        else:
            self._head = 0
        if self._head > self.open_connections.patience.head:
            self.give_up(431, "Request Header Fields Too Large")

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._head = 0
        if self._awaits_head and not self.cycle.more_body:
            self._stop_timer()  # the next request's time begins with its first byte
            self.waiting_since = self.loop.time()
        else:  # one that was sent along with the last, and is not complete
            self._check_timer()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._linger()

    def give_up(self, status: int = 408, reason: str = "Request Timeout") -> None:
        """Close it, with a word where a first request is awaited: between two the client may be
        sending by now.
        """
        if self.transport.is_closing():
            return
        if self.cycle is None:
            head = f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            self.transport.write(head.encode())
        self.transport.close()
        self._linger()

    def _linger(self) -> None:
        # What was written is still fetched, but not for ever.
        self._set_timer(LINGER * self.open_connections.patience.seconds, self.transport.abort)

    def _check_timer(self) -> None:
        """A request's time runs from its first byte until it is complete, however often a byte
        comes.
        """
        if not self.is_waiting:
            self._stop_timer()
        elif self._timer is None and not self.transport.is_closing():
            self._begin_request()

    def _begin_request(self) -> None:
        """Its time begins to run."""
        self.waiting_since = self.loop.time()
        self._set_timer(self.open_connections.patience.seconds, self.give_up)

    def _set_timer(self, seconds: float, then: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, then)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
