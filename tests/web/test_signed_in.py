"""What is kept about those who signed in: hashes alone, and no longer than it should be."""

from __future__ import annotations

import errno
import itertools
import json
import stat

import pytest
import sites
from signing_in import sign_in

from tailor.web.access import Access
from tailor.web.limits import Limits
from tailor.web.sessions import OF_ONE_USER, Sessions
from tailor.web.users import Users


def test_only_hashes_are_kept_and_only_for_the_owner(tmp_path, with_users):
    assert sign_in(with_users).status_code == 200
    folder = with_users.project.folder / "web"
    for name in ("users.json", "sessions.json"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
        assert "correct horse" not in (folder / name).read_text()
    assert json.loads((folder / "users.json").read_text())["users"]["anna"].startswith("$argon2id$")
    cookie = next(iter(with_users.client.cookies.values()))
    assert cookie not in (folder / "sessions.json").read_text()


def test_a_new_password_or_a_removed_user_ends_sessions(with_users):
    users = Users(with_users.project.folder)
    sign_in(with_users)
    users.add("anna", "another horse")
    assert with_users.client.get("/api/session").status_code == 401
    assert sign_in(with_users, secret="another horse").status_code == 200
    users.add("bert", "some password", "owner")
    users.remove("anna")
    assert with_users.client.get("/api/session").status_code == 401


def test_sessions_outlive_the_server(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    with sites.serving(tmp_path, project=project) as before:
        csrf = before.csrf
    with sites.serving(tmp_path, project=project, enter=False) as after:
        after.client.cookies = before.client.cookies
        assert after.csrf == csrf


def test_the_cookie_is_out_of_reach_for_scripts(site):
    site.client.cookies.clear()
    header = site.client.get("/", follow_redirects=True).history[1].headers["set-cookie"]
    assert "HttpOnly" in header
    assert "samesite=lax" in header.lower()


def test_a_full_disk_is_told_at_the_door(with_users, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "/a/secret/place")

    with monkeypatch.context() as patch:
        patch.setattr("tailor.web.sessions.write_private", full)
        page = sign_in(with_users)
        assert page.status_code == 503
        assert "No space left on device" in page.text
        assert "secret" not in page.text
    assert sign_in(with_users).status_code == 200


@pytest.fixture
def clock():
    """Later with every look."""
    return itertools.count(1.0).__next__


def test_a_thousand_sign_ins_end_nobody_elses_session(tmp_path, clock):
    sessions = Sessions(tmp_path, clock=clock)
    colleague = sessions.open("bert", "stamp", "bert")
    own = []
    for number in range(50):
        own.append(sessions.open("anna", "stamp", "anna"))
        assert sessions.find(own[-1]), number
    assert sessions.find(colleague)
    assert [bool(sessions.find(cookie)) for cookie in own] == [False] * 30 + [True] * 20
    assert Sessions(tmp_path, clock=clock).find(colleague)


def test_what_is_in_use_outlives_what_was_left_behind(tmp_path, clock):
    """The oldest of all, but used: it stays, after a restart too."""
    sessions = Sessions(tmp_path, clock=clock)
    mine = sessions.open("me", "stamp", "127.0.0.1", most=3)
    assert sessions.find(mine)
    for _ in range(10):
        sessions.open("me", "stamp", "127.0.0.1", most=3)
    sessions = Sessions(tmp_path, clock=clock)
    for _ in range(10):
        sessions.open("me", "stamp", "127.0.0.1", most=3)
    assert sessions.find(mine)


def test_too_many_in_all_cost_whoever_has_most(tmp_path, monkeypatch, clock):
    """And newcomers are let in."""
    monkeypatch.setattr("tailor.web.sessions.MOST", 5)
    sessions = Sessions(tmp_path, clock=clock)
    colleague = sessions.open("bert", "stamp", "10.0.0.2")
    many = [sessions.open(f"name{number}", "stamp", "10.0.0.1") for number in range(4)]
    newcomer = sessions.open("clara", "stamp", "10.0.0.3")
    assert sessions.find(colleague)
    assert sessions.find(newcomer)
    assert [bool(sessions.find(cookie)) for cookie in many] == [False, True, True, True]


@pytest.mark.parametrize("token", [None, "x" * 30])
def test_where_names_are_free_a_colleagues_name_ends_nothing(tmp_path, token):
    """Anyone may sign in by any name there."""
    access = Access(tmp_path, token=token, limits=Limits(tries=1e6, tries_in_all=1e6))

    def come_in(address):
        return access.sign_in("Anna", token, address) if token else access.enter(address)

    mine = come_in("10.0.0.1")
    for _ in range(OF_ONE_USER + 5):
        come_in("10.0.0.2")
    assert access.visitor(mine)


def test_another_name_replaces_the_session(tmp_path):
    access = Access(tmp_path)
    before = access.enter("127.0.0.1")
    after = access.rename("anna", before, "127.0.0.1")
    assert access.visitor(before) is None
    assert access.visitor(after).name == "anna"


def test_the_old_cookie_is_worth_nothing_after_a_new_name(site):
    (name, before), *_ = site.client.cookies.items()
    assert site.client.post("/name", data={"name": "anna", "csrf": site.csrf}).status_code == 200
    assert site.client.get("/api/session").json()["name"] == "anna"
    site.client.cookies.clear()
    site.client.cookies.set(name, before)
    assert site.client.get("/api/session").status_code == 401


def test_a_session_that_could_not_be_kept_ends_no_other(tmp_path, monkeypatch, clock):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    sessions = Sessions(tmp_path, clock=clock)
    first = sessions.open("anna", "stamp", "anna", most=1)
    monkeypatch.setattr("tailor.web.sessions.write_private", full)
    with pytest.raises(OSError, match="No space"):
        sessions.open("anna", "stamp", "anna", most=1)
    assert sessions.find(first)
