"""Heavy work for some holds nobody else up: labelling goes on beside it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import parts
import pytest
import sites
from browsing import running, wait_for
from fruit import orchard

parts.need("labelling page")
import httpx

from tailor.web import examples
from tailor.web.limits import Limits
from tailor.web.users import Users

CROWD = 60  # more than the server has threads
TIMEOUT = 180


class Gate:
    """Calls wait at it until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.waiting = 0

    def before(self, real):
        def slow(*args, **options):
            self.waiting += 1
            assert self.opened.wait(TIMEOUT)
            return real(*args, **options)

        return slow

    def settle(self) -> None:
        """Until no further calls come."""
        seen = -1
        since = time.monotonic()

        def quiet() -> bool:
            nonlocal seen, since
            if self.waiting != seen:
                seen = self.waiting
                since = time.monotonic()
            return seen > 0 and time.monotonic() > since + 1

        wait_for(quiet)


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.opened.set()


def in_a_crowd(gate, send, url, path):
    """Many send what waits at the gate; someone asks for something small meanwhile. -> the crowd's
    statuses
    """
    with ThreadPoolExecutor(CROWD) as crowd:
        answers = [crowd.submit(send, number) for number in range(CROWD)]
        try:
            gate.settle()
            with httpx.Client(base_url=url, timeout=TIMEOUT, follow_redirects=True) as client:
                assert client.get(path).status_code == 200
        finally:
            gate.opened.set()
        return [answer.result().status_code for answer in answers]


def test_passwords_are_checked_beside_the_work(tmp_path, pool, gate, monkeypatch):
    project = sites.begin(tmp_path / "run", pool)
    Users(project.folder).add("anna", "correct horse")
    monkeypatch.setattr(
        Users, "check", gate.before(lambda _, name, secret: secret == "correct horse")
    )
    limits = Limits(tries=CROWD, tries_in_all=CROWD)
    with running(project, limits=limits) as (url, _):

        def send(number):
            data = {"name": "anna", "secret": "correct horse" if number == 7 else "a guess"}
            return httpx.post(url + "/login", data=data, timeout=TIMEOUT)

        statuses = in_a_crowd(gate, send, url, "/")  # a page is drawn in a thread
        assert sorted(statuses) == [303] + [401] * (CROWD - 1)
        assert gate.waiting == CROWD


def test_pictures_are_decoded_beside_the_work(tmp_path, gate, monkeypatch):
    project = sites.begin(tmp_path / "run", orchard(tmp_path / "pool", CROWD))
    with running(project) as (url, _):
        monkeypatch.setattr(examples, "decode_image", gate.before(examples.decode_image))
        with httpx.Client(base_url=url, timeout=TIMEOUT, follow_redirects=True) as someone:
            someone.get("/")

            def send(number):
                return someone.get(
                    "/picture", params={"id": f"img-{number:05d}.jpg", "side": "320"}
                )

            assert in_a_crowd(gate, send, url, "/") == [200] * CROWD
            again = gate.waiting
            assert send(3).status_code == 200  # known by now
            assert gate.waiting == again == CROWD
