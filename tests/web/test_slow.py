"""Requests that are sent slowly, in part, or not at all keep nobody else out."""

from __future__ import annotations

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

from tailor.web.access import Access
from tailor.web.connections import Connections, Patience

TIMEOUT = 120
HALF_A_HEAD = b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_A_BODY = (
    b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 50\r\n\r\nname=an"
)
WHOLE = b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def project(tmp_path, pool):
    return sites.begin(tmp_path / "run", pool)


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
        few = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({self.files}, {self.files}))"
        run = f"{few}; import runpy, sys; sys.argv[0] = 'tailor'; runpy.run_module('tailor', run_name='__main__')"
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
                assert httpx.get(server.url, timeout=TIMEOUT, follow_redirects=True).status_code == 200
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
        (WHOLE + HALF_A_HEAD, b"200"),
    ],
    ids=["nothing", "half a head", "half a body", "half of a second one"],
)
def test_what_is_not_sent_in_time_is_closed(project, monkeypatch, parser, sent, said):
    use(parser, monkeypatch)
    with running(project, patience=Patience(seconds=0.5)) as (url, _), connect(url, sent) as connection:
        assert until_closed(connection)[9:].startswith(said)
        assert httpx.get(url + "/login", follow_redirects=True, timeout=TIMEOUT).status_code == 200


@PARSERS
def test_a_head_without_end_is_closed_before_its_time_is_over(project, monkeypatch, parser):
    use(parser, monkeypatch)
    with running(project, patience=Patience(seconds=1e6)) as (url, _), connect(url) as connection:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):  # before all of it was sent
            connection.sendall(HALF_A_HEAD + b"x" * 200_000)
        until_closed(connection)


def test_a_byte_now_and_then_is_not_enough(project):
    """The time is for the whole request, not for each byte of it."""
    with running(project, patience=Patience(seconds=0.5)) as (url, _), connect(url, HALF_A_HEAD) as connection:

        def is_closed() -> bool:
            try:
                connection.sendall(b"x")
            except OSError:
                return True
            return False

        wait_for(is_closed, TIMEOUT)


def test_a_connection_that_is_used_again_has_its_time_anew(project):
    with running(project, patience=Patience(seconds=1.5)) as (url, _), connect(url) as connection:
        for _ in range(40):  # longer than one request's time, all together, on a busy machine far longer
            connection.sendall(WHOLE)
            said = connection.recv(65536)
            assert said.startswith(b"HTTP/1.1 200")
            while not said.rstrip().endswith(b"</svg>"):
                said += connection.recv(65536)


def test_what_is_being_answered_is_not_closed(project, monkeypatch):
    """However long it takes: only the client's own slowness counts."""
    held, enter = threading.Event(), Access.enter

    def slow(self):
        assert held.wait(TIMEOUT)
        return enter(self)

    monkeypatch.setattr(Access, "enter", slow)
    with running(project, patience=Patience(seconds=0.2)) as (url, _), connect(url) as connection:
        connection.sendall(b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        with connect(url) as other:
            until_closed(other)  # it came later, and its time is over
        held.set()
        assert until_closed(connection).startswith(b"HTTP/1.1 303")


class Wire:
    """As much of a protocol as Connections sees."""

    def __init__(self, is_waiting: bool = True) -> None:
        self.is_waiting, self.transport, self.closed = is_waiting, self, False

    def give_up(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True


def test_the_one_that_waits_longest_makes_room():
    connections = Connections(Patience(connections=3, of_address=2))
    busy, waiting, elsewhere = Wire(is_waiting=False), Wire(), Wire()
    assert connections.admit(busy, "10.0.0.1")
    assert connections.admit(waiting, "10.0.0.1")
    assert connections.admit(elsewhere, "10.0.0.2")
    third = Wire(is_waiting=False)
    assert connections.admit(third, "10.0.0.1")  # in the place of its neighbour, not of the one elsewhere
    assert [one.closed for one in (busy, waiting, elsewhere)] == [False, True, False]
    connections.forget(waiting)
    assert not connections.admit(Wire(), "10.0.0.1")  # both of them are being answered
    assert connections.admit(Wire(), "10.0.0.3")
    assert elsewhere.closed  # there were three


def test_no_more_connections_than_files(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300, 300))
    assert Connections(Patience()).most == 150
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    assert Connections(Patience()).most == 512
