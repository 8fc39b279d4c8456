"""Every error of the application ends here, and becomes a page or JSON."""

from __future__ import annotations

import logging
import math
import time
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from tailor.annotation.answer_rules import AnswerRefused
from tailor.annotation.planner import NO_DATABASE
from tailor.annotation.roles import NotAllowed
from tailor.errors import InputError, TailorError, without_paths
from tailor.storage import StoreUnreachable
from tailor.web.problems import respond, standalone
from tailor.web.security import HEADERS
from tailor.web.site import site_of
from tailor.web.validation_messages import validation_message

log = logging.getLogger(__name__)

RETRY = 3  # seconds after which a page may try again what the server could not do
LOG_EVERY = 60.0  # seconds between two lines in the log about one kind of error
#: where the framework alone had something to say
SENTENCES = {
    400: "the request can't be read",
    404: "no page has this address: it may be mistyped, or older than the run",
    405: "this address can't be used in this way",
    500: "the reason is in the server's log; what was answered before is saved",
}


def add_to(app: FastAPI) -> None:
    handlers = _ErrorHandlers()
    app.add_exception_handler(TailorError, handlers.tailor_error)
    app.add_exception_handler(StoreUnreachable, handlers.database_away)
    app.add_exception_handler(OSError, handlers.system_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _own_fault)


class _ErrorHandlers:
    """Those that write to the log, each kind of error not with every request."""

    def __init__(self) -> None:
        self._last_logged: dict[type[Exception], float] = {}

    def tailor_error(self, request: Request, error: Exception) -> Response:
        reason = _without_paths(request, error)
        if isinstance(error, NotAllowed):
            return respond(request, 403, reason)
        if isinstance(error, AnswerRefused):
            return respond(request, 409, reason)
        if isinstance(error, InputError):
            return respond(request, 422, reason)
        self._log(error)
        return _try_later(request, reason)

    def database_away(self, request: Request, error: Exception) -> Response:
        """Where the database is, and why it does not answer, is for the log."""
        self._log(error)
        return _try_later(request, NO_DATABASE)

    def system_error(self, request: Request, error: Exception) -> Response:
        """A full disk, say. Without the name of the file: it is nobody's business."""
        self._log(error)
        reason = _without_paths(request, error)
        return _try_later(request, f"the server can't do this now: {reason}")

    def _log(self, error: Exception) -> None:
        now = time.monotonic()
        kind = type(error)
        last_logged = self._last_logged.get(kind, -math.inf)
        if now > last_logged + LOG_EVERY:
            self._last_logged[kind] = now
            log.warning("%s", error)


def _try_later(request: Request, text: str) -> Response:
    """Not the visitor's fault: the page keeps what it has and tries again."""
    response = respond(request, 503, text)
    response.headers["Retry-After"] = str(RETRY)
    return response


def _without_paths(request: Request, error: Exception) -> str:
    project = site_of(request).project
    return without_paths(error, project.folders)


def _invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # One at a time: whoever mends it sees the next.
    first_error = error.errors()[0]
    return respond(request, 422, validation_message(first_error))


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    text = str(error.detail)
    if text == HTTPStatus(status).phrase:  # the framework's words, not ours
        text = SENTENCES.get(status, text)
    response = respond(request, status, text)
    if error.headers:
        response.headers.update(error.headers)
    return response


def _own_fault(request: Request, error: Exception) -> Response:
    """A fault of ours; the server logs it."""
    response = standalone(request, 500, SENTENCES[500])
    # This handler stands outside of the guard, which sets these for all others.
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    return response
