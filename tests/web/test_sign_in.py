"""Who may come in, and who may not: each way in is tried."""

from __future__ import annotations

import pytest
import sites
from signing_in import TOKEN, routes, sign_in

from tailor.errors import InputError
from tailor.web.access import Access
from tailor.web.users import Users


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.org"])
def test_other_addresses_need_users_or_a_token(tmp_path, host):
    with pytest.raises(InputError, match="tailor users add"):
        Access(tmp_path, host=host)
    assert Access(tmp_path, host=host, token=TOKEN).mode == "token"
    Users(tmp_path).add("anna", "correct horse")
    assert Access(tmp_path, host=host).mode == "users"


def test_a_proxy_needs_users_or_a_token_too(tmp_path):
    """Whoever it lets in comes from this machine, as far as the server can see."""
    with pytest.raises(
        InputError, match=r"--allow-host label.example.org lets others in.*tailor users add"
    ):
        Access(tmp_path, hosts=["label.example.org"])
    assert Access(tmp_path, hosts=["label.example.org"], token=TOKEN).mode == "token"


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_without_its_last_user_the_door_stays_shut(tmp_path, pool, host):
    project = sites.begin(tmp_path / "run", pool)
    Users(project.folder).add("anna", "correct horse")
    with sites.serving(tmp_path, project=project, host=host, enter=False) as site:
        sign_in(site)
        Users(project.folder).remove("anna")
        assert site.client.get("/").url.path == "/login"
        assert sign_in(site).status_code == 401
        assert site.client.get("/api/session").status_code == 401
        Users(project.folder).add("bert", "another horse")
        assert sign_in(site, "bert", "another horse").status_code == 200


def test_a_door_that_cannot_be_read_stays_shut_and_says_so(with_users):
    sign_in(with_users)
    (with_users.project.folder / "web" / "users.json").write_text("{")
    for path in ("/", "/login", "/api/session"):
        answer = with_users.client.get(path)
        assert answer.status_code == 503, (
            path
        )  # not the visitor's fault: a page tries again and keeps its answers
        assert "is damaged" in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_this_machine_needs_nothing(tmp_path, host):
    assert Access(tmp_path, host=host).mode == "open"


def test_a_short_token_or_password_is_refused(tmp_path):
    with pytest.raises(InputError, match="at least 16"):
        Access(tmp_path, token="short")
    with pytest.raises(InputError, match="at least 8"):
        Users(tmp_path).add("anna", "1234567")


def test_every_route_needs_someone_signed_in(with_users):
    """Found by themselves, so that a new route can't be forgotten."""
    tried = 0
    for route in routes():
        if route.path == "/login":
            continue
        path = route.path.replace("{change}", "add").replace("{form}", "csv")
        for method in route.methods:
            answer = with_users.client.request(method, path, follow_redirects=False)
            assert answer.status_code in (401, 303), (method, path, answer.status_code)
            assert (
                answer.status_code == 401
                or answer.headers["location"].partition("?")[0] == "/login"
            )
            tried += 1
    assert tried >= 20


def test_strangers_get_to_know_nothing(with_users):
    for path in ("/login", "/nowhere", "/login?token=x"):
        page = with_users.client.get(path).text
        assert not [name for name in with_users.coordinator.classes if name in page], path


def test_wrong_password_wrong_name_and_signing_out(with_users):
    assert sign_in(with_users, secret="wrong horse").status_code == 401
    assert sign_in(with_users, name="bert").status_code == 401
    assert with_users.client.get("/api/session").status_code == 401
    assert sign_in(with_users).status_code == 200
    cookie = dict(with_users.client.cookies)
    assert with_users.client.get("/api/session").json()["name"] == "anna"
    with_users.form("/logout")
    with_users.client.cookies = cookie  # a copy of the cookie is worth nothing after signing out
    assert with_users.client.get("/api/session").status_code == 401


def test_nobody_is_signed_in_by_another_site(with_users):
    data = {"name": "anna", "secret": "correct horse"}
    assert (
        with_users.client.post(
            "/login", data=data, headers={"Origin": "https://evil.example"}
        ).status_code
        == 403
    )
    assert with_users.client.get("/api/session").status_code == 401


@pytest.mark.parametrize(
    "to", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_signing_in_leads_nowhere_else(with_users, to):
    page = with_users.client.post(
        "/login", data={"name": "anna", "secret": "correct horse", "to": to}, follow_redirects=False
    )
    assert page.headers["location"] == "/"


def test_signing_in_leads_where_one_wanted_to_go(with_users):
    assert (
        with_users.client.get("/review", follow_redirects=False).headers["location"]
        == "/login?to=%2Freview"
    )
    page = with_users.client.post(
        "/login", data={"name": "anna", "secret": "correct horse", "to": "/review"}
    )
    assert page.url.path == "/review"


def test_a_token_lets_in_whoever_has_it(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    with sites.serving(tmp_path, project=project, token=TOKEN, enter=False) as site:
        assert sign_in(site, "anna", "not-the-right-token").status_code == 401
        assert (
            TOKEN not in site.client.get("/login", params={"token": TOKEN}).text
        )  # never by what a proxy logs
        assert site.client.get("/api/session").status_code == 401
        assert sign_in(site, "anna", TOKEN).status_code == 200
        assert site.client.get("/api/session").json()["name"] == "anna"
    with sites.serving(
        tmp_path, project=project, token=TOKEN + "2"
    ) as other:  # another token: all start anew
        other.client.cookies = site.client.cookies
        assert other.client.get("/api/session").status_code == 401
