"""Letting nobody in: each way in is tried."""

from __future__ import annotations

import errno
import html
import json
import re
import stat

import pytest
import sites
from fruit import orchard
from PIL import Image

from tailor.errors import InputError
from tailor.web.access import Access
from tailor.web.app import ROUTERS
from tailor.web.limits import Buckets, Limits, neighbourhood
from tailor.web.users import Users

NASTY = '"><script>alert(1)</script>'
TOKEN = "a-long-enough-token"


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    return orchard(tmp_path_factory.mktemp("pool"), 12)


@pytest.fixture
def with_users(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    Users(project.folder).add("anna", "correct horse")
    with sites.serving(tmp_path, project=project, enter=False) as found:
        yield found


def sign_in(site, name="anna", secret="correct horse"):
    return site.client.post("/login", data={"name": name, "secret": secret})


def routes():
    return [route for router in ROUTERS for route in router.routes]


# ---------------------------------------------------------------------- who may come in


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.org"])
def test_other_addresses_need_users_or_a_token(tmp_path, host):
    with pytest.raises(InputError, match="tailor users add"):
        Access(tmp_path, host=host)
    assert Access(tmp_path, host=host, token=TOKEN).mode == "token"
    Users(tmp_path).add("anna", "correct horse")
    assert Access(tmp_path, host=host).mode == "users"


def test_a_proxy_needs_users_or_a_token_too(tmp_path):
    """Whoever it lets in comes from this machine, as far as the server can see."""
    with pytest.raises(InputError, match=r"--allow-host label.example.org lets others in.*tailor users add"):
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
        assert answer.status_code == 503, path  # not the visitor's fault: a page tries again and keeps its answers
        assert "is damaged" in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_this_machine_needs_nothing(tmp_path, host):
    assert Access(tmp_path, host=host).mode == "open"


def test_a_short_token_or_password_is_refused(tmp_path):
    with pytest.raises(InputError, match="at least 16"):
        Access(tmp_path, token="short")
    with pytest.raises(InputError, match="at least 8"):
        Users(tmp_path).add("anna", "1234567")


def test_only_hashes_are_kept_and_only_for_the_owner(tmp_path, with_users):
    assert sign_in(with_users).status_code == 200
    folder = with_users.project.folder / "web"
    for name in ("users.json", "sessions.json"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
        assert "correct horse" not in (folder / name).read_text()
    assert json.loads((folder / "users.json").read_text())["users"]["anna"].startswith("$argon2id$")
    cookie = next(iter(with_users.client.cookies.values()))
    assert cookie not in (folder / "sessions.json").read_text()


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
            assert answer.status_code == 401 or answer.headers["location"].partition("?")[0] == "/login"
            tried += 1
    assert tried >= 20


def test_strangers_get_to_know_nothing(with_users):
    for path in ("/login", "/nowhere", "/login?token=x"):
        page = with_users.client.get(path).text
        assert not [name for name in with_users.room.classes if name in page], path


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
    assert with_users.client.post("/login", data=data, headers={"Origin": "https://evil.example"}).status_code == 403
    assert with_users.client.get("/api/session").status_code == 401


@pytest.mark.parametrize("to", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_signing_in_leads_nowhere_else(with_users, to):
    page = with_users.client.post(
        "/login", data={"name": "anna", "secret": "correct horse", "to": to}, follow_redirects=False
    )
    assert page.headers["location"] == "/"


def test_signing_in_leads_where_one_wanted_to_go(with_users):
    assert with_users.client.get("/review", follow_redirects=False).headers["location"] == "/login?to=%2Freview"
    page = with_users.client.post("/login", data={"name": "anna", "secret": "correct horse", "to": "/review"})
    assert page.url.path == "/review"


def test_a_new_password_or_a_removed_user_ends_sessions(with_users):
    users = Users(with_users.project.folder)
    sign_in(with_users)
    users.add("anna", "another horse")
    assert with_users.client.get("/api/session").status_code == 401
    assert sign_in(with_users, secret="another horse").status_code == 200
    users.add("bert", "some password")
    users.remove("anna")
    assert with_users.client.get("/api/session").status_code == 401


def test_a_token_lets_in_whoever_has_it(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    with sites.serving(tmp_path, project=project, token=TOKEN, enter=False) as site:
        assert sign_in(site, "anna", "not-the-right-token").status_code == 401
        assert TOKEN in site.client.get("/login", params={"token": TOKEN}).text  # filled in, not yet signed in
        assert site.client.get("/api/session").status_code == 401
        assert sign_in(site, "anna", TOKEN).status_code == 200
        assert site.client.get("/api/session").json()["name"] == "anna"
    with sites.serving(tmp_path, project=project, token=TOKEN + "2") as other:  # another token: all start anew
        other.client.cookies = site.client.cookies
        assert other.client.get("/api/session").status_code == 401


def test_sessions_outlive_the_server(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    with sites.serving(tmp_path, project=project) as before:
        csrf = before.csrf
    with sites.serving(tmp_path, project=project, enter=False) as after:
        after.client.cookies = before.client.cookies
        assert after.csrf == csrf


def test_guessing_is_slow(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    Users(project.folder).add("anna", "correct horse")
    with sites.serving(tmp_path, project=project, limits=Limits(tries_a_minute=2), enter=False) as site:
        answers = [sign_in(site, secret=f"guess number {i}").status_code for i in range(4)]
        assert answers == [401, 401, 429, 429]
        assert sign_in(site).status_code == 429  # the right one too: nothing is learned by trying


def test_a_class_behind_one_address_may_sign_in_at_once(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    Users(project.folder).add("anna", "correct horse")
    with sites.serving(tmp_path, project=project, limits=Limits(tries_a_minute=2), enter=False) as site:
        assert [sign_in(site, "anna ").status_code for _ in range(4)] == [200] * 4
        assert [sign_in(site, secret="wrong horse").status_code for _ in range(3)] == [401, 401, 429]


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


def test_the_cookie_is_out_of_reach_for_scripts(site):
    site.client.cookies.clear()
    header = site.client.get("/", follow_redirects=True).history[1].headers["set-cookie"]
    assert "HttpOnly" in header
    assert "samesite=lax" in header.lower()


# ---------------------------------------------------------------------- requests from elsewhere


def changes():
    return [r.path.replace("{change}", "add") for r in routes() if "POST" in r.methods and r.path != "/login"]


def test_every_change_needs_the_token_of_its_session(site):
    assert len(changes()) >= 8
    for path in changes():
        for headers in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": "0" * 64}, {"X-CSRF-Token": "é"}):
            raw = {k: v.encode("latin-1") for k, v in headers.items()}
            assert site.client.post(path, json={"name": "x"}, headers=raw).status_code == 403, (path, headers)
        assert site.client.post(path, data={"csrf": "0" * 64, "name": "x"}).status_code == 403, path
    assert site.room.classes == ("apple", "lemon", "pear", "plum")


def test_no_change_by_get(site):
    for path in changes():
        assert site.client.get(path).status_code in (404, 405), path


def test_another_origin_is_refused(site):
    (item,) = site.next(1)
    body = {"id": item["id"], "label": ["apple"]}
    assert site.post("/api/answer", body, Origin="https://evil.example").status_code == 403
    assert site.post("/api/answer", body, Origin="null").status_code == 403
    assert site.post("/api/answer", body, Origin=sites.HOST).status_code == 200


STRANGE = ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "[::2]:80", "localhost.evil"]


@pytest.mark.parametrize("host", STRANGE)
def test_a_name_that_was_bound_to_this_machine_is_refused(site, host):
    """DNS rebinding: the browser believes to talk to evil.example, and talks to us."""
    assert site.client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8765", "LOCALHOST"])
def test_our_own_names_are_fine(site, host):
    assert site.client.get("/api/session", headers={"Host": host}).status_code == 200


def test_further_names_can_be_allowed(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    with sites.serving(tmp_path, project=project, hosts=["label.example.org"]) as site:
        assert site.client.get("/api/session", headers={"Host": "label.example.org"}).status_code == 200
        assert site.client.get("/api/session", headers={"Host": "other.example.org"}).status_code == 421


def test_every_answer_carries_the_headers(site):
    (item,) = site.next(1)
    picture = f"/picture?id={item['id']}"
    for path in ("/", "/login", "/static/label.js", "/api/next", "/nowhere", picture, "/openapi.json"):
        headers = site.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
    assert site.client.get("/api/session").headers["cache-control"] == "no-store"


# ---------------------------------------------------------------------- too much


def test_a_large_request_is_refused(site):
    big = {"id": "x" * 200_000, "label": None}
    assert site.post("/api/answer", big).status_code == 413

    def endless():
        for _ in range(100):
            yield b" " * 10_000

    headers = {"X-CSRF-Token": site.csrf, "Content-Type": "application/json"}
    assert site.client.post("/api/answer", content=endless(), headers=headers).status_code == 413
    odd = site.client.post("/api/answer", content=b"{}", headers={**headers, "Content-Length": "-5"})
    assert odd.status_code == 413


def test_a_client_that_asks_too_often_is_slowed(tmp_path, pool):
    project = sites.begin(tmp_path / "run", pool)
    with sites.serving(tmp_path, project=project, limits=Limits(rate=1, burst=20)) as site:
        answers = [site.client.get("/api/session") for _ in range(25)]
        assert answers[0].status_code == 200
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        site.client.cookies.clear()  # someone else is not slowed by it
        assert site.client.get("/api/session").status_code == 401


def test_buckets_refill():
    now = [0.0]
    bucket = Buckets(2, 3, most=2, clock=lambda: now[0])
    assert [bucket.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    now[0] = 0.5
    assert bucket.take("a") == 0
    assert bucket.take("b") == 0
    assert bucket.take("c") == 0
    assert len(bucket._left) == 2  # however many addresses come, memory stays


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
    assert (neighbourhood(one) == neighbourhood(other)) == same


# ---------------------------------------------------------------------- what a pool may hold


def test_pictures_come_by_id_never_by_path(site, tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    outside = ["../secret.png", "..%2fsecret.png", str(tmp_path / "secret.png"), "img-00000.jpg/../../secret.png", "."]
    for one in outside:
        assert site.client.get("/picture", params={"id": one}).status_code == 404, one
    assert site.client.get("/picture", params={"id": "img-00000.jpg"}).status_code == 200
    assert site.client.get("/static/../app.py").status_code == 404
    assert site.client.get("/static/..%2fapp.py").status_code == 404


def test_nothing_but_pixels_is_sent(tmp_path):
    """An SVG or HTML under a picture's name is no picture; a picture with a script behind it loses the script."""
    pool = orchard(tmp_path / "pool", 3)
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    (pool / "a.png").write_bytes(svg)
    (pool / "b.jpg").write_bytes(b"<html><script>alert(1)</script></html>")
    whole = (pool / "img-00000.jpg").read_bytes()
    (pool / "c.jpg").write_bytes(whole + b"<script>alert(1)</script>")
    (pool / "d.svg").write_bytes(svg)
    with sites.serving(tmp_path, pool=pool) as site:
        for one in ("a.png", "b.jpg", "d.svg"):
            assert site.client.get("/picture", params={"id": one}).status_code == 404
        sent = site.client.get("/picture", params={"id": "c.jpg"})
        assert sent.headers["content-type"] in ("image/jpeg", "image/png")
        assert b"script" not in sent.content


def test_names_are_escaped_everywhere(tmp_path):
    """A file and a class whose names are markup: in pages, in the script's data, in fragments, in errors."""
    pool = tmp_path / "pool"
    pool.mkdir()
    nasty_file = "x'\"><img src=q onerror=alert(1)>.png"
    for name in (nasty_file, "b.png", "c.png"):
        Image.new("RGB", (8, 8)).save(pool / name)
    closing = "</script><script>alert(2)</script>"
    project = sites.begin(tmp_path / "run", pool, [NASTY, closing, "{{7*7}}"], batch=3)
    with sites.serving(tmp_path, project=project, name=NASTY) as site:
        for item in site.next(3):
            assert site.post("/api/answer", {"id": item["id"], "label": [closing]}).status_code == 200
        pages = ["/", "/panel", "/review", "/classes", "/team", "/export", f"/classes?done={NASTY}&problem={NASTY}"]
        for path in pages:
            page = site.client.get(path).text
            assert "alert(1)</script>" not in page, path
            assert "<script>alert" not in page, path
            assert "<img src=q" not in page, path
            assert path == "/export" or "{{7*7}}" in html.unescape(page)  # text, not a template
        data = re.search(r'json" id="data">(.*?)</script>', site.client.get("/").text, re.S)[1]
        assert json.loads(data)["classes"] == [NASTY, closing, "{{7*7}}"]
        assert "<" not in data
        assert site.client.get("/picture", params={"id": nasty_file}).status_code == 200
