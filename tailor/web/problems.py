"""What goes wrong, in our own words: a page for browsers, JSON for programs."""

from __future__ import annotations

import logging
import math
import time
from html import escape
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from tailor.annotation.planner import NO_DATABASE
from tailor.errors import InputError, TailorError, without_paths
from tailor.storage import Away
from tailor.web.security import HEADERS
from tailor.web.site import PlainJSON, site_of, visitor

log = logging.getLogger(__name__)

#: seconds after which a page may try again what the server could not do; and between two lines in
#: the log about one kind of error
RETRY, LOG_EVERY = 3, 60.0
TITLES = {
    400: "That can't be understood",
    401: "Sign in first",
    403: "That is not allowed",
    404: "There is nothing here",
    405: "That is not allowed",
    413: "That is too much",
    421: "Not by this name",
    422: "That can't be used",
    429: "Not so fast",
    500: "Something broke",
    503: "Not now",
}
#: where the framework alone had something to say
SENTENCES = {
    400: "the request can't be read",
    404: "no page has this address: it may be mistyped, or older than the run",
    405: "this address can't be used in this way",
    500: "the reason is in the server's log; what was answered before is saved",
}
#: No style sheet can be fetched where every request is refused: it stands in the page.
STANDALONE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{title} · TAILOR</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif;
max-width: 40em; margin: 12vh auto; padding: 0 20px; }}
h1 {{ font-size: 26px; }} [role=alert]::first-letter {{ text-transform: uppercase; }}</style></head>
<body><main><h1>{title}</h1><p role="alert">{text}</p>
<p><a href="/">Back to labelling</a></p></main></body></html>
"""
STANDALONE_POLICY = HEADERS["Content-Security-Policy"].replace(
    "style-src 'self'", "style-src 'unsafe-inline'"
)


def respond(request: Request, status: int, text: str) -> Response:
    """An error as whoever asks can use it."""
    if _is_program(request):
        return PlainJSON({"error": text}, status)
    site = site_of(request)
    title = TITLES.get(status, "That did not work")
    try:
        from tailor.web.pages import render

        response = render(
            site, request, visitor(request), "problem.html", title=title, text=_sentence(text)
        )
    except Exception:
        # the door itself is broken, say: who is there can't be told, so no page of theirs can be
        # drawn
        return standalone(request, status, text)
    response.status_code = status
    return response


def standalone(request: Request, status: int, text: str) -> Response:
    """As respond(), but without the help of anything else."""
    if _is_program(request):
        return PlainJSON({"error": text}, status)
    title = TITLES.get(status, "That did not work")
    page = STANDALONE.format(title=escape(title), text=escape(_sentence(text)))
    return HTMLResponse(page, status, headers={"Content-Security-Policy": STANDALONE_POLICY})


def _is_program(request: Request) -> bool:
    wanted = request.headers.get("accept", "")
    is_api = request.url.path.startswith(("/api", "/picture", "/openapi"))
    return is_api or ("application/json" in wanted and "text/html" not in wanted)


def _sentence(text: str) -> str:
    """With its end; its first letter is made large by the style sheet, so that names stay as they
    are written.
    """
    return text if text.endswith((".", "!", "?")) else f"{text}."


def add_to(app: FastAPI) -> None:
    """Every error of the application ends here."""

    def later(request: Request, text: str) -> Response:
        """Not the visitor's fault: the page keeps what it has and tries again."""
        response = respond(request, 503, text)
        response.headers["Retry-After"] = str(RETRY)
        return response

    def told(request: Request, error: Exception) -> str:
        return without_paths(error, site_of(request).project.folders)

    logged: dict[type[Exception], float] = {}

    def note(error: Exception) -> None:
        """In full, for whoever runs the server; of each kind not with every request."""
        now = time.monotonic()
        kind = type(error)
        if now > logged.get(kind, -math.inf) + LOG_EVERY:
            logged[kind] = now
            log.warning("%s", error)

    @app.exception_handler(TailorError)
    def refused(request: Request, error: Exception) -> Response:
        if isinstance(error, InputError):
            return respond(request, 422, told(request, error))
        note(error)
        return later(request, told(request, error))

    @app.exception_handler(Away)
    def away(request: Request, error: Exception) -> Response:
        """Where the database is, and why it does not answer, is for the log."""
        note(error)
        return later(request, NO_DATABASE)

    @app.exception_handler(OSError)
    def system(request: Request, error: Exception) -> Response:
        """A full disk, say. Without the name of the file: it is nobody's business."""
        note(error)
        return later(request, f"the server can't do this now: {told(request, error)}")

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return respond(request, 422, explained(error.errors()[0]))

    @app.exception_handler(HTTPException)
    def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        own_words = str(error.detail)
        if own_words == HTTPStatus(error.status_code).phrase:
            own_words = SENTENCES.get(error.status_code, own_words)
        response = respond(request, error.status_code, own_words)
        for name, value in (error.headers or {}).items():
            response.headers[name] = value
        return response

    @app.exception_handler(Exception)
    def broken(request: Request, error: Exception) -> Response:
        """A fault of ours; the server logs it. It stands outside of the guard, so its headers are
        set here.
        """
        response = standalone(request, 500, SENTENCES[500])
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Cache-Control", "no-store")
        return response


#: by the validator's kind of error; what stands in braces is its limit
_WORDS = {
    "missing": "it is missing",
    "int_parsing": "a whole number is needed",
    "int_type": "a whole number is needed",
    "int_from_float": "a whole number is needed",
    "int_parsing_size": "the number is too large",
    "bool_parsing": "true or false is needed",
    "bool_type": "true or false is needed",
    "string_type": "a text is needed",
    "list_type": "a list is needed",
    "dict_type": "an object with named values is needed",
    "model_attributes_type": "an object with named values is needed",
    "model_type": "an object with named values is needed",
    "greater_than_equal": "it must be at least {ge}",
    "less_than_equal": "it must be at most {le}",
    "string_too_short": "it is empty",
    "string_too_long": "it may have {max_length} characters",
    "too_long": "it may have {max_length} entries",
    "literal_error": "it must be {expected}",
    "extra_forbidden": "nothing of this name is expected",
    "json_invalid": "the request is not valid JSON",
    "value_error": "{error}",  # of our own validators
}


def explained(error: dict[str, Any]) -> str:
    """One of the validator's findings in our words: where, and what is needed."""
    words = _WORDS.get(error["type"], "it can't be used").format_map(
        _Limits(error.get("ctx") or {})
    )
    place = ".".join(str(part) for part in error["loc"][1:] if isinstance(part, str))
    return f"{place}: {words}" if place and error["type"] != "json_invalid" else words


class _Limits(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "something else"
