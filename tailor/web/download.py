"""Labels to take home."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from tailor.web.pages import render
from tailor.web.site import PageUser, SiteOf, person_of_page

router = APIRouter(dependencies=[Depends(person_of_page)], include_in_schema=False)


@router.get("/export")
def export_page(site: SiteOf, person: PageUser, request: Request) -> Response:
    return render(site, request, person, "export.html", now=site.coordinator.overview())


@router.get("/export/labels.{form}")
def download(site: SiteOf, person: PageUser, form: Literal["csv", "jsonl", "parquet"]) -> Response:
    """Every label with its provenance, as `tailor export` writes it."""
    from tailor.run.export import export

    folder = tempfile.TemporaryDirectory(prefix="tailor-export-")
    out = Path(folder.name) / f"labels.{form}"
    try:
        export(site.coordinator.run_state(), out, form)
    except BaseException:
        folder.cleanup()
        raise
    kind = {
        "csv": "text/csv",
        "jsonl": "application/x-ndjson",
        "parquet": "application/vnd.apache.parquet",
    }[form]
    name = f"{site.name}-labels.{form}"
    return FileResponse(
        out, media_type=kind, filename=name, background=BackgroundTask(folder.cleanup)
    )
