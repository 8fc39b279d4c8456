"""What every request passes: the Host header, the limits; and the headers that every answer
carries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http.cookies import CookieError, SimpleCookie

from fastapi import HTTPException, Request, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tailor.errors import TailorError
from tailor.web.access import Access, Visitor, is_loopback
from tailor.web.limits import Limits, RateLimiter, client_network

HEADERS = {
    # No inline script or style, nothing from elsewhere, no frames.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """ASGI middleware around the whole application: refuses unknown hosts, too many requests and
    too large ones, and adds HEADERS to every response.
    """

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        refuse: Callable[[Request, int, str], Response],
        hosts: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> None:
        """refuse makes the response to what is not let through, of (request, status, text)."""
        self.app = app
        self.access = access
        self.limits = limits or Limits()
        self._refuse = refuse
        self.hosts = {host.lower() for host in hosts}
        # A name that leads to this machine only by an attacker's DNS must not reach a server that
        # lets everybody in.
        self.any_host = not is_loopback(access.host) and not hosts
        self._too_large = f"a request may hold {self.limits.body} bytes"
        rate = self.limits.rate
        burst = self.limits.burst
        people = self.limits.people
        self._visitor_rates = RateLimiter(rate, burst)
        self._address_rates = RateLimiter(people * rate, people * burst)

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

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
        else:
            await self.app(scope, self._counted(receive), send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """The response to a request that is not let through; None for all others."""
        request = Request(scope)
        headers = request.headers
        if not self._is_known_host(headers.get("host", "")):
            return self._refuse(request, 421, "this address is not served here: see --allow-host")
        wait = self._wait(scope, headers)
        if wait:
            refusal = self._refuse(request, 429, "too many requests: slow down")
            whole_seconds = int(wait) + 1
            refusal.headers["Retry-After"] = str(whole_seconds)
            return refusal
        if _is_too_large(headers.get("content-length"), self.limits.body):
            return self._refuse(request, 413, self._too_large)
        return None

    def _counted(self, receive: Receive) -> Receive:
        """A body without a length is counted as it comes."""
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.limits.body:
                raise HTTPException(413, self._too_large)
            return message

        return receive_counted

    def _is_known_host(self, host: str) -> bool:
        """host: as the header has it, with or without a port"""
        if self.any_host:
            return True
        name = host.lower()
        # An IPv6 address stands in brackets, and the colons in it separate no port.
        has_port = ":" in name and not name.endswith("]")
        if has_port:
            name, _, _ = name.rpartition(":")
        return is_loopback(name) or name in self.hosts

    def _wait(self, scope: Scope, headers: Headers) -> float:
        """Seconds until this request may come. Someone signed in has limits of his own, with any
        number of browsers; strangers share those of their address.
        """
        address, _port = scope.get("client") or ("nobody", 0)
        client = client_network(address)
        visitor = self._visitor(headers)
        if visitor is None:
            key = f"address {client}"
        else:
            key = f"visitor {visitor.name}"
        wait = self._visitor_rates.take(key)
        if wait:
            return wait
        return self._address_rates.take(client)

    def _visitor(self, headers: Headers) -> Visitor | None:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
            cookie = cookies.get(self.access.cookie_name)
            if cookie is None:
                return None
            return self.access.visitor(cookie.value)
        except (CookieError, TailorError, OSError):
            # who it is can't be told, and the page will say why
            return None


def _is_too_large(content_length: str | None, limit: int) -> bool:
    if content_length is None:
        return False
    is_number = content_length.isascii() and content_length.isdigit()
    if not is_number:
        return True
    # Eighteen digits are more than any limit: int() of a million would take its time.
    return int(content_length[:18]) > limit
