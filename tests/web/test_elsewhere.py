"""Requests that come from elsewhere: another site, another name, a browser that was lured."""

from __future__ import annotations

import pytest
import sites
from signing_in import routes


def changes():
    return [
        r.path.replace("{change}", "add")
        for r in routes()
        if "POST" in r.methods and r.path != "/login"
    ]


def test_every_change_needs_the_token_of_its_session(site):
    assert len(changes()) >= 8
    for path in changes():
        for headers in (
            {},
            {"X-CSRF-Token": ""},
            {"X-CSRF-Token": "0" * 64},
            {"X-CSRF-Token": "é"},
        ):
            raw = {k: v.encode("latin-1") for k, v in headers.items()}
            assert site.client.post(path, json={"name": "x"}, headers=raw).status_code == 403, (
                path,
                headers,
            )
        assert site.client.post(path, data={"csrf": "0" * 64, "name": "x"}).status_code == 403, path
    assert site.coordinator.classes == ("apple", "lemon", "pear", "plum")


def test_no_change_by_get(site):
    for path in changes():
        assert site.client.get(path).status_code in (404, 405), path


def test_another_origin_is_refused(site):
    (item,) = site.next(1)
    body = {"id": item["id"], "label": ["apple"]}
    assert site.post("/api/answer", body, Origin="https://evil.example").status_code == 403
    assert site.post("/api/answer", body, Origin="null").status_code == 403
    assert site.post("/api/answer", body, Origin=sites.HOST).status_code == 200


def test_another_sites_pictures_and_frames_open_no_sessions(site):
    """Else any page that is open beside this one could open sessions without end."""
    site.client.cookies.clear()
    for dest in ("image", "iframe", "script", "empty"):
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": dest}
        assert site.client.get("/login", headers=headers).status_code == 403
    assert not site.client.cookies
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    assert site.client.get("/login", headers=link).url.path == "/"  # a link may lead here
    site.client.cookies.clear()
    assert site.client.get(
        "/login", headers={"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "empty"}
    ).is_success


STRANGE = [
    "evil.example",
    "evil.example:8765",
    "127.0.0.1.evil.example",
    "",
    "[::2]:80",
    "localhost.evil",
]


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
        assert (
            site.client.get("/api/session", headers={"Host": "label.example.org"}).status_code
            == 200
        )
        assert (
            site.client.get("/api/session", headers={"Host": "other.example.org"}).status_code
            == 421
        )


def test_every_answer_carries_the_headers(site):
    (item,) = site.next(1)
    picture = f"/picture?id={item['id']}"
    for path in (
        "/",
        "/login",
        "/static/label.js",
        "/api/next",
        "/nowhere",
        picture,
        "/openapi.json",
    ):
        headers = site.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
    assert site.client.get("/api/session").headers["cache-control"] == "no-store"
