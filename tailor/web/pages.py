"""The pages."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from tailor.errors import InputError
from tailor.web.access import Person
from tailor.web.charts import accuracy_line, arm_bars, class_bars
from tailor.web.flash_messages import FlashMessage
from tailor.web.schemas import NewName, Offset
from tailor.web.site import PageUser, Site, SiteOf, person_of_page, same_session

router = APIRouter(
    dependencies=[Depends(person_of_page)],
    include_in_schema=False,
    default_response_class=HTMLResponse,
)
changes = APIRouter(dependencies=[Depends(same_session)], include_in_schema=False)

GRID = 60  # examples on a page of the review


def render(
    site: Site, request: Request, person: Person | None, template: str, **more: Any
) -> Response:
    """A page; `data` is what its script gets to know. Strangers get to know nothing but the
    project's name.
    """
    data: dict[str, Any] = {}
    if person is not None:
        data = {
            "csrf": person.csrf,
            "name": person.name,
            "project": site.key,
            "classes": list(site.coordinator.classes),
            "multi": site.coordinator.kind == "multi-label",
        }
    known = {
        "site": site,
        "person": person,
        "data": data | more.pop("data", {}),
        "mode": site.access.mode,
    }
    return site.templates.TemplateResponse(request, template, known | more)


@router.get("/")
def label(site: SiteOf, person: PageUser, request: Request) -> Response:
    what = {"image": "picture", "text": "text"}.get(site.examples.kind, "example")
    multi = site.coordinator.kind == "multi-label"
    question = f"What is in this {what}?" if multi else f"What is this {what}?"
    data = {"question": question, "kind": site.examples.kind}
    return render(site, request, person, "label.html", data=data, what=what, **panel_data(site))


@router.get("/panel")
def panel(site: SiteOf, person: PageUser, request: Request) -> Response:
    """The numbers beside the picture, drawn anew."""
    site.coordinator.heartbeat(person.name)
    return site.templates.TemplateResponse(request, "panel.html", panel_data(site))


def panel_data(site: Site) -> dict[str, Any]:
    now = site.coordinator.overview()
    return {
        "now": now,
        "line": accuracy_line(now["holdout"]),
        "bars": class_bars(now["counts"]),
        "arms": arm_bars(now["arms"]),
    }


# ---------------------------------------------------------------------- review


@router.get("/review")
def review(
    site: SiteOf,
    person: PageUser,
    request: Request,
    klass: str = "",
    arm: str = "",
    annotator: str = "",
    disagrees: bool = False,
    offset: Offset = 0,
) -> Response:
    page = site.coordinator.review.labelled(
        klass=klass or None,
        arm=arm or None,
        annotator=annotator or None,
        disagrees=disagrees,
        offset=offset,
        limit=GRID,
    )
    now = site.coordinator.overview()
    chosen = {
        "klass": klass,
        "arm": arm,
        "annotator": annotator,
        "disagrees": "true" if disagrees else "",
    }

    def there(start: int) -> str:
        return "/review?" + urlencode({k: v for k, v in chosen.items() if v} | {"offset": start})

    return render(
        site,
        request,
        person,
        "review.html",
        items=site.show(page.items),
        total=page.total,
        offset=offset,
        before=there(max(0, offset - GRID)) if offset else None,
        after=there(offset + GRID) if offset + GRID < page.total else None,
        chosen=chosen,
        now=now,
        all_arms=[one["name"] for one in now["arms"]],
        annotators=[one["name"] for one in now["annotators"]],
    )


# ---------------------------------------------------------------------- classes


@router.get("/classes")
def classes(site: SiteOf, person: PageUser, request: Request) -> Response:
    now = site.coordinator.overview()
    said = site.notes.take(person.cookie)
    return render(
        site,
        request,
        person,
        "classes.html",
        bars=class_bars(now["counts"]),
        said=said,
        merge=site.coordinator.class_editor.last_merge(),
    )


@changes.post("/classes/merge")
def merge_classes(
    site: SiteOf,
    person: PageUser,
    request: Request,
    old: Annotated[str, Form(max_length=1000)] = "",
    into: Annotated[str, Form(max_length=1000)] = "",
    confirmed: Annotated[bool, Form()] = False,
) -> Response:
    """Asks first: it says how many labels move, and what becomes of them."""
    coordinator = site.coordinator
    if confirmed:
        done = f"{old} is part of {into} now."
        return _changed(
            site, person, lambda: coordinator.class_editor.merge(old, into, person.name), done
        )
    try:
        moving, there = coordinator.class_editor.labels_to_merge(
            old, into
        )  # or why it can't be done, before anybody is asked
    except InputError as error:
        return _back(site, person, str(error), is_problem=True)
    multi = coordinator.kind == "multi-label"
    return render(
        site,
        request,
        person,
        "merge.html",
        old=old,
        into=into,
        moving=moving,
        there=there,
        multi=multi,
    )


@changes.post("/classes/undo")
def undo_merge(site: SiteOf, person: PageUser, merge: Annotated[int, Form(ge=1)]) -> Response:
    def undo() -> None:
        site.coordinator.class_editor.undo_merge(merge, person.name)

    return _changed(site, person, undo, "The merge is taken back: its labels are what they were.")


@changes.post("/classes/add")
def add_class(site: SiteOf, person: PageUser, name: Annotated[NewName, Form()]) -> Response:
    return _changed(
        site,
        person,
        lambda: site.coordinator.class_editor.add(name, person.name),
        f"{name} is a class now.",
    )


@changes.post("/classes/rename")
def rename_class(
    site: SiteOf,
    person: PageUser,
    name: Annotated[NewName, Form()],
    old: Annotated[str, Form(max_length=1000)] = "",
) -> Response:
    done = f"{old} is called {name} now."
    return _changed(
        site, person, lambda: site.coordinator.class_editor.rename(old, name, person.name), done
    )


def _changed(site: Site, person: Person, change: Callable[[], object], done: str) -> Response:
    """Back to the classes, with a word on what was done or why not."""
    try:
        change()
    except InputError as error:
        return _back(site, person, str(error), is_problem=True)
    return _back(site, person, done)


def _back(site: Site, person: Person, text: str, *, is_problem: bool = False) -> Response:
    site.notes.leave(person.cookie, FlashMessage(text, is_problem))
    return RedirectResponse("/classes", 303)


# ---------------------------------------------------------------------- team


@router.get("/team")
def team(site: SiteOf, person: PageUser, request: Request, offset: Offset = 0) -> Response:
    page = site.coordinator.review.disagreements(offset, GRID)
    return render(
        site,
        request,
        person,
        "team.html",
        now=site.coordinator.overview(),
        agreement=site.coordinator.review.agreement(),
        items=site.show(page.items),
        total=page.total,
        offset=offset,
        clock=time.time(),
    )
