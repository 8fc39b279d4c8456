"""The pages on which users are managed, and on which each changes his password."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from tailor.annotation.roles import ROLES, Right
from tailor.errors import InputError
from tailor.web.access import TooManyTries, Visitor
from tailor.web.flash_messages import FlashMessage
from tailor.web.rendering import render
from tailor.web.site import (
    CurrentSite,
    PageVisitor,
    Site,
    check_same_session,
    client_address,
    needs,
    set_cookie,
    visitor_of_page,
)

router = APIRouter(
    dependencies=[Depends(visitor_of_page)],
    include_in_schema=False,
    default_response_class=HTMLResponse,
)
changes = APIRouter(dependencies=[Depends(check_same_session)], include_in_schema=False)

SHOWN = 100  # sign-ins and changes on the page

UserName = Annotated[str, Form(max_length=200)]
Password = Annotated[str, Form(max_length=1024)]
RoleName = Annotated[str, Form(max_length=20)]


@router.get("/users", dependencies=[needs(Right.MANAGE_USERS)])
def users(site: CurrentSite, visitor: PageVisitor, request: Request) -> Response:
    users_of_run = site.access.users
    all_changes = users_of_run.changes
    undone = {}
    for change in all_changes:
        if change.undoes is not None:
            undone[change.undoes] = change
    return render(
        site,
        request,
        visitor,
        "users.html",
        users=[(name, users_of_run.role(name)) for name in users_of_run.names],
        roles=list(ROLES),
        rights={role: _rights_in_words(role) for role in ROLES},
        user_changes=all_changes[: -SHOWN - 1 : -1],
        undone=undone,
        sign_ins=site.access.sign_in_log.latest(SHOWN),
        flash_message=site.flash_messages.take(visitor.cookie),
        now=time.time(),
    )


def _rights_in_words(role: str) -> list[str]:
    """What a role may do, in the order of Right."""
    words = []
    for right in Right:
        if right in ROLES[role]:
            words.append(right.value)
    return words


@changes.post("/users/add", dependencies=[needs(Right.MANAGE_USERS)])
async def add_user(
    site: CurrentSite,
    visitor: PageVisitor,
    name: UserName,
    secret: Password,
    role: RoleName,
) -> Response:
    def add() -> None:
        _check_has_users(site)
        if site.access.users.role(name.strip()) is not None:
            raise InputError(f"{name.strip()!r} is a user already")
        site.access.users.add(name, secret, role, by=visitor.name)

    return await _change(site, visitor, add, f"{name.strip()} may sign in now, as {role}.")


@changes.post("/users/role", dependencies=[needs(Right.MANAGE_USERS)])
async def set_role(
    site: CurrentSite, visitor: PageVisitor, name: UserName, role: RoleName
) -> Response:
    def change() -> None:
        site.access.users.set_role(name, role, by=visitor.name)

    return await _change(site, visitor, change, f"{name} is {role} now.")


@changes.post("/users/remove", dependencies=[needs(Right.MANAGE_USERS)])
async def remove_user(site: CurrentSite, visitor: PageVisitor, name: UserName) -> Response:
    def remove() -> None:
        if name == visitor.name:
            raise InputError("you can't remove yourself: another owner can")
        site.access.users.remove(name, by=visitor.name)

    return await _change(site, visitor, remove, f"{name} may not sign in any more.")


@changes.post("/users/undo", dependencies=[needs(Right.MANAGE_USERS)])
async def undo_change(
    site: CurrentSite, visitor: PageVisitor, change: Annotated[int, Form(ge=1, le=2**53)]
) -> Response:
    def undo() -> None:
        site.access.users.undo(change, by=visitor.name)

    return await _change(site, visitor, undo, "It is taken back.")


def _check_has_users(site: Site) -> None:
    """The first user shuts out everybody who came in otherwise: that is for whoever starts the
    server.
    """
    if site.access.mode != "users":
        raise InputError("there are no users here yet: add the first with `tailor users add NAME`")


async def _change(
    site: Site, visitor: Visitor, change: Callable[[], None], success: str
) -> Response:
    """Do it, and go back to the users with a word on that or on why not."""
    message = FlashMessage(success)
    try:
        await to_thread.run_sync(change, limiter=site.hashing)
    except InputError as error:
        message = FlashMessage(str(error), is_problem=True)
    site.flash_messages.leave(visitor.cookie, message)
    return RedirectResponse("/users", 303)


@router.get("/password")
def password(site: CurrentSite, visitor: PageVisitor, request: Request) -> Response:
    return _password_page(site, request, visitor)


@changes.post("/password/change")
async def change_password(
    site: CurrentSite,
    visitor: PageVisitor,
    request: Request,
    old: Password,
    new: Password,
    again: Password,
) -> Response:
    """All other sessions of this user end; this browser goes on in a new one."""
    if new != again:
        problem = "the new password and its repetition differ"
        return _password_page(site, request, visitor, problem, 422)
    try:
        cookie = await to_thread.run_sync(
            site.access.change_password,
            visitor,
            old,
            new,
            client_address(request),
            limiter=site.hashing,
        )
    except InputError as error:
        if isinstance(error, TooManyTries):
            status = 429
        else:
            status = 422
        return _password_page(site, request, visitor, str(error), status)
    if cookie is None:
        return _password_page(site, request, visitor, "the old password is another one", 401)
    site.flash_messages.leave(cookie, FlashMessage("Your password is changed."))
    response = RedirectResponse("/password", 303)
    set_cookie(response, request, cookie)
    return response


def _password_page(
    site: Site,
    request: Request,
    visitor: Visitor,
    problem: str = "",
    status: int = 200,
) -> Response:
    message = site.flash_messages.take(visitor.cookie)
    if problem:
        message = FlashMessage(f"{problem}.", is_problem=True)
    response = render(site, request, visitor, "password.html", flash_message=message)
    response.status_code = status
    return response
