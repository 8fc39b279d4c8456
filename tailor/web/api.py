"""What the script asks for: JSON in and out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response

from tailor.pools.base import Unreadable
from tailor.web import schemas
from tailor.web.examples import Picture
from tailor.web.schemas import Id, Many, Offset, Problem
from tailor.web.site import ApiUser, PlainJSON, SiteOf, person_of_api, same_session

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem} for status in (400, 401, 403, 404, 413, 421, 422, 429, 503)
}
router = APIRouter(
    prefix="/api",
    dependencies=[Depends(person_of_api)],
    default_response_class=PlainJSON,
    responses=REFUSALS,
)
changes = APIRouter(
    prefix="/api",
    dependencies=[Depends(same_session)],
    default_response_class=PlainJSON,
    responses=REFUSALS,
)
pictures = APIRouter(dependencies=[Depends(person_of_api)], responses=REFUSALS)


# ---------------------------------------------------------------------- labelling


@router.get("/session")
def session(person: ApiUser) -> PlainJSON:
    """Who I am, and the token that changes need."""
    return PlainJSON({"name": person.name, "csrf": person.csrf})


@router.get("/next")
def next_examples(
    site: SiteOf, person: ApiUser, n: Annotated[int, Query(ge=1, le=50)] = 1
) -> PlainJSON:
    """Examples to label, leased to me: first those I hold already; and the classes, which may have
    changed.
    """
    handed = site.coordinator.next(person.name, n)
    classes = site.coordinator.classes
    return PlainJSON(
        {
            "items": site.show(handed.items),
            "state": handed.state,
            "reason": handed.reason,
            "classes": classes,
        }
    )


@router.get("/history")
def history(site: SiteOf, person: ApiUser, n: Many = 20) -> PlainJSON:
    """My latest answers, newest first."""
    return PlainJSON({"items": site.show(site.coordinator.history(person.name, n))})


@changes.post("/answer")
def answer(site: SiteOf, person: ApiUser, given: schemas.AnswerBody) -> PlainJSON:
    """Take an answer in, or correct one. It is safe when this returns."""
    return PlainJSON(asdict(site.coordinator.answer(person.name, given.id, given.label)))


@changes.post("/leave")
def leave(site: SiteOf, person: ApiUser) -> PlainJSON:
    """Give back what I hold."""
    return PlainJSON({"released": site.coordinator.release(person.name)})


# ---------------------------------------------------------------------- watching


@router.get("/overview")
def overview(site: SiteOf, person: ApiUser) -> PlainJSON:
    """Progress, pace, classes, hold-out, arms, annotators."""
    site.coordinator.heartbeat(person.name)
    return PlainJSON(site.coordinator.overview())


@router.get("/why")
def why(site: SiteOf, person: ApiUser, id: Annotated[Id, Query()]) -> PlainJSON:
    """Why this example was chosen."""
    from tailor.web.explanations import explained

    return PlainJSON(explained(site.coordinator.why(id)))


@router.get("/labelled")
def labelled(
    site: SiteOf,
    person: ApiUser,
    klass: str | None = None,
    arm: str | None = None,
    annotator: str | None = None,
    disagrees: bool = False,
    offset: Offset = 0,
    limit: Many = 100,
) -> PlainJSON:
    """What is labelled, by class, arm, annotator, or where the model disagrees."""
    page = site.coordinator.review.labelled(
        klass=klass, arm=arm, annotator=annotator, disagrees=disagrees, offset=offset, limit=limit
    )
    return PlainJSON({"items": site.show(page.items), "total": page.total})


@router.get("/agreement")
def agreement(site: SiteOf, person: ApiUser) -> PlainJSON:
    """How often two people said the same."""
    return PlainJSON(site.coordinator.review.agreement())


@router.get("/disagreements")
def disagreements(
    site: SiteOf, person: ApiUser, offset: Offset = 0, limit: Many = 100
) -> PlainJSON:
    """Examples about which people differ."""
    page = site.coordinator.review.disagreements(offset, limit)
    return PlainJSON({"items": site.show(page.items), "total": page.total})


# ---------------------------------------------------------------------- changing


@changes.post("/settle")
def settle(site: SiteOf, person: ApiUser, given: schemas.AnswerBody) -> PlainJSON:
    """Decide an example about which people differ."""
    return PlainJSON(asdict(site.coordinator.settle(given.id, given.label, person.name)))


@changes.post("/classes/add")
def add_class(site: SiteOf, person: ApiUser, given: schemas.AddClass) -> PlainJSON:
    """A new class, at the end of the list."""
    return PlainJSON({"classes": site.coordinator.class_editor.add(given.name, person.name)})


@changes.post("/classes/rename")
def rename_class(site: SiteOf, person: ApiUser, given: schemas.RenameClass) -> PlainJSON:
    """Another name for a class; its labels stay."""
    return PlainJSON(
        {"classes": site.coordinator.class_editor.rename(given.old, given.new, person.name)}
    )


@changes.post("/classes/merge")
def merge_classes(site: SiteOf, person: ApiUser, given: schemas.MergeClasses) -> PlainJSON:
    """Make one class part of another."""
    return PlainJSON(
        {"classes": site.coordinator.class_editor.merge(given.old, given.into, person.name)}
    )


@router.get("/classes/merged")
def last_merge(site: SiteOf, person: ApiUser) -> PlainJSON:
    """The merge that can be taken back: its event, how many labels come back, how many answers
    since will stay.
    """
    return PlainJSON({"merge": site.coordinator.class_editor.last_merge()})


@changes.post("/classes/undo")
def undo_merge(site: SiteOf, person: ApiUser, given: schemas.UndoMerge) -> PlainJSON:
    """Take the latest merge back."""
    return PlainJSON(
        {"classes": site.coordinator.class_editor.undo_merge(given.merge, person.name)}
    )


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
async def picture(site: SiteOf, id: Annotated[Id, Query()], side: Side = "1600") -> Response:
    """The picture with this id, its longer side at most so many pixels."""
    found: Picture | Unreadable | None = site.examples.cached(id, int(side))
    if found is None:
        found = await to_thread.run_sync(
            site.examples.picture, id, int(side), limiter=site.decoding
        )
    if found is None:
        raise HTTPException(404, "no picture with this id")
    if isinstance(found, Unreadable):
        raise HTTPException(404, f"this picture can't be read: {found.reason}")
    return Response(
        found.content, media_type=found.kind, headers={"Cache-Control": "private, max-age=3600"}
    )
