"""The OpenAPI description, fuzzed: whatever is sent, the server never falls over."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil

import parts
import pytest
import sites
from fruit import orchard

parts.need("fuzzing")
import anyio
import schemathesis

# These import parts of themselves late, from source that pytest parses itself; and CPython 3.11
# cannot parse in two threads at once, as numpy.ma does when the planner's thread imports
# them. So all of it now.
importlib.import_module("numpy.ma")
for package in (schemathesis, anyio):
    for part in pkgutil.walk_packages(
        package.__path__, f"{package.__name__}.", onerror=lambda name: None
    ):
        if not part.name.endswith("__main__"):
            with contextlib.suppress(Exception):  # parts of theirs that need what isn't installed
                importlib.import_module(part.name)

from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from tailor.web.limits import Limits

NO_LIMITS = Limits(rate=1e9, burst=1e9)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    project = sites.begin(folder / "run", orchard(folder / "pool", 30), batch=5)
    with sites.serving(folder, project=project, limits=NO_LIMITS, hosts=["testserver"]) as site:
        for item in site.next(3):
            site.post("/api/answer", {"id": item["id"], "label": ["apple"]})
        yield site


def test_the_description_lists_every_api_route(fuzzed):
    paths = fuzzed.client.get("/openapi.json").json()["paths"]
    assert {"/api/next", "/api/answer", "/api/labelled", "/api/classes/merge", "/picture"} <= set(
        paths
    )


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_is_a_server_error(fuzzed, mode):
    """Requests that fit the description, and requests that don't."""
    headers = {"X-CSRF-Token": fuzzed.csrf}
    cookies = dict(fuzzed.client.cookies)
    known = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
    schema = schemathesis.openapi.from_asgi("/openapi.json", fuzzed.client.app, headers=known)
    seen: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
        def try_it(case):
            name = f"{case.method} {case.path}"
            case.headers.update(headers)
            case.cookies = {**(case.cookies or {}), **cookies}
            response = case.call()
            seen.setdefault(name, set()).add(response.status_code)
            assert response.status_code < 500, f"{name}: {response.text}"

        with contextlib.suppress(
            Unsatisfiable
        ):  # nothing can be wrong about a request without parameters
            try_it()
    assert len(seen) >= (14 if mode == "positive" else 10)
    assert not [name for name, codes in seen.items() if codes <= {401, 403}], (
        "nothing got past signing in"
    )
