"""The JSON behind the page, and the pages themselves, without a browser."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
import sites
from fruit import orchard, truth
from PIL import Image


def test_label_correct_skip_and_history(site):
    first, second, third = site.next(3)
    assert first["shown"] == {"kind": "image"}
    receipt = site.post("/api/answer", {"id": first["id"], "label": ["apple"]}).json()
    assert receipt["counts"]["apple"] == 1
    assert (
        site.post("/api/answer", {"id": first["id"], "label": ["plum"]}).json()["counts"]["plum"]
        == 1
    )
    assert site.post("/api/answer", {"id": second["id"], "label": None}).status_code == 200
    history = site.client.get("/api/history").json()["items"]
    assert [(one["id"], one["label"], one["skipped"]) for one in history] == [
        (second["id"], None, True),
        (first["id"], ["plum"], False),
    ]
    assert third["id"] in [
        one["id"] for one in site.next(3)
    ]  # leased to me: a reload gives it again


@pytest.mark.parametrize("label", [[], ["apple", "plum"], ["durian"], ["apple", "apple"]])
def test_a_bad_answer_is_refused_and_changes_nothing(site, label):
    (item,) = site.next(1)
    refused = site.post("/api/answer", {"id": item["id"], "label": label})
    assert refused.status_code == 422
    assert refused.json()["error"]
    assert site.coordinator.overview()["progress"]["answered"] == 0


def test_an_unknown_id_is_refused(site):
    assert site.post("/api/answer", {"id": "nowhere.jpg", "label": ["apple"]}).status_code == 422
    assert site.client.get("/api/why", params={"id": "nowhere.jpg"}).status_code == 422
    assert site.client.get("/picture", params={"id": "nowhere.jpg"}).status_code == 404


def test_every_page_is_there_and_says_what_was_labelled(site):
    answered = {}
    for item in site.next(6):
        answered[item["id"]] = truth(item["id"])
        site.post("/api/answer", {"id": item["id"], "label": [truth(item["id"])]})
    for page in ("/", "/panel", "/review", "/model", "/classes", "/team", "/export"):
        found = site.client.get(page)
        assert found.status_code == 200, page
        assert found.headers["content-type"].startswith("text/html")
    grid = site.client.get("/review").text
    assert all(one in grid for one in answered)
    kind = next(iter(answered.values()))
    only = site.client.get("/review", params={"klass": kind}).text
    assert {one for one in answered if f'data-id="{one}"' in only} == {
        o for o, k in answered.items() if k == kind
    }


def test_the_review_has_pages(site, monkeypatch):
    monkeypatch.setattr("tailor.web.pages.GRID", 2)
    for item in site.next(5):
        site.post("/api/answer", {"id": item["id"], "label": ["apple"]})
    seen = []
    here = "/review"
    while here:
        page = site.client.get(here).text
        seen += sites.tiles(page)
        here = sites.link(page, "next")
    assert len(seen) == len(set(seen)) == 5


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_the_export_holds_every_label(site, form):
    answers = {item["id"]: truth(item["id"]) for item in site.next(5)}
    for one, label in answers.items():
        site.post("/api/answer", {"id": one, "label": [label]})
    got = site.client.get(f"/export/labels.{form}")
    assert got.status_code == 200
    assert "attachment" in got.headers["content-disposition"]
    assert sites.rows(got.content, form) == answers


def test_csv_cells_that_begin_a_formula_are_escaped(tmp_path):
    pool = tmp_path / "pool"
    pool.mkdir()
    for name in ("=1+1.png", "@x.png", "plain.png"):
        Image.new("RGB", (8, 8)).save(pool / name)
    project = sites.begin(tmp_path / "run", pool, ["-bad", "+worse", "good"], batch=3)
    with sites.serving(tmp_path, project=project) as site:
        for item in site.next(3):
            site.post("/api/answer", {"id": item["id"], "label": ["-bad"]})
        text = site.client.get("/export/labels.csv").text
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert {"'=1+1.png", "'@x.png", "'-bad", "plain.png"} <= set(cells)
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@")]


def test_classes_change_and_everything_follows(site):
    for item in site.next(4):
        site.post("/api/answer", {"id": item["id"], "label": ["apple"]})
    assert site.post("/api/classes/add", {"name": " quince "}).json()["classes"][-1] == "quince"
    assert (
        site.post("/api/classes/rename", {"old": "apple", "new": "pippin"}).json()["classes"][0]
        == "pippin"
    )
    merged = site.post("/api/classes/merge", {"old": "pippin", "into": "quince"}).json()["classes"]
    assert merged == ["lemon", "pear", "plum", "quince"]
    assert set(sites.rows(site.client.get("/export/labels.csv").content, "csv").values()) == {
        "quince"
    }
    assert site.client.get("/api/next").json()["classes"] == merged  # an open page hears of it
    for bad in ("", "   ", "a\nb", "x" * 300, "quince"):
        assert site.post("/api/classes/add", {"name": bad}).status_code == 422, bad
    page = site.form(
        "/classes/merge", old="nothing", into="quince"
    )  # by form: the page says why not
    assert "unknown class" in page.text


def test_two_people_who_differ(tmp_path):
    project = sites.begin(tmp_path / "run", orchard(tmp_path / "pool", 20))
    with sites.serving(
        tmp_path, project=project, coordinator_options={"overlap": 2, "overlap_share": 1.0}
    ) as anna:
        with anna.other("bert") as bert:
            ids = [item["id"] for item in anna.next(3)]
            assert [item["id"] for item in bert.next(3)] == ids  # shared ones
            for one, theirs in zip(ids, ("apple", "apple", "plum")):
                anna.post("/api/answer", {"id": one, "label": ["apple"]})
                bert.post("/api/answer", {"id": one, "label": [theirs]})
        agreed = anna.client.get("/api/agreement").json()
        assert agreed["overall"]["n"] == 3
        assert agreed["overall"]["equal"] == pytest.approx(2 / 3)
        (open_one,) = anna.client.get("/api/disagreements").json()["items"]
        assert open_one["id"] == ids[2]
        page = anna.client.get("/team").text
        assert "67%" in page
        assert sites.tiles(page) == [ids[2]]
        assert anna.post("/api/settle", {"id": ids[2], "label": ["pear"]}).status_code == 200
        assert sites.tiles(anna.client.get("/team").text) == []
        assert sites.rows(anna.client.get("/export/labels.csv").content, "csv") == {
            ids[0]: "apple",
            ids[1]: "apple",
            ids[2]: "pear",
        }


def test_texts_and_embeddings_are_shown(tmp_path):
    texts = tmp_path / "texts.csv"
    texts.write_text(
        "text\n" + "\n".join(f"sentence number {i} about <b>something</b>" for i in range(30))
    )
    project = sites.begin(
        tmp_path / "t",
        texts,
        ["good", "bad"],
        model={"name": "probe(steps=20)", "backbone": "hashed-words"},
    )
    with sites.serving(tmp_path, project=project) as site:
        (item,) = site.next(1)
        assert item["shown"]["text"].endswith("about <b>something</b>")
        site.post("/api/answer", {"id": item["id"], "label": ["good"]})
        page = site.client.get("/review").text
        assert "&lt;b&gt;something" in page
        assert "<b>something" not in page
    np.save(
        tmp_path / "vectors.npy", np.random.default_rng(0).normal(size=(30, 50)).astype(np.float32)
    )
    project = sites.begin(
        tmp_path / "v",
        tmp_path / "vectors.npy",
        ["a", "b"],
        kind="multi-label",
        model={"name": "probe(steps=20)", "backbone": "given"},
    )
    with sites.serving(tmp_path, project=project) as site:
        (item,) = site.next(1)
        assert item["shown"]["length"] == 50
        assert len(item["shown"]["values"]) == 32
        assert site.post("/api/answer", {"id": item["id"], "label": []}).status_code == 200
        assert site.client.get("/review").status_code == 200


def test_a_picture_added_later_can_be_seen(site, tmp_path, monkeypatch):
    assert site.client.get("/picture", params={"id": "new.png"}).status_code == 404
    Image.new("RGB", (8, 8), "red").save(tmp_path / "orchard" / "new.png")
    monkeypatch.setattr("tailor.web.examples.LOOK_AGAIN", 0.0)
    assert site.client.get("/picture", params={"id": "new.png"}).status_code == 200
