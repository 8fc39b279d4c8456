"""Serving a project: the socket, the server, and the browser that opens when it answers."""

from __future__ import annotations

import errno
import getpass
import socket
import threading
import time
from collections.abc import Callable, Sequence
from urllib.parse import quote

import uvicorn

from tailor.errors import InputError
from tailor.live import Room
from tailor.project import Project
from tailor.web.access import Access, is_loopback
from tailor.web.app import create_app

TRIES = 20  # ports after the wanted one
GRACE = 5  # seconds that Ctrl-C waits for requests that never end


def serve(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    open_browser: bool = True,
    name: str = "",
    token: str | None = None,
    hosts: Sequence[str] = (),
    overlap: int = 1,
    overlap_share: float = 0.0,
    lease: float = 300.0,
    say: Callable[[str], object] = print,
) -> None:
    """Serve until Ctrl-C. Everything acknowledged is in the store by then."""
    access = Access(project.folder, host=host, token=token, name=name or _login_name(), hosts=hosts)
    with listening(host, port) as sock:
        room = Room(project, overlap=overlap, overlap_share=overlap_share, lease=lease)
        try:
            app = create_app(project, room, access, hosts=hosts)
            config = uvicorn.Config(
                app, log_level="warning", access_log=False, server_header=False, date_header=False,
                proxy_headers=bool(hosts),  # without a proxy anyone could claim to come from anywhere
                timeout_graceful_shutdown=GRACE,
            )  # fmt: skip
            server = uvicorn.Server(config)
            address = url(host, sock.getsockname()[1])
            say(f"Label at {address}{_door(token) if access.mode == 'token' and token else ''}")
            if not is_loopback(host):
                say("Names and answers travel unencrypted: put a proxy with TLS before it on any net you don't trust.")
            say("Ctrl-C ends it; everything answered is saved.")
            if open_browser:
                threading.Thread(target=_open, args=(server, address), daemon=True).start()
            server.run(sockets=[sock])
        finally:
            room.close()


def listening(host: str, port: int) -> socket.socket:
    """A socket at this port, or where others use it at one of the next."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in range(port, port + TRIES) if port else [0]:
        # asyncio sends at once only where TCP is named; else a reply waits for the acknowledgement of its head, 40 ms
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host.strip("[]"), min(wanted, 65535)))
            sock.listen(128)
            return sock
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRINUSE:
                raise InputError(f"can't listen at {host}, port {wanted}: {error.strerror or error}") from error
    raise InputError(f"ports {port} to {port + TRIES - 1} at {host} are all in use: name another --port, or 0 for any")


def url(host: str, port: int) -> str:
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"


def _door(token: str) -> str:
    """After the #, which no browser sends: else the token would be in the log of every proxy."""
    return f"/login#token={quote(token, safe='')}"


def _open(server: uvicorn.Server, address: str) -> None:
    import webbrowser

    while not server.started:
        if server.should_exit:
            return
        time.sleep(0.02)
    webbrowser.open(address)


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user on this machine
        return "me"
