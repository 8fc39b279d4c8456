"""What every request passes: the Host header, the limits; and the headers that every answer carries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tailor.web.access import Access, is_loopback
from tailor.web.limits import Buckets, Limits, neighbourhood

HEADERS = {
    # No inline script or style, nothing from elsewhere, no frames.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, access: Access, hosts: Sequence[str] = (), limits: Limits | None = None) -> None:
        self.app, self.access, self.limits = app, access, limits or Limits()
        self.hosts = {host.lower() for host in hosts}
        #: a name that leads to this machine only by an attacker's DNS must not reach a server without a door
        self.any_host = not is_loopback(access.host) and not hosts
        self._too_long = f"a request may hold {self.limits.body} bytes"
        self._rates = Buckets(self.limits.rate, self.limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        if not self._known_host(headers.get("host", "")):
            await _refuse(send_with_headers, 421, "this address is not served here: see --allow-host")
        elif wait := self._rates.take(self._client(scope, headers)):
            await _refuse(send_with_headers, 429, "too many requests: slow down", {"Retry-After": str(int(wait) + 1)})
        elif _too_long(headers.get("content-length"), self.limits.body):
            await _refuse(send_with_headers, 413, self._too_long)
        else:
            await self.app(scope, self._counted(receive), send_with_headers)

    def _counted(self, receive: Receive) -> Receive:
        """A body without a length is counted as it comes."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.limits.body:
                raise HTTPException(413, self._too_long)
            return message

        return counted

    def _known_host(self, given: str) -> bool:
        if self.any_host:
            return True
        name = given.rpartition(":")[0] if ":" in given and not given.endswith("]") else given
        return is_loopback(name.lower()) or name.lower() in self.hosts

    def _client(self, scope: Scope, headers: Headers) -> str:
        """Someone signed in has limits of his own; strangers share those of their address."""
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.access.cookie)
        except CookieError:
            cookie = None
        if cookie and self.access.sessions.find(cookie.value):
            return cookie.value
        return neighbourhood((scope.get("client") or ("nobody", 0))[0])


def _too_long(given: str | None, limit: int) -> bool:
    return given is not None and (not (given.isascii() and given.isdigit()) or int(given[:18]) > limit)


async def _refuse(send: Send, status: int, why: str, more: dict[str, str] | None = None) -> None:
    body = json.dumps({"error": why}).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))} | (more or {})
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
