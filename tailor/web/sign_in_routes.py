"""Signing in and out."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse

from tailor.errors import InputError
from tailor.web.access import TooOften
from tailor.web.pages import render
from tailor.web.site import PageUser, Site, SiteOf, same_session, same_site, set_cookie, visitor

#: a cookie that says nothing but that cookies are kept
PROBE = "tailor-probe"
NO_COOKIES = (
    "Your browser keeps no cookies of this page, and without one it can't know you again. Allow "
    "cookies for this site, "
    "then come back."
)

router = APIRouter(include_in_schema=False)
changes = APIRouter(dependencies=[Depends(same_session)], include_in_schema=False)


@changes.post("/name")
def rename(
    site: SiteOf, person: PageUser, request: Request, name: Annotated[str, Form(max_length=200)]
) -> Response:
    response = RedirectResponse(
        "/", 303
    )  # what the old name holds stays: another browser may use it too
    set_cookie(response, request, site.access.rename(name, person.cookie, _address(request)))
    return response


@changes.post("/logout")
def logout(site: SiteOf, person: PageUser) -> Response:
    site.coordinator.release(person.name)
    site.access.sessions.close(person.cookie)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(site.access.cookie)
    return response


@router.get("/login")
def login(
    site: SiteOf,
    request: Request,
    to: Annotated[str, Query(max_length=200)] = "/",
    entered: bool = False,
) -> Response:
    """Where anyone may come in he is let in at once. entered: he was, just now, and comes back with
    the cookie; or without, where the browser keeps none.
    """
    if site.access.mode != "open":
        response = render(site, request, None, "login.html", to=to, problem="")
        response.set_cookie(PROBE, "1", httponly=True, samesite="lax")
        return response
    if visitor(request) is not None:
        return RedirectResponse(own_page(to), 303)
    if entered:
        return _no_cookies(site, request)
    if _is_embedded(request):
        raise HTTPException(403, "this page can't be part of another")
    response = RedirectResponse(f"/login?{urlencode({'to': own_page(to), 'entered': 'true'})}", 303)
    set_cookie(response, request, site.access.enter(_address(request)))
    return response


@router.post("/login", dependencies=[Depends(same_site)])
async def sign_in(
    site: SiteOf,
    request: Request,
    name: Annotated[str, Form(max_length=200)],
    secret: Annotated[str, Form(max_length=1024)],
    to: Annotated[str, Form(max_length=200)] = "/",
    probed: Annotated[bool, Form()] = False,
) -> Response:
    """probed: it comes from the form, which had a cookie set. Without it nobody could be told from
    a stranger.
    """
    if probed and PROBE not in request.cookies:
        return _no_cookies(site, request)
    try:
        cookie = await to_thread.run_sync(
            site.access.sign_in, name, secret, _address(request), limiter=site.hashing
        )
        problem = "" if cookie else "That did not fit. Look at the name and try again."
        status = 401
    except InputError as error:
        cookie = None
        problem = str(error)
        status = 429 if isinstance(error, TooOften) else 422
    if cookie is None:
        response = render(site, request, None, "login.html", to=to, problem=problem)
        response.status_code = status
        return response
    response = RedirectResponse(own_page(to), 303)
    set_cookie(response, request, cookie)
    return response


def _no_cookies(site: Site, request: Request) -> Response:
    response = render(
        site, request, None, "problem.html", title="Cookies are needed", text=NO_COOKIES
    )
    response.status_code = 403
    return response


def _address(request: Request) -> str:
    return request.client.host if request.client else "nobody"


def _is_embedded(request: Request) -> bool:
    """Another site's picture, frame or script, as browsers say: each would open a session that
    nobody asked for.
    """
    asked = request.headers
    return asked.get("sec-fetch-site") == "cross-site" and asked.get("sec-fetch-dest") != "document"


def own_page(path: str) -> str:
    """One of the pages to go to after signing in; never another site, however it is written."""
    return path if path in ("/review", "/classes", "/team", "/export") else "/"
