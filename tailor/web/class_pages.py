"""The page on which classes are changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from tailor.annotation.roles import Right
from tailor.errors import InputError
from tailor.web.access import Visitor
from tailor.web.charts import class_bars
from tailor.web.flash_messages import FlashMessage
from tailor.web.rendering import is_multi_label, render
from tailor.web.schemas import NewName
from tailor.web.site import (
    CurrentSite,
    PageVisitor,
    Site,
    check_same_session,
    needs,
    visitor_of_page,
)

router = APIRouter(
    dependencies=[Depends(visitor_of_page)],
    include_in_schema=False,
    default_response_class=HTMLResponse,
)
changes = APIRouter(dependencies=[Depends(check_same_session)], include_in_schema=False)

#: the name of a class as a form sends it
ClassName = Annotated[str, Form(max_length=1000)]


@router.get("/classes")
def classes(site: CurrentSite, visitor: PageVisitor, request: Request) -> Response:
    return render(
        site,
        request,
        visitor,
        "classes.html",
        bars=class_bars(site.coordinator.overview()["counts"]),
        flash_message=site.flash_messages.take(visitor.cookie),
        merge=site.coordinator.class_editor.last_merge(),
    )


@changes.post("/classes/merge", dependencies=[needs(Right.CHANGE_CLASSES)])
def merge_classes(
    site: CurrentSite,
    visitor: PageVisitor,
    request: Request,
    old: ClassName = "",
    into: ClassName = "",
    confirmed: Annotated[bool, Form()] = False,
) -> Response:
    """Asks first: it says how many labels move, and what becomes of them."""
    class_editor = site.coordinator.class_editor
    if confirmed:

        def merge() -> None:
            class_editor.merge(old, into, visitor.name)

        return _change(site, visitor, merge, f"{old} is part of {into} now.")
    try:
        # or why it can't be done, before anybody is asked
        moving_labels, present_labels = class_editor.labels_to_merge(old, into)
    except InputError as error:
        return _back(site, visitor, str(error), is_problem=True)
    return render(
        site,
        request,
        visitor,
        "merge.html",
        old=old,
        into=into,
        moving_labels=moving_labels,
        present_labels=present_labels,
        multi=is_multi_label(site),
    )


@changes.post("/classes/undo", dependencies=[needs(Right.CHANGE_CLASSES)])
def undo_merge(
    site: CurrentSite, visitor: PageVisitor, merge: Annotated[int, Form(ge=1)]
) -> Response:
    def undo() -> None:
        site.coordinator.class_editor.undo_merge(merge, visitor.name)

    return _change(site, visitor, undo, "The merge is taken back: its labels are what they were.")


@changes.post("/classes/add", dependencies=[needs(Right.CHANGE_CLASSES)])
def add_class(
    site: CurrentSite, visitor: PageVisitor, name: Annotated[NewName, Form()]
) -> Response:
    def add() -> None:
        site.coordinator.class_editor.add(name, visitor.name)

    return _change(site, visitor, add, f"{name} is a class now.")


@changes.post("/classes/rename", dependencies=[needs(Right.CHANGE_CLASSES)])
def rename_class(
    site: CurrentSite,
    visitor: PageVisitor,
    name: Annotated[NewName, Form()],
    old: ClassName = "",
) -> Response:
    def rename() -> None:
        site.coordinator.class_editor.rename(old, name, visitor.name)

    return _change(site, visitor, rename, f"{old} is called {name} now.")


def _change(site: Site, visitor: Visitor, change: Callable[[], None], success: str) -> Response:
    """Do it, and go back to the classes with a word on that or on why not."""
    try:
        change()
    except InputError as error:
        return _back(site, visitor, str(error), is_problem=True)
    return _back(site, visitor, success)


def _back(site: Site, visitor: Visitor, text: str, *, is_problem: bool = False) -> Response:
    site.flash_messages.leave(visitor.cookie, FlashMessage(text, is_problem))
    return RedirectResponse("/classes", 303)
