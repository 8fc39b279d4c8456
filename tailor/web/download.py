"""Labels as files to download."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from tailor.annotation.roles import Right
from tailor.web.rendering import render
from tailor.web.site import CurrentSite, PageVisitor, client_address, needs, visitor_of_page

router = APIRouter(dependencies=[Depends(visitor_of_page)], include_in_schema=False)

MEDIA_TYPES = {
    "csv": "text/csv",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}


@router.get("/export", dependencies=[needs(Right.EXPORT)])
def export_page(site: CurrentSite, visitor: PageVisitor, request: Request) -> Response:
    overview = site.coordinator.overview()
    return render(site, request, visitor, "export.html", overview=overview)


@router.get("/export/labels.{form}", dependencies=[needs(Right.EXPORT)])
def download(
    site: CurrentSite,
    visitor: PageVisitor,
    request: Request,
    form: Literal["csv", "jsonl", "parquet"],
) -> Response:
    """Every label with its provenance, as `tailor export` writes it; who took it is logged."""
    from tailor.run.export import export

    folder = tempfile.TemporaryDirectory(prefix="tailor-export-")
    out = Path(folder.name) / f"labels.{form}"
    try:
        export(site.coordinator.run_state(), out, form)
    except BaseException:
        folder.cleanup()
        raise
    site.access.sign_in_log.write(f"exported {out.name}", visitor.name, client_address(request))
    return FileResponse(
        out,
        media_type=MEDIA_TYPES[form],
        filename=f"{site.name}-labels.{form}",
        background=BackgroundTask(folder.cleanup),
    )
