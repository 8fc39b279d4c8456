"""The application: routes, guards and error pages put together."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from starlette.exceptions import HTTPException

from tailor import __version__
from tailor.errors import TailorError
from tailor.live import Room
from tailor.live.planner import NO_DATABASE
from tailor.project import Project
from tailor.store import Away
from tailor.web import api, door, download, pages
from tailor.web.access import Access
from tailor.web.examples import Examples
from tailor.web.limits import Limits
from tailor.web.security import Guard
from tailor.web.site import HERE, PlainJSON, SignIn, Site, site_of, status_of, visitor

log = logging.getLogger(__name__)

#: seconds after which a page may try again what the server could not do; and between two lines in the log about it
RETRY, LOG_EVERY = 3, 60.0
ROUTERS = (
    api.router, api.changes, api.pictures, pages.router, pages.changes, door.router, door.changes, download.router,
)  # fmt: skip


def create_app(
    project: Project, room: Room, access: Access, *, hosts: Sequence[str] = (), limits: Limits | None = None
) -> FastAPI:
    """The pages of one project. The room is started with the server and closed with it.

    hosts: further names under which the server may be called
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        room.start()
        yield
        room.close()

    app = FastAPI(title="TAILOR", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    templates = Jinja2Templates(HERE / "templates")
    app.state.site = Site(project, room, Examples(project.pool()), access, templates)
    for router in ROUTERS:
        app.include_router(router)
    app.mount("/static", _Static(directory=HERE / "static"), name="static")
    app.add_middleware(Guard, access=access, hosts=hosts, limits=limits)
    _add_errors(app)
    return app


class _Static(StaticFiles):
    """Looked at anew each time (by its ETag): a new version of the package is there at once."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "no-cache"
        return response


def _add_errors(app: FastAPI) -> None:
    def said(request: Request, status: int, text: str) -> Response:
        if request.url.path.startswith(("/api", "/picture", "/openapi")):
            return PlainJSON({"error": text}, status)
        try:
            response = pages.render(site_of(request), request, visitor(request), "problem.html", text=text)
        except TailorError:  # the door itself is broken: no page can be drawn
            return PlainJSON({"error": text}, status)
        response.status_code = status
        return response

    def later(request: Request, text: str) -> Response:
        """Not the visitor's fault: the page keeps what it has and tries again."""
        response = said(request, 503, text)
        response.headers["Retry-After"] = str(RETRY)
        return response

    @app.exception_handler(SignIn)
    def sign_in(request: Request, error: Exception) -> Response:
        wanted = {"to": request.url.path} if request.method == "GET" and request.url.path != "/" else {}
        return RedirectResponse(f"/login?{urlencode(wanted)}" if wanted else "/login", 303)

    @app.exception_handler(TailorError)
    def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, TailorError)
        status = status_of(error)
        return later(request, str(error)) if status == 503 else said(request, status, str(error))

    logged = -LOG_EVERY

    @app.exception_handler(Away)
    def away(request: Request, error: Exception) -> Response:
        """Where the database is, and why it does not answer, is for the log."""
        nonlocal logged
        if time.monotonic() > logged + LOG_EVERY:
            logged = time.monotonic()
            log.warning("%s", error)
        return later(request, NO_DATABASE)

    @app.exception_handler(OSError)
    def system(request: Request, error: Exception) -> Response:
        """A full disk, say. Without the name of the file: it is nobody's business."""
        assert isinstance(error, OSError)
        return later(request, f"the server can't do this now: {error.strerror or type(error).__name__}")

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
        return said(request, 422, f"{where}: {first['msg']}")

    @app.exception_handler(HTTPException)
    def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        response = said(request, error.status_code, str(error.detail))
        for name, value in (error.headers or {}).items():
            response.headers[name] = value
        return response
