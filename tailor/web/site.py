"""What all routes share: the coordinator, the examples, sign-in, the templates."""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import Depends, HTTPException, Request
from fastapi.responses import JSONResponse, Response
from fastapi.templating import Jinja2Templates

from tailor.annotation import Coordinator, Item
from tailor.annotation.roles import Right, check_may
from tailor.pools.image_decoding import THREADS
from tailor.run.project import Project
from tailor.web.access import Access, Visitor
from tailor.web.examples import Examples
from tailor.web.flash_messages import FlashMessages
from tailor.web.sessions import LIFETIME
from tailor.web.tickets import Tickets

#: templates and static files lie here
WEB_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Site:
    """One project on the web."""

    project: Project
    coordinator: Coordinator
    examples: Examples
    access: Access
    templates: Jinja2Templates

    @cached_property
    def tickets(self) -> Tickets:
        """Proof of who was handed what."""
        return Tickets(self.project.folder)

    @cached_property
    def flash_messages(self) -> FlashMessages:
        """What was just done, for the next page of the same session."""
        return FlashMessages()

    # Whoever waits for heavy work waits without a thread: those that there are belong to labelling.

    @cached_property
    def hashing(self) -> CapacityLimiter:
        """Argon2 takes 64 MiB: one at a time."""
        return CapacityLimiter(1)

    @cached_property
    def decoding(self) -> CapacityLimiter:
        """A picture may take hundreds of megabytes for a moment."""
        return CapacityLimiter(THREADS)

    @property
    def key(self) -> str:
        """A short name of the project, for what a browser keeps about it."""
        folder = self.project.folder.resolve()
        folder_hash = sha256(os.fsencode(folder)).hexdigest()
        return folder_hash[:12]

    @property
    def name(self) -> str:
        folder = self.project.folder.resolve()
        return folder.name.removesuffix("-labels")

    def show(self, items: Sequence[Item]) -> list[dict[str, Any]]:
        """Items as JSON, each with what is needed to show its example under "shown"."""
        ids = [item.id for item in items]
        shown_items = []
        for item, content in zip(items, self.examples.shown(ids)):
            fields = asdict(item)
            shown_items.append({**fields, "shown": content})
        return shown_items


class PlainJSON(JSONResponse):
    """JSON in ASCII: whatever text comes out of a pool, it can be sent."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
        return text.encode("ascii")


class SignInNeeded(Exception):
    """A page that needs someone signed in was asked for by a stranger."""


def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


def find_visitor(request: Request) -> Visitor | None:
    """Who sends a request; None for a stranger."""
    access = site_of(request).access
    cookie = request.cookies.get(access.cookie_name)
    return access.visitor(cookie)


# What routes depend on is async although it never waits: FastAPI would send it to another thread
# and back.


async def site_of_route(request: Request) -> Site:
    return site_of(request)


async def visitor_of_page(request: Request) -> Visitor:
    visitor = find_visitor(request)
    if visitor is None:
        raise SignInNeeded
    return visitor


async def visitor_of_api(request: Request) -> Visitor:
    visitor = find_visitor(request)
    if visitor is None:
        raise HTTPException(401, "sign in first")
    return visitor


def needs(right: Right) -> Any:
    """A dependency of a route: whoever asks must have the right."""

    async def check_right(request: Request) -> None:
        visitor = find_visitor(request)
        # Strangers are sent to sign in by what every route depends on.
        if visitor is not None:
            check_may(visitor.role, right)

    return Depends(check_right)


async def check_same_session(request: Request) -> None:
    """A change must come from a page of this session: no other site can make a browser send it."""
    visitor = await visitor_of_api(request)
    token = request.headers.get("x-csrf-token")
    content_type = request.headers.get("content-type", "")
    if token is None and "form" in content_type:
        form = await request.form()
        field = form.get("csrf")
        # An uploaded file under this name is no token.
        if isinstance(field, str):
            token = field
    if token is None or not _is_equal(token, visitor.csrf):
        raise HTTPException(403, "this request did not come from the page: reload it and try again")
    check_same_site(request)


def _is_equal(token: str, expected: str) -> bool:
    # in the same time, wherever they differ
    return hmac.compare_digest(token.encode(), expected.encode())


def check_same_site(request: Request) -> None:
    """Browsers say where a change comes from: another site's is refused."""
    origin = request.headers.get("origin")
    if origin is None:  # programs send none, and they have no cookies of others
        return
    _, _, origin_host = origin.partition("://")
    if origin_host != request.headers.get("host"):
        raise HTTPException(403, "this request came from another site")


def client_address(request: Request) -> str:
    """Where a request comes from: what a listed proxy says, else the connection's other end."""
    if request.client is None:
        return "nobody"
    return request.client.host


def set_cookie(response: Response, request: Request, value: str) -> None:
    response.set_cookie(
        site_of(request).access.cookie_name,
        value,
        max_age=int(LIFETIME),
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )


CurrentSite = Annotated[Site, Depends(site_of_route)]
PageVisitor = Annotated[Visitor, Depends(visitor_of_page)]
ApiVisitor = Annotated[Visitor, Depends(visitor_of_api)]
