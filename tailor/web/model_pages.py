"""The page that tells how good the model is, where it is wrong and when to stop."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from tailor.annotation.model_insight import ModelView
from tailor.annotation.roles import Right
from tailor.errors import InputError
from tailor.insight.model_report import ModelReport
from tailor.run.goals import Goals
from tailor.web import schemas
from tailor.web.api import REFUSALS
from tailor.web.charts import accuracy_line
from tailor.web.flash_messages import FlashMessage
from tailor.web.model_charts import confusion_rows, confusions, reliability_points
from tailor.web.rendering import is_multi_label, render
from tailor.web.site import (
    ApiVisitor,
    CurrentSite,
    PageVisitor,
    PlainJSON,
    check_same_session,
    needs,
    visitor_of_api,
    visitor_of_page,
)

router = APIRouter(
    dependencies=[Depends(visitor_of_page)],
    include_in_schema=False,
    default_response_class=HTMLResponse,
)
changes = APIRouter(dependencies=[Depends(check_same_session)], include_in_schema=False)
api = APIRouter(
    prefix="/api",
    dependencies=[Depends(visitor_of_api)],
    default_response_class=PlainJSON,
    responses=REFUSALS,
)
api_changes = APIRouter(
    prefix="/api",
    dependencies=[Depends(check_same_session)],
    default_response_class=PlainJSON,
    responses=REFUSALS,
)

#: mistakes that are shown as pictures
MOST_MISTAKES = 12

#: a goal as a form sends it: empty for none
GoalField = Annotated[str, Form(max_length=20)]


@router.get("/model")
def model(site: CurrentSite, visitor: PageVisitor, request: Request) -> Response:
    view = site.coordinator.model_insight.view()
    holdout = view.report.holdout
    names = [row.name for row in view.report.classes]
    charts: dict[str, Any] = {"matrix": [], "confusions": [], "reliability": []}
    if holdout is not None:
        charts = {
            "matrix": confusion_rows(names, holdout),
            "confusions": confusions(names, holdout),
            "reliability": reliability_points(holdout.reliability),
        }
    shown_ids = view.report.mistakes[:MOST_MISTAKES]
    mistakes = [site.coordinator.item(example_id) for example_id in shown_ids]
    return render(
        site,
        request,
        visitor,
        "model.html",
        view=view,
        report=view.report,
        multi=is_multi_label(site),
        line=accuracy_line(view.estimates),
        mistakes=site.show(mistakes),
        flash_message=site.flash_messages.take(visitor.cookie),
        **charts,
    )


@changes.post("/model/goals", dependencies=[needs(Right.SET_GOALS)])
def set_goals_by_form(
    site: CurrentSite,
    visitor: PageVisitor,
    budget: GoalField = "",
    per_class: GoalField = "",
    accuracy: GoalField = "",
) -> Response:
    """accuracy in percent, as people write it."""
    try:
        share = _number(accuracy, "the accuracy", float)
        if share is not None:
            share = share / 100
        goals = Goals(
            budget=_number(budget, "the budget", int),
            per_class=_number(per_class, "labels of each class", int),
            accuracy=share,
        )
        site.coordinator.model_insight.set_goals(goals, visitor.name)
        message = FlashMessage("The goals are set.")
    except InputError as error:
        message = FlashMessage(str(error), is_problem=True)
    site.flash_messages.leave(visitor.cookie, message)
    return RedirectResponse("/model", 303)


def _number(text: str, what: str, kind: type) -> Any:
    """None for an empty field. Raises InputError for what is no number."""
    stripped = text.strip().removesuffix("%").strip()
    if not stripped:
        return None
    try:
        return kind(stripped)
    except (ValueError, OverflowError):
        raise InputError(f"{what} is {text!r}: a number is needed, or nothing") from None


@api.get("/model")
def model_as_json(site: CurrentSite, visitor: ApiVisitor) -> PlainJSON:
    """How good the model is, class by class, and whether to go on. Intervals are of 95%."""
    view = site.coordinator.model_insight.view()
    return PlainJSON(_as_json(view))


@api_changes.post("/model/goals", dependencies=[needs(Right.SET_GOALS)])
def set_goals(site: CurrentSite, visitor: ApiVisitor, body: schemas.GoalsBody) -> PlainJSON:
    """What the run is to reach. A goal that is left out counts no more."""
    goals = Goals(
        budget=body.budget,
        per_class=body.per_class,
        accuracy=body.accuracy,
    )
    site.coordinator.model_insight.set_goals(goals, visitor.name)
    return PlainJSON({"goals": asdict(goals)})


def _as_json(view: ModelView) -> dict[str, Any]:
    report = view.report
    need = None
    if report.need is not None:
        need = asdict(report.need)
    return {
        "round": report.round,
        "answers": report.answers,
        "holdout": _holdout_as_json(report),
        "classes": [_class_as_json(row) for row in report.classes],
        "suspects": {"count": report.suspects, "n": report.judged},
        "need": need,
        "advice": view.advice.as_json(),
        "goals": asdict(view.goals),
    }


def _holdout_as_json(report: ModelReport) -> dict[str, Any] | None:
    """How the model does on the hold-out; None where there is none, or no model yet."""
    holdout = report.holdout
    if holdout is None:
        return None
    balanced = None
    if holdout.balanced is not None:
        balanced = asdict(holdout.balanced)
    confusion = None
    if holdout.confusion is not None:
        confusion = holdout.confusion.tolist()
    return {
        "accuracy": holdout.accuracy.as_json(),
        "balanced": balanced,
        "mean_average_precision": holdout.mean_average_precision,
        "confusion": confusion,
        "mistakes": list(report.mistakes),
    }


def _class_as_json(row: Any) -> dict[str, Any]:
    measured: dict[str, Any] = {}
    if row.report is not None:
        measured = {
            "in_pool": row.report.in_pool.as_json(),
            "recall": row.report.recall.as_json(),
            "precision": row.report.precision.as_json(),
            "average_precision": row.report.average_precision,
            "progress": asdict(row.progress),
        }
    return {
        "name": row.name,
        "labels": row.labels,
        "learned": row.learned,
        "taken_for": [list(pair) for pair in row.taken_for],
        "expected": row.expected,
    } | measured
