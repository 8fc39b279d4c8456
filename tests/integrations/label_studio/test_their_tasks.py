"""The project's own tasks as the pool: nothing is uploaded, what was asked is marked."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image
from studio_runs import COLOURS, WORDS, connected_run, label_of, labels, settings, texts, topic

from tailor.errors import InputError


def sentences(tmp_path, size=40):
    return [
        json.loads(line)["text"]
        for line in texts(tmp_path / "news.jsonl", size).read_text().splitlines()
    ]


def test_texts_are_marked_and_handed_out(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    ids = project.load(*({"text": text, "source": "wire"} for text in sentences(tmp_path)))
    known = {ids[0]: "sport", ids[1]: "politics", ids[5]: "science"}
    for task, name in known.items():
        project.annotate(task, name)
    with connected_run(project, tmp_path / "run", settings=settings("text"), ahead=2) as connection:
        sync = connection.sync
        sync.step()
        # What was annotated before is known from the start, and credited to no arm; so the first
        # round has a model.
        assert labels(sync) == {str(task): (name,) for task, name in known.items()}
        asked = {t["id"]: t for t in project.tasks() if "tailor_round" in t["data"]}
        assert set(asked) == {int(s.id) for s in sync.session.waiting()}
        assert len(asked) == 8
        for task in asked.values():
            assert task["data"]["source"] == "wire"  # what was there is there still
            assert len(task["predictions"]) == (task["data"]["tailor_arm"] != "hold-out")
        assert not any(t["predictions"] for t in project.tasks() if t["id"] not in asked)
        assert project.settings()["model_version"] == "TAILOR"

        (tab,) = project.call("GET", "/api/dm/views/", params={"project": project.id})
        assert tab["data"]["title"] == "TAILOR"
        handed = []
        for _ in range(6):
            action = {"project": project.id, "id": "next_task", "tabID": tab["id"]}
            task = project.call("POST", "/api/dm/actions/", params=action, json=tab["data"])
            project.annotate(task, topic(task["data"]["text"]))
            handed.append(task["id"])
        assert set(handed) <= set(asked)  # the tab hands out what was asked, nothing else
        sync.step()
        assert len(labels(sync)) == len(known) + 6
        assert len(sync.session.waiting()) == 2 + 8
        assert len(project.call("GET", "/api/dm/views/", params={"project": project.id})) == 1
    later = project.load({"text": "x", "tailor_round": 10}, {"text": "x", "tailor_round": 9})
    listed = [t["id"] for t in project.tasks(view=tab["id"])]
    assert len(listed) == 16 + 2
    assert listed[-2:] == [later[1], later[0]]  # by round, as numbers


def test_new_tasks_join_and_annotations_outside_the_batch_count(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    given = sentences(tmp_path)
    project.load(*({"text": text} for text in given[:20]), {"text": ""})
    messages = []
    with connected_run(
        project, tmp_path / "run", settings=settings("text"), ahead=2, messages=messages
    ) as connection:
        sync = connection.sync
        sync.step()
        assert len(sync.session.run_state.ids) == 20
        assert any("has no text" in text for text in messages)
        unasked = next(
            t for t in project.tasks() if "tailor_round" not in t["data"] and t["data"]["text"]
        )
        project.annotate(unasked, topic(unasked["data"]["text"]))
        (new,) = project.load({"text": given[20]})
        project.annotate(new, topic(given[20]))
        sync.step()
        assert label_of(sync, str(unasked["id"])) == (topic(unasked["data"]["text"]),)
        assert str(new) not in sync.session.run_state.position  # it joins with the next round
        for task in project.waiting():
            if "tailor_round" in task["data"]:
                project.annotate(task, topic(task["data"]["text"]))
        sync.step()
        assert label_of(sync, str(new)) is None  # it has joined
        sync.step()
        assert label_of(sync, str(new)) == (topic(given[20]),)
    with connected_run(
        project, tmp_path / "run", messages=messages
    ) as connection:  # and again after a restart
        connection.sync.step()
        assert label_of(connection.sync, str(new)) == (topic(given[20]),)
    lines = (tmp_path / "run/label-studio/texts.jsonl").read_text().splitlines()
    assert len(lines) == 21
    assert len({json.loads(line)["id"] for line in lines}) == 21


def picture(name):
    pixels = np.full((12, 12, 3), COLOURS[name], np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def test_pictures_uploaded_linked_or_inline(make_project, tmp_path):
    project = make_project("image", "multiple", COLOURS)
    names = [list(COLOURS)[n % 3] for n in range(12)]
    path = f"/api/projects/{project.id}/import"
    files = [(str(n), (f"{n}.png", picture(name), "image/png")) for n, name in enumerate(names)]
    project.call("POST", path, files=files)  # as someone who drops files onto the import page
    inline = "data:image/png;base64," + base64.b64encode(picture("red")).decode()
    uploaded = project.tasks()[0]["data"]["image"]
    project.load(
        {"image": inline},
        {"image": project.server.url + uploaded},
        {"image": "/data/upload/1/missing.png"},
    )
    messages = []
    with connected_run(
        project, tmp_path / "run", settings=settings("image"), messages=messages
    ) as connection:
        sync = connection.sync
        sync.step()
        assert len(sync.session.run_state.ids) == 14
        assert any("has no picture" in text for text in messages)
        for task in project.tasks():
            example_id = f"{task['id']}.png"
            if example_id in sync.session.run_state.position:
                pixels = sync.session.pool.read([list(sync.session.pool.ids).index(example_id)])[0]
                name = next(
                    n for n, colour in COLOURS.items() if np.array_equal(pixels[0, 0], colour)
                )
                project.annotate(task, name)
        sync.step()
        assert len(labels(sync)) == 14
        assert set(labels(sync).values()) == {("red",), ("green",), ("blue",)}


def test_a_project_without_tasks(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    with (
        pytest.raises(InputError, match="no task to label"),
        connected_run(project, tmp_path / "run"),
    ):
        pass
    assert not (tmp_path / "run" / "tailor.toml").exists()
    project.load(*({"text": text} for text in sentences(tmp_path)))
    with connected_run(project, tmp_path / "run", settings=settings("text")) as connection:
        connection.sync.step()
        assert len(connection.sync.session.waiting()) == 8
