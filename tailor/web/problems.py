"""What goes wrong, in our own words: a page for browsers, JSON for programs."""

from __future__ import annotations

from html import escape

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from tailor.web.rendering import render
from tailor.web.security import HEADERS
from tailor.web.site import PlainJSON, find_visitor, site_of

TITLES = {
    400: "That can't be understood",
    401: "Sign in first",
    403: "That is not allowed",
    404: "There is nothing here",
    405: "That is not allowed",
    409: "That does not count",
    413: "That is too much",
    421: "Not by this name",
    422: "That can't be used",
    429: "Not so fast",
    500: "Something broke",
    503: "Not now",
}
OTHER_TITLE = "That did not work"
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
    try:
        response = render(
            site_of(request),
            request,
            find_visitor(request),
            "problem.html",
            title=TITLES.get(status, OTHER_TITLE),
            text=_sentence(text),
        )
    except Exception:
        # Sign-in itself is broken, say: who is there can't be told, so no page of theirs can be
        # drawn.
        return standalone(request, status, text)
    response.status_code = status
    return response


def standalone(request: Request, status: int, text: str) -> Response:
    """As respond(), but without the help of anything else."""
    if _is_program(request):
        return PlainJSON({"error": text}, status)
    title = TITLES.get(status, OTHER_TITLE)
    page = STANDALONE.format(title=escape(title), text=escape(_sentence(text)))
    return HTMLResponse(page, status, headers={"Content-Security-Policy": STANDALONE_POLICY})


def _is_program(request: Request) -> bool:
    if request.url.path.startswith(("/api", "/picture", "/openapi")):
        return True
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted


def _sentence(text: str) -> str:
    """With its end; its first letter is made large by the style sheet, so that names stay as they
    are written.
    """
    if text.endswith((".", "!", "?")):
        return text
    return f"{text}."
