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
from tailor.web.access import Access, Person, is_loopback
from tailor.web.limits import Buckets, Limits, neighbourhood

HEADERS = {
    # No inline script or style, nothing from elsewhere, no frames.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; "
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

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        refuse: Callable[[Request, int, str], Response],
        hosts: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> None:
        """refuse makes the answer to what is not let through."""
        self.app = app
        self.access = access
        self.limits = limits or Limits()
        self._refuse = refuse
        self.hosts = {host.lower() for host in hosts}
        #: a name that leads to this machine only by an attacker's DNS must not reach a server
        #: without a door
        self.any_host = not is_loopback(access.host) and not hosts
        self._too_long = f"a request may hold {self.limits.body} bytes"
        people = self.limits.people
        self._rates = Buckets(self.limits.rate, self.limits.burst)
        self._rates_of_addresses = Buckets(people * self.limits.rate, people * self.limits.burst)

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
        request = Request(scope)
        if not self._known_host(headers.get("host", "")):
            refused = self._refuse(
                request, 421, "this address is not served here: see --allow-host"
            )
        elif wait := self._wait(scope, headers):
            refused = self._refuse(request, 429, "too many requests: slow down")
            refused.headers["Retry-After"] = str(int(wait) + 1)
        elif _too_long(headers.get("content-length"), self.limits.body):
            refused = self._refuse(request, 413, self._too_long)
        else:
            await self.app(scope, self._counted(receive), send_with_headers)
            return
        await refused(scope, receive, send_with_headers)

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

    def _wait(self, scope: Scope, headers: Headers) -> float:
        """Seconds until this request may come. Someone signed in has limits of his own, with any
        number of browsers; strangers share those of their address.
        """
        address = neighbourhood((scope.get("client") or ("nobody", 0))[0])
        person = self._person(headers)
        wait = self._rates.take(f"person {person.name}" if person else f"address {address}")
        return wait or self._rates_of_addresses.take(address)

    def _person(self, headers: Headers) -> Person | None:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.access.cookie)
            return self.access.person(cookie.value if cookie else None)
        except (
            CookieError,
            TailorError,
            OSError,
        ):  # who it is can't be told, and the page will say why
            return None


def _too_long(given: str | None, limit: int) -> bool:
    return given is not None and (
        not (given.isascii() and given.isdigit()) or int(given[:18]) > limit
    )
