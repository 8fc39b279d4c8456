"""The pages for labelling, reviewing and the team."""

from __future__ import annotations

import time
from typing import Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse

from tailor.web.charts import accuracy_line, arm_bars, class_bars
from tailor.web.rendering import is_multi_label, render
from tailor.web.schemas import Offset
from tailor.web.site import CurrentSite, PageVisitor, Site, visitor_of_page

router = APIRouter(
    dependencies=[Depends(visitor_of_page)],
    include_in_schema=False,
    default_response_class=HTMLResponse,
)

GRID = 60  # examples on a page of the review

#: the most doubtful labels first, or as the pool has them
ReviewOrder = Literal["doubt", "pool"]


@router.get("/")
def label(site: CurrentSite, visitor: PageVisitor, request: Request) -> Response:
    noun = {"image": "picture", "text": "text"}.get(site.examples.kind, "example")
    if is_multi_label(site):
        question = f"What is in this {noun}?"
    else:
        question = f"What is this {noun}?"
    return render(
        site,
        request,
        visitor,
        "label.html",
        data={"question": question, "kind": site.examples.kind},
        noun=noun,
        **panel_values(site),
    )


@router.get("/panel")
def panel(site: CurrentSite, visitor: PageVisitor, request: Request) -> Response:
    """The numbers beside the picture, drawn anew."""
    site.coordinator.heartbeat(visitor.name)
    return site.templates.TemplateResponse(request, "panel.html", panel_values(site))


def panel_values(site: Site) -> dict[str, Any]:
    overview = site.coordinator.overview()
    return {
        "overview": overview,
        "line": accuracy_line(overview["holdout"]),
        "bars": class_bars(overview["counts"]),
        "arms": arm_bars(overview["arms"]),
    }


@router.get("/review")
def review(
    site: CurrentSite,
    visitor: PageVisitor,
    request: Request,
    klass: str = "",
    arm: str = "",
    annotator: str = "",
    disagrees: bool = False,
    model_says: str = "",
    holdout: bool = False,
    order: ReviewOrder = "doubt",
    offset: Offset = 0,
) -> Response:
    """The labels that are most likely wrong come first."""
    page = site.coordinator.review.labelled(
        klass=klass or None,
        arm=arm or None,
        annotator=annotator or None,
        disagrees=disagrees,
        model_says=model_says or None,
        holdout=holdout,
        doubtful_first=order == "doubt",
        offset=offset,
        limit=GRID,
    )
    overview = site.coordinator.overview()
    filters = {
        "klass": klass,
        "arm": arm,
        "annotator": annotator,
        "disagrees": "",
        "model_says": model_says,
        "holdout": "",
        "order": "",
    }
    if disagrees:
        filters["disagrees"] = "true"
    if holdout:
        filters["holdout"] = "true"
    if order != "doubt":
        filters["order"] = order
    before = None
    if offset > 0:
        before = _review_url(filters, max(0, offset - GRID))
    after = None
    if offset + GRID < page.total:
        after = _review_url(filters, offset + GRID)
    return render(
        site,
        request,
        visitor,
        "review.html",
        items=site.show(page.items),
        total=page.total,
        offset=offset,
        before=before,
        after=after,
        filters=filters,
        arm_names=[arm_row["name"] for arm_row in overview["arms"]],
        annotators=[annotator_row["name"] for annotator_row in overview["annotators"]],
    )


def _review_url(filters: dict[str, str], offset: int) -> str:
    active = {}
    for name, value in filters.items():
        if value:
            active[name] = value
    return "/review?" + urlencode(active | {"offset": offset})


@router.get("/team")
def team(
    site: CurrentSite,
    visitor: PageVisitor,
    request: Request,
    offset: Offset = 0,
) -> Response:
    page = site.coordinator.review.disagreements(offset, GRID)
    return render(
        site,
        request,
        visitor,
        "team.html",
        overview=site.coordinator.overview(),
        agreement=site.coordinator.review.agreement(),
        items=site.show(page.items),
        total=page.total,
        offset=offset,
        now=time.time(),
    )
