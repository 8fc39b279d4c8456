"""A real browser, and servers for it on loopback."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import parts
import pytest
from fruit import KINDS, truth
from sites import Access, Coordinator, Project, create_app  # or a skip that says what is missing

parts.need("browser")
from playwright import sync_api

expect = sync_api.expect
WAIT = 120_000  # milliseconds, for slow machines; nothing waits this long where all is well
UNSENT = """() => Object.entries(localStorage)
    .filter(([key, stored]) => key.startsWith("tailor:") && stored.startsWith("{"))
    .map(([, stored]) => JSON.parse(stored).id)"""
ARGUMENTS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str | None:
    places = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    return next((place for place in places if place), None)


@contextlib.contextmanager
def browsing():
    path = chromium()
    if path is None:
        pytest.skip(parts.reason("browser", "Debian: apt install chromium"))
    expect.set_options(timeout=WAIT)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS + sandbox)
        yield browser
        browser.close()


@contextlib.contextmanager
def running(project: Project, *, limits=None, coordinator_options=None, patience=None, **access):
    """The pages of a project, served from a thread; the address and the coordinator."""
    from tailor.web.serve import listening, make_server

    with listening("127.0.0.1", 0) as sock:
        coordinator = Coordinator(project, **(coordinator_options or {}))
        app = create_app(
            project, coordinator, Access(project.folder, limits=limits, **access), limits=limits
        )
        server = make_server(app, patience=patience)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        wait_for(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}", coordinator
        finally:
            server.should_exit = True
            thread.join(WAIT / 1000)


class Server:
    """The command itself, in a process that can be killed."""

    def __init__(self, run: Path, *words: str) -> None:
        self.run = run
        self.words = words
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> Server:
        command = [
            sys.executable,
            "-m",
            "tailor",
            "label",
            str(self.run),
            "--no-open",
            "--port",
            str(self.port),
        ]
        self.process = subprocess.Popen(
            [*command, *self.words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        wait_for(self.answers)
        return self

    def answers(self) -> bool:
        import httpx

        assert self.process.poll() is None, self.process.stderr.read().decode()
        try:
            return httpx.get(self.url + "/login", timeout=5).status_code < 400
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def wait_for(condition, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def drawn(page) -> None:
    """Waits until what is shown can be answered."""
    expect(page.locator("#mat")).not_to_have_attribute("aria-busy", "true")


class Tab:
    """A page that is labelled on, as a person sees it. Complaints of the browser are collected."""

    def __init__(self, browser, url: str, **options) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        self.context.set_default_timeout(WAIT)
        self.page = self.context.new_page()
        self.url = url
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )
        self._loading: set = set()  # requests for further examples that are on their way
        self.page.on(
            "request",
            lambda request: self._loading.add(request) if "/api/next" in request.url else None,
        )
        for end in ("requestfinished", "requestfailed"):
            self.page.on(end, lambda request: self._loading.discard(request))

    def open(self, path: str = "/") -> Tab:
        self.page.goto(self.url + path)
        return self

    @property
    def name(self) -> str:
        """The id of what is shown; waits until something is, and can be answered."""
        expect(self.page.locator("#name")).not_to_have_text("")
        self.drawn()
        return self.page.locator("#name").text_content()

    def drawn(self) -> None:
        drawn(self.page)

    def answer(self) -> tuple[str, str]:
        """Press the right key; wait until another one is shown or all is done."""
        one = self.name
        self.page.keyboard.press(str(KINDS.index(truth(one)) + 1))
        expect(self.page.locator("#name")).not_to_have_text(one)
        return one, truth(one)

    def all_saved(self) -> None:
        expect(self.page.locator("#saved")).to_have_text("All saved")

    def loaded_ahead(self) -> None:
        """Wait until the page has the examples after this one, so that it can go on without a
        server.
        """
        wait_for(lambda: self.page.wait_for_timeout(20) or not self._loading)

    @property
    def acknowledged(self) -> int:
        return int(self.page.evaluate("() => document.documentElement.dataset.acknowledged || '0'"))

    @property
    def unsent(self) -> set[str]:
        """The ids of answers that the page still keeps, since no server has acknowledged them."""
        return set(self.page.evaluate(UNSENT))

    def close(self, but: str | None = None) -> None:
        """No complaint may be left, except those that hold `but`."""
        self.context.close()
        left = [said for said in self.complaints if but is None or but not in said]
        assert not left, left


def labels(project: Project) -> dict[str, str]:
    """What the store holds: id -> label."""
    from tailor.run.export import rows

    return {row["id"]: row["label"] for row in rows(Project(project.folder).run_state())}
