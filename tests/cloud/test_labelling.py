"""The labelling page on pictures that lie on object storage."""

from __future__ import annotations

import io
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sites
from fruit import KINDS, orchard, truth
from PIL import Image

from tailor import InputError
from tailor.cli.label import find_or_begin
from tailor.pools import open_pool
from tailor.pools.file_cache import user_folder
from tailor.run.project import Project
from tailor.web.examples import EncodedPicture, Examples


def begin(address):
    return find_or_begin(address, None, ",".join(KINDS), False, 4, "pixels(size=8)")


def test_pictures_are_fetched_as_they_are_shown(storage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    local = orchard(tmp_path / "orchard", 14)
    for file in local.iterdir():
        storage.put_file(f"fruit/{file.name}", file)
    project = begin(f"{storage.address}/fruit/")
    assert project.folder == Path("fruit-labels")
    assert begin(f"{storage.address}/fruit").settings == project.settings  # and goes on
    with sites.serving(tmp_path, project=project) as site:
        asked = set()
        for _ in range(2):  # the second round is chosen by a model
            for item in site.next(4):
                sent = site.client.get("/picture", params={"id": item["id"]})
                shown, wanted = (
                    np.asarray(Image.open(one))
                    for one in (io.BytesIO(sent.content), local / item["id"])
                )
                assert np.array_equal(shown, wanted)
                assert (
                    site.post(
                        "/api/answer", {"id": item["id"], "label": [truth(item["id"])]}
                    ).status_code
                    == 200
                )
                asked.add(item["id"])
        assert len(asked) == 8
        gone = next(file.name for file in local.iterdir() if file.name not in asked)
        storage.remove(f"fruit/{gone}")
        for copy in user_folder().iterdir():  # features were read from these
            copy.unlink()
        lost = site.client.get("/picture", params={"id": gone})
        assert (lost.status_code, lost.json()["error"]) == (
            404,
            "this picture can't be read: missing",
        )
    assert Project(project.folder).session().run_state.answered() == 8


def test_an_address_with_nothing_leaves_nothing(storage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"nothing at {storage.address}/fruit"):
        begin(f"{storage.address}/fruit")
    assert not list(tmp_path.glob("*-labels"))


def test_two_addresses_of_one_name_are_not_taken_for_each_other(storage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("mine", "yours"):
        storage.put(f"{folder}/reviews.csv", b"text\ngood\nbad\n")
    first = find_or_begin(f"{storage.address}/mine/reviews.csv", None, "good,bad", False, 4, "")
    with pytest.raises(
        InputError, match=r"reviews-labels labels .*/mine/reviews.csv, not .*/yours/.*: .*--run"
    ):
        find_or_begin(f"{storage.address}/yours/reviews.csv", None, "good,bad", False, 4, "")
    assert find_or_begin("reviews-labels", None, "", False, 4, "").settings == first.settings


def test_storage_that_can_not_be_reached_is_named(storage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    local = orchard(tmp_path / "orchard", 5)
    for file in local.iterdir():
        storage.put_file(f"fruit/{file.name}", file)
    with sites.serving(tmp_path, project=begin(f"{storage.address}/fruit")) as site:
        (item,) = site.next(1)
        shutil.rmtree(user_folder())  # as whoever tidies the temporary files up does
        assert (
            site.client.get("/picture", params={"id": item["id"], "side": "320"}).status_code == 200
        )
        shutil.rmtree(user_folder())

        def cut(*given, **more):
            raise ConnectionError("the line is cut")

        monkeypatch.setattr(
            site.client.app.state.site.examples.pool._copies.storage.filesystem, "get_file", cut
        )
        told = site.client.get("/picture", params={"id": item["id"], "side": "1600"})
        assert told.status_code == 422
        assert f"{storage.address}/fruit can't be reached (the line is cut)" in told.json()["error"]


def test_a_file_of_texts_is_named_without_its_ending(storage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage.put("reviews.csv", b"text\ngood\nbad\n")
    project = find_or_begin(f"{storage.address}/reviews.csv", None, "good,bad", False, 4, "")
    assert project.folder == Path("reviews-labels")
    shown = Examples(project.pool()).shown(list(project.pool().ids))
    assert [one["text"] for one in shown] == ["good", "bad"]


def test_pictures_are_shown_though_the_cache_holds_just_one(storage, tmp_path):
    local = orchard(tmp_path / "orchard", 12)
    for file in local.iterdir():
        storage.put_file(f"fruit/{file.name}", file)
    pool = open_pool(f"{storage.address}/fruit/", cache=tmp_path / "cache", cache_bytes=2000)
    asked = list(pool.ids) * 8
    with ThreadPoolExecutor(6) as threads:
        seen = list(threads.map(lambda one: Examples(pool, memory=0).picture(one, 64), asked))
    assert [
        one for one, picture in zip(asked, seen) if not isinstance(picture, EncodedPicture)
    ] == []
