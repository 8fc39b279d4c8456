"""Signing in, and all that is served: for the tests that try to get in."""

from __future__ import annotations

import sites

from tailor.web.app import ROUTERS

TOKEN = "a-long-enough-token"


def sign_in(site: sites.Served, name: str = "anna", secret: str = "correct horse"):
    return site.client.post("/login", data={"name": name, "secret": secret})


def routes():
    """Found by themselves, so that a new one can't be forgotten."""
    return [route for router in ROUTERS for route in router.routes]
