"""Pages to test: a small orchard, a coordinator, the application in this process."""

from __future__ import annotations

import contextlib
import csv
import html
import io
import json
import re
import time
from pathlib import Path

import parts
from fruit import KINDS, orchard

parts.need("labelling page")

from fastapi.testclient import TestClient

from tailor.annotation import Coordinator
from tailor.run import config
from tailor.run.project import Project
from tailor.web.access import Access
from tailor.web.app import create_app

FAMILIES = {"multi-class": ["confidence", "random"], "multi-label": ["emal", "random"]}
HOST = "http://127.0.0.1:8765"


def begin(
    run: Path,
    pool: Path,
    classes=KINDS,
    *,
    kind="multi-class",
    batch=10,
    holdout=0.1,
    model=None,
    strategies=None,
    start="auto",
) -> Project:
    """A project whose model needs no network and no time."""
    config.write(
        run,
        {
            "task": {"kind": kind, "classes": list(classes)},
            "pool": {"path": str(pool)},
            "model": model
            or {"name": "probe(steps=20)", "backbone": "pixels(size=8)", "device": "cpu"},
            "selection": {
                "batch": batch,
                "holdout": holdout,
                "strategies": strategies or FAMILIES[kind],
                "start": start,
            },
        },
    )
    return Project(run)


class Served:
    """The application with a client that behaves like a browser's tab."""

    def __init__(self, project: Project, coordinator: Coordinator, client: TestClient) -> None:
        self.project = project
        self.coordinator = coordinator
        self.client = client

    def enter(self) -> Served:
        self.client.get("/")
        return self

    @contextlib.contextmanager
    def other(self, name: str):
        """Someone else at the same page."""
        client = TestClient(self.client.app, base_url=HOST, client=("127.0.0.1", 50001))
        served = Served(self.project, self.coordinator, client).enter()
        served.form("/name", name=name)
        yield served
        client.close()

    @property
    def csrf(self) -> str:
        return self.client.get("/api/session").json()["csrf"]

    def post(self, path: str, body: dict, **headers: str):
        return self.client.post(path, json=body, headers={"X-CSRF-Token": self.csrf} | headers)

    def form(self, path: str, **fields: str):
        return self.client.post(path, data={"csrf": self.csrf} | fields)

    def next(self, n: int = 1) -> list[dict]:
        """Waits for a round that is being prepared."""
        for _ in range(9000):
            handed = self.client.get("/api/next", params={"n": n}).json()
            if handed["items"] or handed["state"] == "stopped":
                return handed["items"]
            time.sleep(0.02)
        raise AssertionError("no round was ever ready")


@contextlib.contextmanager
def serving(
    folder: Path,
    *,
    pool: Path | None = None,
    project: Project | None = None,
    hosts=(),
    limits=None,
    coordinator_options=None,
    enter=True,
    **access,
):
    project = project or begin(folder / "run", pool or orchard(folder / "orchard", 40))
    coordinator = Coordinator(project, **(coordinator_options or {}))
    app = create_app(
        project,
        coordinator,
        Access(project.folder, limits=limits, **access),
        hosts=hosts,
        limits=limits,
    )
    with TestClient(app, base_url=HOST, client=("127.0.0.1", 50000)) as client:
        served = Served(project, coordinator, client)
        yield served.enter() if enter else served


def csrf_in(page: str) -> str:
    return re.search(r'name="csrf" value="([0-9a-f]+)"', page)[1]


def tiles(page: str) -> list[str]:
    """The ids in a grid."""
    return re.findall(r'<li class="tile" data-id="([^"]*)"', page)


def link(page: str, rel: str) -> str | None:
    found = re.search(rf'rel="{rel}" href="([^"]*)"', page)
    return html.unescape(found[1]) if found else None


def rows(content: bytes, form: str) -> dict[str, str]:
    """id -> label of an export."""
    if form == "parquet":
        import pyarrow.parquet as pq

        found = pq.read_table(io.BytesIO(content)).to_pylist()
    elif form == "jsonl":
        found = [json.loads(line) for line in content.decode().splitlines()]
    else:
        found = list(csv.DictReader(io.StringIO(content.decode())))
    return {row["id"]: row["label"] for row in found}
