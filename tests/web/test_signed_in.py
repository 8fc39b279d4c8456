"""What is kept about those who signed in: hashes alone, and no longer than it should be."""

from __future__ import annotations

import errno
import json
import stat

import pytest
import sites
from doors import sign_in

from tailor.errors import InputError
from tailor.web.sessions import Sessions
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
    users.add("bert", "some password")
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


def test_a_thousand_sign_ins_end_nobody_elses_session(tmp_path):
    now = [0.0]
    sessions = Sessions(tmp_path, clock=lambda: now[0])
    colleague = sessions.open("bert", "stamp")
    own = []
    for number in range(50):
        now[0] += 1
        own.append(sessions.open("anna", "stamp"))
        assert sessions.find(own[-1]), number
    assert sessions.find(colleague)
    assert [bool(sessions.find(cookie)) for cookie in own] == [False] * 30 + [True] * 20
    assert Sessions(tmp_path, clock=lambda: now[0]).find(colleague)


def test_where_names_are_free_they_come_to_an_end(tmp_path, monkeypatch):
    """Nobody's session ends by it: the next newcomer waits."""
    monkeypatch.setattr("tailor.web.sessions.MOST", 5)
    sessions = Sessions(tmp_path)
    cookies = [sessions.open(f"name{number}", "stamp") for number in range(5)]
    with pytest.raises(InputError, match="5 browsers are signed in"):
        sessions.open("one more", "stamp")
    assert all(sessions.find(cookie) for cookie in cookies)
    sessions.close(cookies[0])
    assert sessions.open("one more", "stamp")
