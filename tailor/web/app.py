"""The application: routes, guards and error pages put together."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from starlette.types import Scope

from tailor import __version__
from tailor.annotation import Coordinator
from tailor.run.project import Project
from tailor.web import (
    api,
    class_pages,
    download,
    error_handlers,
    history_pages,
    model_pages,
    pages,
    problems,
    sign_in_routes,
    user_pages,
)
from tailor.web.access import Access
from tailor.web.examples import Examples
from tailor.web.limits import Limits
from tailor.web.security import Guard
from tailor.web.site import WEB_FOLDER, SignInNeeded, Site

ROUTERS = (
    api.router,
    api.changes,
    api.pictures,
    pages.router,
    class_pages.router,
    class_pages.changes,
    history_pages.router,
    history_pages.changes,
    user_pages.router,
    user_pages.changes,
    model_pages.router,
    model_pages.changes,
    model_pages.api,
    model_pages.api_changes,
    sign_in_routes.router,
    sign_in_routes.changes,
    download.router,
)


def create_app(
    project: Project,
    coordinator: Coordinator,
    access: Access,
    *,
    hosts: Sequence[str] = (),
    limits: Limits | None = None,
) -> FastAPI:
    """The pages of one project. The coordinator is started with the server and closed with it.

    hosts: further names under which the server may be called
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        coordinator.start()
        yield
        coordinator.close()

    app = FastAPI(
        title="TAILOR",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # api.py has a route for it, which needs someone signed in
    )
    app.state.site = Site(
        project,
        coordinator,
        Examples(project.pool()),
        access,
        Jinja2Templates(WEB_FOLDER / "templates"),
    )
    for router in ROUTERS:
        app.include_router(router)
    app.mount("/static", _StaticFiles(directory=WEB_FOLDER / "static"), name="static")
    app.add_middleware(Guard, access=access, hosts=hosts, limits=limits, refuse=problems.standalone)
    app.add_exception_handler(SignInNeeded, _redirect_to_sign_in)
    error_handlers.add_to(app)
    return app


class _StaticFiles(StaticFiles):
    """Looked at anew each time (by its ETag): a new version of the package is there at once."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = "no-cache"
        return response


def _redirect_to_sign_in(request: Request, error: Exception) -> Response:
    path = request.url.path
    if request.method != "GET" or path == "/":
        return RedirectResponse("/login", 303)
    return RedirectResponse(f"/login?{urlencode({'to': path})}", 303)
