"""What all routes share: the room, the examples, the door, the templates."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import Depends, HTTPException, Request
from fastapi.responses import JSONResponse
from fastapi.templating import Jinja2Templates

from tailor.annotation import Coordinator, Item
from tailor.pools.image_decoding import THREADS
from tailor.run.project import Project
from tailor.web.access import Access, Person
from tailor.web.examples import Examples
from tailor.web.flash_messages import FlashMessages

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Site:
    project: Project
    coordinator: Coordinator
    examples: Examples
    access: Access
    templates: Jinja2Templates

    @cached_property
    def notes(self) -> FlashMessages:
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
        return sha256(os.fsencode(self.project.folder.resolve())).hexdigest()[:12]

    @property
    def name(self) -> str:
        return self.project.folder.resolve().name.removesuffix("-labels")

    def show(self, items: list[Item] | tuple[Item, ...]) -> list[dict[str, Any]]:
        """Items with what is needed to show them."""
        shown = self.examples.shown([item.id for item in items])
        return [asdict(item) | {"shown": one} for item, one in zip(items, shown)]


class PlainJSON(JSONResponse):
    """JSON in ASCII: whatever text comes out of a pool, it can be sent."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class SignIn(Exception):
    """A page that needs someone signed in."""


def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


def visitor(request: Request) -> Person | None:
    access = site_of(request).access
    return access.person(request.cookies.get(access.cookie))


# What routes depend on is async although it never waits: FastAPI would send it to another thread
# and back.


async def site_of_route(request: Request) -> Site:
    return site_of(request)


async def person_of_page(request: Request) -> Person:
    if found := visitor(request):
        return found
    raise SignIn


async def person_of_api(request: Request) -> Person:
    if found := visitor(request):
        return found
    raise HTTPException(401, "sign in first")


async def same_session(request: Request) -> None:
    """A change must come from a page of this session: no other site can make a browser send it."""
    import hmac

    found = visitor(request)
    if found is None:
        raise HTTPException(401, "sign in first")
    given = request.headers.get("x-csrf-token")
    if given is None and "form" in request.headers.get("content-type", ""):
        value = (await request.form()).get("csrf")
        given = value if isinstance(value, str) else None
    if given is None or not hmac.compare_digest(given.encode(), found.csrf.encode()):
        raise HTTPException(403, "this request did not come from the page: reload it and try again")
    same_site(request)


def same_site(request: Request) -> None:
    """Browsers say where a change comes from: another site's is refused."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise HTTPException(403, "this request came from another site")


def set_cookie(response: Any, request: Request, value: str) -> None:
    from tailor.web.sessions import LIFETIME

    response.set_cookie(
        site_of(request).access.cookie,
        value,
        max_age=int(LIFETIME),
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )


SiteOf = Annotated[Site, Depends(site_of_route)]
PageUser = Annotated[Person, Depends(person_of_page)]
ApiUser = Annotated[Person, Depends(person_of_api)]
