"""Signing in and out."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse

from tailor.errors import InputError
from tailor.web.access import TooManyTries
from tailor.web.rendering import render
from tailor.web.site import (
    CurrentSite,
    PageVisitor,
    Site,
    check_same_session,
    check_same_site,
    client_address,
    find_visitor,
    set_cookie,
)

#: a cookie that says nothing but that cookies are kept
PROBE = "tailor-probe"
NO_COOKIES = (
    "Your browser keeps no cookies of this page, and without one it can't know you again. Allow "
    "cookies for this site, then come back."
)

#: pages to go to after signing in
OWN_PAGES = {
    *("/review", "/model", "/classes", "/team", "/history", "/export"),
    *("/users", "/password"),
}
router = APIRouter(include_in_schema=False)
changes = APIRouter(dependencies=[Depends(check_same_session)], include_in_schema=False)


@changes.post("/name")
def rename(
    site: CurrentSite,
    visitor: PageVisitor,
    request: Request,
    name: Annotated[str, Form(max_length=200)],
) -> Response:
    # What the old name holds stays: another browser may use it too.
    cookie = site.access.rename(name, visitor.cookie, client_address(request))
    response = RedirectResponse("/", 303)
    set_cookie(response, request, cookie)
    return response


@changes.post("/logout")
def logout(site: CurrentSite, visitor: PageVisitor, request: Request) -> Response:
    site.coordinator.release(visitor.name)
    site.access.sign_out(visitor, client_address(request))
    response = RedirectResponse("/login", 303)
    response.delete_cookie(site.access.cookie_name)
    return response


@router.get("/login")
def login(
    site: CurrentSite,
    request: Request,
    to: Annotated[str, Query(max_length=200)] = "/",
    entered: bool = False,
) -> Response:
    """The page to sign in on; where anyone may come in, visitors are let in at once.

    entered: that was done just now, and the visitor comes back with the cookie; or without, where
    the browser keeps none.
    """
    if site.access.mode != "open":
        response = _sign_in_page(site, request, to=to)
        response.set_cookie(
            PROBE,
            "1",
            httponly=True,
            samesite="lax",
        )
        return response
    if find_visitor(request) is not None:
        return RedirectResponse(own_page(to), 303)
    if entered:
        return _no_cookies(site, request)
    if _is_embedded(request):
        raise HTTPException(403, "this page can't be part of another")
    query = urlencode({"to": own_page(to), "entered": "true"})
    response = RedirectResponse(f"/login?{query}", 303)
    cookie = site.access.enter(client_address(request))
    set_cookie(response, request, cookie)
    return response


@router.post("/login", dependencies=[Depends(check_same_site)])
async def sign_in(
    site: CurrentSite,
    request: Request,
    name: Annotated[str, Form(max_length=200)],
    secret: Annotated[str, Form(max_length=1024)],
    to: Annotated[str, Form(max_length=200)] = "/",
    probed: Annotated[bool, Form()] = False,
) -> Response:
    """probed: it comes from the page to sign in on, which set a cookie. Without cookies nobody
    could be told from a stranger.
    """
    if probed and PROBE not in request.cookies:
        return _no_cookies(site, request)
    try:
        cookie = await to_thread.run_sync(
            site.access.sign_in,
            name,
            secret,
            client_address(request),
            limiter=site.hashing,
        )
    except InputError as error:
        if isinstance(error, TooManyTries):
            status = 429
        else:
            status = 422
        return _sign_in_page(
            site,
            request,
            to=to,
            problem=str(error),
            status=status,
        )
    if cookie is None:
        return _sign_in_page(
            site,
            request,
            to=to,
            problem="That did not fit. Look at the name and try again.",
            status=401,
        )
    response = RedirectResponse(own_page(to), 303)
    set_cookie(response, request, cookie)
    return response


def _sign_in_page(
    site: Site,
    request: Request,
    *,
    to: str,
    problem: str = "",
    status: int = 200,
) -> Response:
    response = render(
        site,
        request,
        None,
        "login.html",
        to=to,
        problem=problem,
    )
    response.status_code = status
    return response


def _no_cookies(site: Site, request: Request) -> Response:
    response = render(
        site,
        request,
        None,
        "problem.html",
        title="Cookies are needed",
        text=NO_COOKIES,
    )
    response.status_code = 403
    return response


def _is_embedded(request: Request) -> bool:
    """Another site's picture, frame or script, as browsers say: each would open a session that
    nobody asked for.
    """
    site = request.headers.get("sec-fetch-site")
    destination = request.headers.get("sec-fetch-dest")
    return site == "cross-site" and destination != "document"


def own_page(path: str) -> str:
    """One of the pages to go to after signing in; never another site, however it is written."""
    if path in OWN_PAGES:
        return path
    return "/"
