"""Serving a project: the socket, the server, and the browser that opens when it answers."""

from __future__ import annotations

import errno
import getpass
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI

from tailor.annotation import Coordinator
from tailor.errors import InputError
from tailor.run.project import Project
from tailor.web.access import Access, is_loopback
from tailor.web.app import create_app
from tailor.web.connections import BACKLOG, Patience, impatient_protocol
from tailor.web.proxies import Proxies
from tailor.web.tls import TlsFiles
from tailor.web.users import Users

PORT = 8765  # where it listens if nobody says otherwise
TRIES = 20  # ports that are tried from there on
GRACE = 5  # seconds that Ctrl-C waits for requests that never end


def serve(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    open_browser: bool = True,
    name: str = "",
    token: str | None = None,
    hosts: Sequence[str] = (),
    proxies: Sequence[str] = (),
    tls: TlsFiles | None = None,
    overlap: int = 1,
    overlap_share: float = 0.0,
    lease: float = 300.0,
    say: Callable[[str], object] = print,
) -> None:
    """Serve until Ctrl-C. Everything acknowledged is in the store by then.

    port     None for the usual one, or where it is in use one of the next; 0 for any that is free
    hosts    further names under which the server is called, by a proxy
    proxies  addresses of proxies, whose X-Forwarded-For and X-Forwarded-Proto are believed
    tls      certificate and key, for https
    say      is told where the page is
    """
    _check_token_is_of_use(project, token)
    known_proxies = Proxies.parse(proxies)
    access = Access(
        project.folder,
        host=host,
        token=token,
        name=name or login_name(),
        hosts=hosts,
        proxies=proxies,
    )
    with listening(host, port) as sock:
        coordinator = Coordinator(
            project, overlap=overlap, overlap_share=overlap_share, lease=lease
        )
        try:
            app = create_app(project, coordinator, access, hosts=hosts)
            server = make_server(app, proxies=known_proxies, tls=tls)
            listening_port = sock.getsockname()[1]
            address = url(host, listening_port, is_encrypted=tls is not None)
            if port is None and listening_port != PORT:
                say(
                    f"Port {PORT} is in use, by another run perhaps: this one is at "
                    f"{listening_port}."
                )
            if access.mode == "token" and token:
                sign_in = sign_in_path(token)
            else:
                sign_in = ""
            say(f"Label at {address}{sign_in}")
            if not is_loopback(host) and tls is None:
                say(
                    "Names and answers travel unencrypted: give --tls-certificate and --tls-key, "
                    "or put a proxy with TLS before it, on any net you don't trust."
                )
            if hosts and not known_proxies:
                say(
                    "No --proxy is named: what a proxy says of where visitors come from is "
                    "ignored, and all that it lets in count as one address."
                )
            say("Ctrl-C ends it; everything answered is saved.")
            if open_browser:
                threading.Thread(target=_open, args=(server, address), daemon=True).start()
            server.run(sockets=[sock])
        finally:
            coordinator.close()


def _check_token_is_of_use(project: Project, token: str | None) -> None:
    names = Users(project.folder).names
    if token and names:
        raise InputError(
            f"{project.folder} has users ({', '.join(names)}), who sign in with passwords: a "
            "token lets nobody in. Leave out --token (and TAILOR_TOKEN), or take the users away "
            "with `tailor users remove NAME`"
        )


def make_server(
    app: FastAPI,
    *,
    proxies: Proxies | None = None,
    tls: TlsFiles | None = None,
    patience: Patience | None = None,
) -> uvicorn.Server:
    """A server that waits for nobody too long. proxies: whose headers are believed, and whose
    connections are not counted by address.
    """
    proxies = proxies or Proxies()
    patience = replace(patience or Patience(), proxies=proxies)
    certificate = None
    key = None
    if tls is not None:
        certificate = tls.certificate
        key = tls.key
    config = uvicorn.Config(
        app,
        http=impatient_protocol(patience),
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        # Anyone else could claim to come from anywhere.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies.addresses,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        # there are none, and a connection that is handed over to them would be counted for ever
        ws="none",
        timeout_graceful_shutdown=GRACE,
        backlog=BACKLOG,
    )
    return uvicorn.Server(config)


def listening(host: str, port: int | None) -> socket.socket:
    """A socket at this port (0: any); for None at the usual one, or where others use it at one of
    the next.
    """
    if ":" in host:
        family = socket.AF_INET6
    else:
        family = socket.AF_INET
    if port is None:
        ports = list(range(PORT, PORT + TRIES))
    else:
        ports = [port]
    for candidate in ports:
        # asyncio sends at once only where TCP is named; else a reply waits for the acknowledgement
        # of its head, 40 ms
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host.strip("[]"), candidate))
            sock.listen(BACKLOG)
            return sock
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRINUSE:
                raise InputError(
                    f"can't listen at {host}, port {candidate}: {error.strerror or error}"
                ) from error
    busy = f"port {port} at {host} is"
    if port is None:
        busy = f"ports {PORT} to {ports[-1]} at {host} are all"
    raise InputError(f"{busy} in use: name another --port, or 0 for any that is free")


def url(host: str, port: int, *, is_encrypted: bool = False) -> str:
    """The page's address, as a browser takes it."""
    if is_encrypted:
        scheme = "https"
    else:
        scheme = "http"
    everywhere = ("0.0.0.0", "::")
    if host in everywhere:
        name = socket.gethostname()
    else:
        name = host
    is_ipv6 = ":" in name
    if is_ipv6:
        name = f"[{name}]"
    return f"{scheme}://{name}:{port}"


def sign_in_path(token: str) -> str:
    """Where one signs in with the token filled in. It stands after the #, which no browser sends:
    else it would be in the log of every proxy.
    """
    return f"/login#token={quote(token, safe='')}"


def _open(server: uvicorn.Server, address: str) -> None:
    import webbrowser

    while not server.started:
        if server.should_exit:
            return
        time.sleep(0.02)
    webbrowser.open(address)


def login_name() -> str:
    """Who is logged in on this machine."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user on this machine
        return "me"
