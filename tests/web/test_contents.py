"""What a pool may hold: pictures that are none, names that are markup."""

from __future__ import annotations

import html
import io
import json
import os
import re
import sys

import pytest
import sites
from fruit import orchard
from PIL import Image

from tailor.web.examples import Examples

NASTY = '"><script>alert(1)</script>'


def test_pictures_come_by_id_never_by_path(site, tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    outside = [
        "../secret.png",
        "..%2fsecret.png",
        str(tmp_path / "secret.png"),
        "img-00000.jpg/../../secret.png",
        ".",
    ]
    for one in outside:
        assert site.client.get("/picture", params={"id": one}).status_code == 404, one
    assert site.client.get("/picture", params={"id": "img-00000.jpg"}).status_code == 200
    assert site.client.get("/static/../app.py").status_code == 404
    assert site.client.get("/static/..%2fapp.py").status_code == 404


def test_nothing_but_pixels_is_sent(tmp_path):
    """An SVG or HTML under a picture's name is no picture; a picture with a script behind it loses
    the script.
    """
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


def test_a_transparent_picture_is_shown_on_a_light_ground(tmp_path):
    pool = orchard(tmp_path / "pool", 3)
    Image.new("RGBA", (600, 300), (0, 0, 0, 0)).save(pool / "a.png")
    Image.new("RGBA", (60, 30), (0, 0, 0, 0)).save(pool / "b.png")
    with sites.serving(tmp_path, pool=pool) as site:
        for one in ("a.png", "b.png"):
            for side in ("320", "1600"):
                sent = site.client.get("/picture", params={"id": one, "side": side})
                assert (
                    min(low for low, _ in Image.open(io.BytesIO(sent.content)).getextrema()) > 200
                ), (one, side)


def test_names_are_escaped_everywhere(tmp_path):
    """A file and a class whose names are markup: in pages, in the script's data, in fragments, in
    errors.
    """
    pool = tmp_path / "pool"
    pool.mkdir()
    nasty_file = "x'\"><img src=q onerror=alert(1)>.png"
    for name in (nasty_file, "b.png", "c.png"):
        Image.new("RGB", (8, 8)).save(pool / name)
    closing = "</script><script>alert(2)</script>"
    project = sites.begin(tmp_path / "run", pool, [NASTY, closing, "{{7*7}}"], batch=3)
    with sites.serving(tmp_path, project=project, name=NASTY) as site:
        for item in site.next(3):
            assert (
                site.post("/api/answer", {"id": item["id"], "label": [closing]}).status_code == 200
            )
        pages = [
            "/",
            "/panel",
            "/review",
            "/model",
            "/classes",
            "/team",
            "/export",
            f"/classes?done={NASTY}&problem={NASTY}",
        ]
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


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_name_that_is_not_utf8_is_shown_and_answered(tmp_path):
    pool = orchard(tmp_path / "pool", 3)
    os.rename(pool / "img-00000.jpg", os.fsencode(pool) + b"/caf\xe9.jpg")
    odd = "caf\\xe9.jpg"
    with sites.serving(tmp_path, pool=pool) as site:
        assert site.client.get("/picture", params={"id": odd}).status_code == 200
        assert odd in [item["id"] for item in site.next(3)]
        assert site.post("/api/answer", {"id": odd, "label": ["pear"]}).status_code == 200
        assert site.coordinator.item(odd).label == ("pear",)


def test_the_longer_a_look_takes_the_rarer_it_is(monkeypatch):
    """Ids that don't exist have the pool listed anew, for it may have grown; a large one must not
    be listed all day.
    """
    now = [0.0]
    listed = []

    class Large:
        kind = "image"
        ids = ("a.jpg",)

        def refresh(self):
            listed.append(now[0])
            now[0] += 3.0

    monkeypatch.setattr("tailor.web.examples.time.monotonic", lambda: now[0])
    examples = Examples(Large())
    while now[0] < 600:
        assert examples.picture("nothing.jpg", 320) is None
        now[0] += 1.0
    assert 5 <= len(listed) <= 10
