"""Pages drawn from templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response

from tailor.annotation.roles import Right
from tailor.web.access import Visitor
from tailor.web.site import Site


def render(
    site: Site,
    request: Request,
    visitor: Visitor | None,
    template: str,
    *,
    data: Mapping[str, Any] | None = None,
    **values: Any,
) -> Response:
    """A page. data: further values for its script; values: for the template alone.

    Strangers get to know nothing but the project's name.
    """
    script_data: dict[str, Any] = {}
    if visitor is not None:
        script_data = {
            "csrf": visitor.csrf,
            "name": visitor.name,
            "project": site.key,
            "classes": list(site.coordinator.classes),
            "multi": is_multi_label(site),
            "mayExport": visitor.may(Right.EXPORT),
        }
    context = {
        "site": site,
        "visitor": visitor,
        "data": script_data | dict(data or {}),
        "mode": site.access.mode,
    }
    return site.templates.TemplateResponse(request, template, context | values)


def is_multi_label(site: Site) -> bool:
    return site.coordinator.kind == "multi-label"
