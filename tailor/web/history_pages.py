"""The page that shows who decided what over others or for all, and takes it back."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from tailor.annotation.roles import NotAllowed
from tailor.errors import InputError
from tailor.web.flash_messages import FlashMessage
from tailor.web.rendering import render
from tailor.web.site import CurrentSite, PageVisitor, check_same_session, visitor_of_page

router = APIRouter(
    dependencies=[Depends(visitor_of_page)],
    include_in_schema=False,
    default_response_class=HTMLResponse,
)
changes = APIRouter(dependencies=[Depends(check_same_session)], include_in_schema=False)

SHOWN = 200  # acts on the page


@router.get("/history")
def history(site: CurrentSite, visitor: PageVisitor, request: Request) -> Response:
    return render(
        site,
        request,
        visitor,
        "history.html",
        acts=site.coordinator.act_history.latest(SHOWN, role=visitor.role),
        flash_message=site.flash_messages.take(visitor.cookie),
        now=time.time(),
    )


@changes.post("/history/undo")
def undo(
    site: CurrentSite,
    visitor: PageVisitor,
    event: Annotated[int, Form(ge=1, le=2**53)],
    of: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    message = FlashMessage("It is taken back: all is as it was before.")
    try:
        site.coordinator.act_history.undo(event, of, visitor.name, role=visitor.role)
    except NotAllowed:
        raise
    except InputError as error:
        message = FlashMessage(str(error), is_problem=True)
    site.flash_messages.leave(visitor.cookie, message)
    return RedirectResponse("/history", 303)
