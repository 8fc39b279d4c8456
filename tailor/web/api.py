"""What the pages' scripts ask for: JSON in and out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response

from tailor.annotation.items import Item, ItemPage
from tailor.annotation.roles import Right, check_may
from tailor.pools.base import Unreadable
from tailor.web import schemas
from tailor.web.access import Visitor
from tailor.web.examples import EncodedPicture
from tailor.web.explanations import explain_to_annotator
from tailor.web.schemas import Count, Id, Offset, Problem
from tailor.web.site import (
    ApiVisitor,
    CurrentSite,
    PlainJSON,
    Site,
    check_same_session,
    needs,
    visitor_of_api,
)

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem} for status in (400, 401, 403, 404, 409, 413, 421, 422, 429, 503)
}
router = APIRouter(
    prefix="/api",
    dependencies=[Depends(visitor_of_api)],
    default_response_class=PlainJSON,
    responses=REFUSALS,
)
changes = APIRouter(
    prefix="/api",
    dependencies=[Depends(check_same_session)],
    default_response_class=PlainJSON,
    responses=REFUSALS,
)
pictures = APIRouter(dependencies=[Depends(visitor_of_api)], responses=REFUSALS)


# ---------------------------------------------------------------------- labelling


@router.get("/session")
def session(visitor: ApiVisitor) -> PlainJSON:
    """Who I am, what I may do, and the token that changes need."""
    return PlainJSON({"name": visitor.name, "role": visitor.role, "csrf": visitor.csrf})


@router.get("/next")
def next_examples(
    site: CurrentSite, visitor: ApiVisitor, n: Annotated[int, Query(ge=1, le=50)] = 1
) -> PlainJSON:
    """Examples to label, leased to me: first those I hold already; and the classes, which may have
    changed.
    """
    next_items = site.coordinator.next(visitor.name, n)
    return PlainJSON(
        {
            "items": _with_tickets(site, visitor, next_items.items),
            "state": next_items.state,
            "reason": next_items.reason,
            "classes": site.coordinator.classes,
        }
    )


def _with_tickets(site: Site, visitor: Visitor, items: Sequence[Item]) -> list[dict[str, Any]]:
    """Each with what says later, after a restart too, that it was handed to this visitor."""
    shown_items = site.show(items)
    for item in shown_items:
        item["ticket"] = site.tickets.issue(visitor.name, item["id"])
    return shown_items


@router.get("/history")
def history(site: CurrentSite, visitor: ApiVisitor, n: Count = 20) -> PlainJSON:
    """My latest answers, newest first."""
    items = site.coordinator.history(visitor.name, n)
    return PlainJSON({"items": site.show(items)})


@changes.post("/answer")
def answer(site: CurrentSite, visitor: ApiVisitor, body: schemas.AnswerBody) -> PlainJSON:
    """Take an answer in, or correct one. It is safe when this returns.

    Refused (409): what was not asked of me and is not marked as unasked by one who may, what
    another has answered where I may not overwrite it, and what would exceed the budget.
    """
    if body.unasked:
        check_may(visitor.role, Right.TELL_UNASKED)
    receipt = site.coordinator.answer(
        visitor.name,
        body.id,
        body.label,
        role=visitor.role,
        unasked=body.unasked,
        was_asked=site.tickets.is_valid(visitor.name, body.id, body.ticket),
    )
    return PlainJSON(asdict(receipt))


@changes.post("/leave")
def leave(site: CurrentSite, visitor: ApiVisitor) -> PlainJSON:
    """Give back what I hold."""
    released = site.coordinator.release(visitor.name)
    return PlainJSON({"released": released})


# ---------------------------------------------------------------------- watching


@router.get("/overview")
def overview(site: CurrentSite, visitor: ApiVisitor) -> PlainJSON:
    """Progress, pace, classes, hold-out, arms, annotators."""
    site.coordinator.heartbeat(visitor.name)
    return PlainJSON(site.coordinator.overview())


@router.get("/why")
def why(site: CurrentSite, visitor: ApiVisitor, id: Annotated[Id, Query()]) -> PlainJSON:
    """Why this example was chosen."""
    explanation = site.coordinator.why(id)
    return PlainJSON(explain_to_annotator(explanation))


@router.get("/labelled")
def labelled(
    site: CurrentSite,
    visitor: ApiVisitor,
    klass: str | None = None,
    arm: str | None = None,
    annotator: str | None = None,
    disagrees: bool = False,
    model_says: str | None = None,
    holdout: bool = False,
    doubtful_first: bool = False,
    offset: Offset = 0,
    limit: Count = 100,
) -> PlainJSON:
    """What is labelled, by class, arm, annotator, what a model that has not learned the label says,
    or where it disagrees.
    """
    page = site.coordinator.review.labelled(
        klass=klass,
        arm=arm,
        annotator=annotator,
        disagrees=disagrees,
        model_says=model_says,
        holdout=holdout,
        doubtful_first=doubtful_first,
        offset=offset,
        limit=limit,
    )
    return _page_response(site, page)


@router.get("/agreement")
def agreement(site: CurrentSite, visitor: ApiVisitor) -> PlainJSON:
    """How often two people said the same."""
    return PlainJSON(site.coordinator.review.agreement())


@router.get("/disagreements")
def disagreements(
    site: CurrentSite,
    visitor: ApiVisitor,
    offset: Offset = 0,
    limit: Count = 100,
) -> PlainJSON:
    """Examples about which people differ."""
    page = site.coordinator.review.disagreements(offset, limit)
    return _page_response(site, page)


def _page_response(site: Site, page: ItemPage) -> PlainJSON:
    items = site.show(page.items)
    return PlainJSON({"items": items, "total": page.total})


# ---------------------------------------------------------------------- changing


@changes.post("/settle", dependencies=[needs(Right.SETTLE)])
def settle(site: CurrentSite, visitor: ApiVisitor, body: schemas.SettleBody) -> PlainJSON:
    """Decide an example about which people differ."""
    receipt = site.coordinator.settle(body.id, body.label, visitor.name, role=visitor.role)
    return PlainJSON(asdict(receipt))


@changes.post("/classes/add", dependencies=[needs(Right.CHANGE_CLASSES)])
def add_class(site: CurrentSite, visitor: ApiVisitor, body: schemas.AddClass) -> PlainJSON:
    """A new class, at the end of the list."""
    classes = site.coordinator.class_editor.add(body.name, visitor.name)
    return PlainJSON({"classes": classes})


@changes.post("/classes/rename", dependencies=[needs(Right.CHANGE_CLASSES)])
def rename_class(site: CurrentSite, visitor: ApiVisitor, body: schemas.RenameClass) -> PlainJSON:
    """Another name for a class; its labels stay."""
    classes = site.coordinator.class_editor.rename(body.old, body.new, visitor.name)
    return PlainJSON({"classes": classes})


@changes.post("/classes/merge", dependencies=[needs(Right.CHANGE_CLASSES)])
def merge_classes(site: CurrentSite, visitor: ApiVisitor, body: schemas.MergeClasses) -> PlainJSON:
    """Make one class part of another."""
    classes = site.coordinator.class_editor.merge(body.old, body.into, visitor.name)
    return PlainJSON({"classes": classes})


@router.get("/classes/merged")
def last_merge(site: CurrentSite, visitor: ApiVisitor) -> PlainJSON:
    """The merge that can be taken back: its event, how many labels come back, how many answers
    since will stay.
    """
    merge = site.coordinator.class_editor.last_merge()
    return PlainJSON({"merge": merge})


@changes.post("/classes/undo", dependencies=[needs(Right.CHANGE_CLASSES)])
def undo_merge(site: CurrentSite, visitor: ApiVisitor, body: schemas.UndoMerge) -> PlainJSON:
    """Take the latest merge back."""
    classes = site.coordinator.class_editor.undo_merge(body.merge, visitor.name)
    return PlainJSON({"classes": classes})


@router.get("/acts")
def latest_acts(site: CurrentSite, visitor: ApiVisitor, n: Count = 100) -> PlainJSON:
    """What was settled, overwritten, told unasked and done to the classes, with its author, newest
    first.
    """
    act_items = site.coordinator.act_history.latest(n, role=visitor.role)
    return PlainJSON({"acts": [asdict(act) for act in act_items]})


@changes.post("/acts/undo")
def undo_act(site: CurrentSite, visitor: ApiVisitor, body: schemas.UndoAct) -> PlainJSON:
    """Take an act back, by one who could have done it."""
    site.coordinator.act_history.undo(body.event, body.of, visitor.name, role=visitor.role)
    return PlainJSON({"classes": site.coordinator.classes})


# ---------------------------------------------------------------------- description


@pictures.get("/openapi.json", include_in_schema=False)
def description(request: Request) -> PlainJSON:
    """All of this, for programs that make requests. For those who are signed in: others need not
    know.
    """
    app: FastAPI = request.app
    return PlainJSON(app.openapi())


# ---------------------------------------------------------------------- pictures

#: in a grid, on the page, zoomed in: so few that the cache holds them all
Side = Literal["320", "1600", "4096"]


@pictures.get("/picture", response_class=Response)
async def picture(site: CurrentSite, id: Annotated[Id, Query()], side: Side = "1600") -> Response:
    """The picture with this id, its longer side at most so many pixels."""
    pixels = int(side)
    result: EncodedPicture | Unreadable | None = site.examples.cached(id, pixels)
    if result is None:
        result = await to_thread.run_sync(
            site.examples.picture,
            id,
            pixels,
            limiter=site.decoding,
        )
    if result is None:
        raise HTTPException(404, "no picture with this id")
    if isinstance(result, Unreadable):
        raise HTTPException(404, f"this picture can't be read: {result.reason}")
    return Response(
        result.content,
        media_type=result.media_type,
        headers={"Cache-Control": "private, max-age=3600"},
    )
