"""Requests that are sent slowly, in part, or not at all keep nobody else out."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import subprocess
import sys
import threading

import parts
import pytest
import sites
from browsing import Server, running, wait_for

parts.need("labelling page")
import httpx
from hand_clock import HandClock

from tailor.web.access import Access
from tailor.web.connections import Connections, Patience

TIMEOUT = 120
HALF_A_HEAD = b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_A_BODY = (
    b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
    b"application/x-www-form-urlencoded\r\n"
    b"Content-Length: 50\r\n\r\nname=an"
)
WHOLE = b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def project(tmp_path, pool):
    return sites.begin(tmp_path / "run", pool)


@pytest.fixture
def clock(monkeypatch):
    """No test depends on the machine's speed."""
    return HandClock(monkeypatch)


def connect(url: str, sent: bytes = b"") -> socket.socket:
    host, _, port = url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)), timeout=TIMEOUT)
    connection.sendall(sent)
    return connection


def until_closed(connection: socket.socket) -> bytes:
    """All that the server says before it closes."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(65536):
            said += more
    return said


class Narrow(Server):
    """The command with few files to open, as in a small container."""

    def start(self):
        few = (
            f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({self.files}, "
            f"{self.files}))"
        )
        run = (
            f"{few}; import runpy, sys; sys.argv[0] = 'tailor'; runpy.run_module('tailor', "
            "run_name='__main__')"
        )
        words = ["label", str(self.run), "--no-open", "--port", str(self.port)]
        self.process = subprocess.Popen([sys.executable, "-c", run, *words], stderr=subprocess.PIPE)
        wait_for(self.answers)
        return self

    files = 320


def test_hundreds_of_half_sent_requests_keep_nobody_out(project):
    """More than the server may open files; and someone else is answered all the while."""
    server = Narrow(project.folder).start()
    held = []
    try:
        for number in range(450):
            held.append(connect(server.url, (b"", HALF_A_HEAD, HALF_A_BODY)[number % 3]))
            if number % 50 == 49:
                assert (
                    httpx.get(server.url, timeout=TIMEOUT, follow_redirects=True).status_code == 200
                )
    finally:
        for connection in held:
            connection.close()
        server.kill()


def use(parser: str, monkeypatch) -> None:
    """One of the two that uvicorn has."""
    from uvicorn.protocols.http import auto, h11_impl, httptools_impl

    protocols = {"httptools": httptools_impl.HttpToolsProtocol, "h11": h11_impl.H11Protocol}
    monkeypatch.setattr(auto, "AutoHTTPProtocol", protocols[parser])


PARSERS = pytest.mark.parametrize("parser", ["httptools", "h11"])


@PARSERS
@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", b"408"),
        (HALF_A_HEAD, b"408"),
        (HALF_A_BODY, b""),
    ],
    ids=["nothing", "half a head", "half a body"],
)
def test_what_is_not_sent_in_time_is_closed(project, clock, monkeypatch, parser, sent, said):
    use(parser, monkeypatch)
    with (
        running(project, patience=Patience(seconds=20)) as (url, _),
        connect(url, sent) as connection,
    ):
        clock.wait_until_read(0, len(sent))
        clock.advance(20)
        assert until_closed(connection)[9:].startswith(said)
        assert httpx.get(url + "/login", follow_redirects=True, timeout=TIMEOUT).status_code == 200


@PARSERS
def test_half_of_a_second_request_is_closed_in_its_time(project, clock, monkeypatch, parser):
    use(parser, monkeypatch)
    with (
        running(project, patience=Patience(seconds=20)) as (url, _),
        connect(url, WHOLE) as connection,
    ):
        picture = read_picture(connection)
        connection.sendall(HALF_A_HEAD)
        clock.wait_until_read(0, len(WHOLE + HALF_A_HEAD))
        clock.advance(20)
        assert until_closed(connection) == b""
        assert picture


@PARSERS
def test_a_head_without_end_is_closed_before_its_time_is_over(project, monkeypatch, parser):
    use(parser, monkeypatch)
    with running(project, patience=Patience(seconds=1e6)) as (url, _), connect(url) as connection:
        with contextlib.suppress(
            ConnectionResetError, BrokenPipeError
        ):  # before all of it was sent
            connection.sendall(HALF_A_HEAD + b"x" * 200_000)
        assert b" 200 " not in until_closed(connection)


def test_a_byte_now_and_then_is_not_enough(project, clock):
    """The time is for the whole request, not for each byte of it."""
    sent = HALF_A_HEAD
    with (
        running(project, patience=Patience(seconds=20)) as (url, _),
        connect(url, sent) as connection,
    ):
        for _ in range(3):
            clock.wait_until_read(0, len(sent))
            clock.advance(6)
            connection.sendall(b"x")
            sent += b"x"
        clock.wait_until_read(0, len(sent))
        assert not clock.connections[0].transport.is_closing()
        clock.advance(2)
        assert until_closed(connection)[9:].startswith(b"408")


def test_a_connection_that_is_used_again_has_its_time_anew(project, clock):
    with running(project, patience=Patience(seconds=20)) as (url, _), connect(url) as connection:
        for number in range(1, 5):  # longer than one request's time, all together
            connection.sendall(WHOLE[:9])
            clock.wait_until_read(0, (number - 1) * len(WHOLE) + 9)
            clock.advance(15)
            connection.sendall(WHOLE[9:])
            assert read_picture(connection).rstrip().endswith(b"</svg>")


def read_picture(connection: socket.socket) -> bytes:
    said = connection.recv(65536)
    assert said.startswith(b"HTTP/1.1 200")
    while not said.rstrip().endswith(b"</svg>"):
        part = connection.recv(65536)
        assert part, "closed in the middle of a picture"
        said += part
    return said


def test_what_is_being_answered_is_not_closed(project, clock, monkeypatch):
    """However long it takes: only the client's own slowness counts."""
    held = threading.Event()
    enter = Access.enter

    def slow(*arguments):
        assert held.wait(TIMEOUT)
        return enter(*arguments)

    monkeypatch.setattr(Access, "enter", slow)
    asked = b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with (
        running(project, patience=Patience(seconds=20)) as (url, _),
        connect(url, asked) as connection,
    ):
        clock.wait_until_read(0, len(asked))
        clock.advance(1000)
        held.set()
        assert until_closed(connection).startswith(b"HTTP/1.1 303")


@PARSERS
def test_at_the_limit_half_sent_requests_go_before_an_idle_connection(
    project, clock, monkeypatch, parser
):
    """However old it is: whoever labels keeps a connection from one request to the next."""
    use(parser, monkeypatch)
    patience = Patience(seconds=20, connections=4)
    with running(project, patience=patience) as (url, _), contextlib.ExitStack() as stack:
        annotator = stack.enter_context(connect(url, WHOLE))
        read_picture(annotator)
        wait_for(lambda: not clock.connections[0].has_begun)
        half = []
        for number in range(1, 4):
            half.append(stack.enter_context(connect(url, HALF_A_HEAD)))
            clock.wait_until_read(number, len(HALF_A_HEAD))
        last = stack.enter_context(connect(url, WHOLE))
        read_picture(last)
        assert until_closed(half[0])[9:].startswith(b"408")
        annotator.sendall(WHOLE)
        read_picture(annotator)
        assert [one.transport.is_closing() for one in clock.connections] == [
            False,
            True,
            False,
            False,
            False,
        ]


@PARSERS
def test_nothing_is_handed_over_to_web_sockets(project, monkeypatch, parser):
    """Where a package for them is installed: a connection of theirs would be counted for ever."""

    class Sockets(asyncio.Protocol):
        def __init__(self, **_) -> None:
            raise AssertionError("a web socket")

    monkeypatch.setattr("uvicorn.protocols.websockets.auto.AutoWebSocketsProtocol", Sockets)
    use(parser, monkeypatch)
    upgrade = (
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    asked = WHOLE.removesuffix(b"\r\n") + upgrade
    with (
        running(project, patience=Patience(seconds=1e6)) as (url, _),
        connect(url, asked) as connection,
    ):
        picture = read_picture(connection)
    assert picture


class Wire:
    """As much of a protocol as Connections sees."""

    def __init__(self, is_waiting: bool = True, has_begun: bool = True, since: float = 0.0) -> None:
        self.is_waiting = is_waiting
        self.has_begun = has_begun
        self.waiting_since = since
        self.transport = self
        self.closed = False

    def give_up(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True


def test_the_one_that_waits_longest_makes_room():
    connections = Connections(Patience(connections=3, of_address=2))
    busy = Wire(is_waiting=False)
    waiting = Wire()
    elsewhere = Wire()
    assert connections.admit(busy, "10.0.0.1")
    assert connections.admit(waiting, "10.0.0.1")
    assert connections.admit(elsewhere, "10.0.0.2")
    third = Wire(is_waiting=False)
    assert connections.admit(
        third, "10.0.0.1"
    )  # in the place of its neighbour, not of the one elsewhere
    assert [one.closed for one in (busy, waiting, elsewhere)] == [False, True, False]
    connections.forget(waiting)
    assert not connections.admit(Wire(), "10.0.0.1")  # both of them are being answered
    assert connections.admit(Wire(), "10.0.0.3")
    assert elsewhere.closed  # there were three


def test_incomplete_requests_make_room_first_and_then_the_longest_idle():
    connections = Connections(Patience(connections=5, of_address=None))
    just_answered = Wire(has_begun=False, since=90)
    long_idle = Wire(has_begun=False, since=1)
    latest = Wire(since=80)
    first = Wire(since=70)
    wires = [just_answered, long_idle, latest, first, Wire(is_waiting=False)]
    for wire in wires:
        connections.admit(wire, "10.0.0.1")
    for expected in (first, latest, long_idle, just_answered):
        busy = Wire(is_waiting=False)
        assert connections.admit(busy, "10.0.0.2")
        assert expected.closed
        wires.remove(expected)
        assert not any(wire.closed for wire in wires)
        connections.forget(expected)
    assert not connections.admit(Wire(), "10.0.0.3")


def test_no_more_connections_than_files(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300, 300))
    assert Connections(Patience()).most == 150
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    assert Connections(Patience()).most == 512
