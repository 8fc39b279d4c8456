"""Too much, and too often."""

from __future__ import annotations

import contextlib
import re
from functools import partial

import pytest
import sites
from fastapi.testclient import TestClient
from signing_in import sign_in

from tailor.web.limits import Limits, RateLimiter, client_network
from tailor.web.users import Users


@pytest.fixture
def time_stands_still(monkeypatch):
    """No try is given back while the test lasts, however slow the machine is."""
    monkeypatch.setattr("tailor.web.access.RateLimiter", partial(RateLimiter, clock=lambda: 0.0))


@pytest.mark.usefixtures("time_stands_still")
def test_guessing_is_slow(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    Users(project.folder).add("anna", "correct horse")
    with sites.serving(tmp_path, project=project, limits=Limits(tries=2), enter=False) as site:
        answers = [sign_in(site, secret=f"guess number {i}").status_code for i in range(4)]
        assert answers == [401, 401, 429, 429]
        assert sign_in(site).status_code == 429  # the right one too: nothing is learned by trying


@contextlib.contextmanager
def at(site, address):
    """The same page, for someone elsewhere."""
    client = TestClient(site.client.app, base_url=sites.HOST, client=(address, 50001))
    yield sites.Served(site.project, site.coordinator, client)
    client.close()


@pytest.mark.usefixtures("time_stands_still")
def test_nobody_can_lock_a_colleague_out(tmp_path, pool):
    """Whoever guesses at anna's password is slowed; anna, elsewhere, and the colleagues next to him
    are not.
    """
    project = sites.begin(tmp_path / "run", pool)
    for name in ("anna", "bert"):
        Users(project.folder).add(name, "correct horse")
    limits = Limits(tries=2, tries_in_all=9)
    with (
        sites.serving(tmp_path, project=project, limits=limits, enter=False) as site,
        at(site, "10.0.0.7") as stranger,
    ):
        assert [sign_in(stranger, secret="a guess").status_code for _ in range(30)] == [401] * 2 + [
            429
        ] * 28
        assert sign_in(stranger, "bert").status_code == 200
        assert sign_in(site).status_code == 200


@pytest.mark.usefixtures("time_stands_still")
def test_guessing_at_many_names_is_slow_too_and_tells_nothing(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    Users(project.folder).add("anna", "correct horse")
    limits = Limits(tries=2, tries_in_all=5)
    with sites.serving(tmp_path, project=project, limits=limits, enter=False) as site:
        with (
            at(site, "2001:db8::1") as one,
            at(site, "2001:db8::2") as next_door,
        ):  # one customer's network
            said = [
                sign_in(who, f"n{i}")
                for i, who in enumerate([one, next_door, one, next_door, one, next_door])
            ]
            assert [answer.status_code for answer in said] == [401] * 5 + [429]
        with at(site, "10.0.0.8") as other, at(site, "10.0.0.9") as another:
            known, unknown = (
                [sign_in(who, name, "a guess") for _ in range(4)]
                for who, name in ((other, "anna"), (another, "nemo"))
            )
            assert [answer.status_code for answer in known] == [401, 401, 429, 429]
            assert [answer.status_code for answer in unknown] == [401, 401, 429, 429]
            texts = [
                [re.sub(r"\d+ seconds", "", answer.text) for answer in answers]
                for answers in (known, unknown)
            ]
            assert texts[0] == texts[1]


@pytest.mark.usefixtures("time_stands_still")
def test_a_class_behind_one_address_may_sign_in_at_once(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    Users(project.folder).add("anna", "correct horse")
    with sites.serving(tmp_path, project=project, limits=Limits(tries=2), enter=False) as site:
        assert [sign_in(site, "anna ").status_code for _ in range(4)] == [200] * 4
        assert [sign_in(site, secret="wrong horse").status_code for _ in range(3)] == [
            401,
            401,
            429,
        ]


def test_a_large_request_is_refused(site):
    big = {"id": "x" * 200_000, "label": None}
    assert site.post("/api/answer", big).status_code == 413

    def endless():
        for _ in range(100):
            yield b" " * 10_000

    headers = {"X-CSRF-Token": site.csrf, "Content-Type": "application/json"}
    assert site.client.post("/api/answer", content=endless(), headers=headers).status_code == 413
    odd = site.client.post(
        "/api/answer", content=b"{}", headers={**headers, "Content-Length": "-5"}
    )
    assert odd.status_code == 413


def test_a_client_that_asks_too_often_is_slowed(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    with sites.serving(tmp_path, project=project, limits=Limits(rate=1e-3, burst=20)) as site:
        answers = [site.client.get("/api/session") for _ in range(25)]
        assert answers[0].status_code == 200
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        site.client.cookies.clear()  # someone else is not slowed by it
        assert site.client.get("/api/session").status_code == 401


def test_buckets_refill():
    now = [0.0]
    bucket = RateLimiter(2, 3, most=2, clock=lambda: now[0])
    assert [bucket.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    now[0] = 0.5
    assert bucket.take("a") == 0
    assert bucket.take("b") == 0
    assert bucket.take("c") == 0
    assert len(bucket._buckets) == 2  # however many addresses come, memory stays


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),  # one customer's network
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("10.0.0.1", "10.0.0.2", False),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),  # IPv4, as a socket for both kinds shows it
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("testclient", "nobody", False),
    ],
)
def test_an_ipv6_network_counts_as_one_client(one, other, same):
    assert (client_network(one) == client_network(other)) == same


def test_a_persons_limit_is_not_raised_by_signing_in_again(tmp_path, pool):
    """It is counted by person: a hundred browsers of one have no more than one."""
    project = sites.begin(tmp_path / "run", pool)
    for name in ("anna", "bert"):
        Users(project.folder).add(name, "correct horse")
    limits = Limits(rate=1e-3, burst=30)
    with (
        sites.serving(tmp_path, project=project, limits=limits, enter=False) as site,
        at(site, "10.0.0.7") as second,
    ):
        assert sign_in(site).status_code == 200
        assert sign_in(second).status_code == 200
        answers = [
            who.client.get("/api/session").status_code for _ in range(25) for who in (site, second)
        ]
        assert answers.count(200) < 30
        assert answers[-1] == 429
        with at(site, "10.0.0.8") as bert:
            assert sign_in(bert, "bert").status_code == 200


def test_an_address_has_a_limit_however_many_names_it_takes(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    limits = Limits(rate=1e-3, burst=10, people=2)
    with sites.serving(tmp_path, project=project, limits=limits) as site:
        access = site.client.app.state.site.access
        cookies = [access.rename(f"name{n}", "", "testclient") for n in range(5)]
        statuses = []
        for cookie in cookies:
            site.client.cookies = {access.cookie_name: cookie}
            statuses += [site.client.get("/api/session").status_code for _ in range(8)]
        assert 12 <= statuses.count(200) <= 20
        assert statuses[-1] == 429
