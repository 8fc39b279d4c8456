"""The loop against a real Label Studio: batches go there, annotations come back."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from studio_runs import (
    WORDS,
    colours,
    connected_run,
    label_of,
    labels,
    pictures,
    settings,
    texts,
    topic,
)
from studio_server import OWNER

from tailor.errors import InputError


def text_pool(tmp_path, **selection):
    return {"pool": texts(tmp_path / "news.jsonl"), "settings": settings("text", **selection)}


def answer_all(project):
    for task in project.waiting():
        project.annotate(task, topic(task["data"]["text"]))


def test_batches_go_out_and_answers_come_back(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    with connected_run(project, tmp_path / "run", ahead=2, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        first = project.waiting()
        assert len(first) == 8
        assert {t["data"]["tailor_round"] for t in first} == {0}
        assert {t["data"]["tailor_arm"] for t in first} <= {
            "coverage start",
            "random start",
            "hold-out",
        }
        assert not any(t["predictions"] for t in first)  # there is no model yet
        for task in first[:5]:
            project.annotate(task, topic(task["data"]["text"]))
        sync.step()
        assert len(labels(sync)) == 5
        assert len(project.tasks()) == 8  # three are left: no hurry
        project.annotate(first[5], topic(first[5]["data"]["text"]))
        sync.step()
        assert len(labels(sync)) == 6
        assert len(project.waiting()) == 2 + 8  # the next batch came before the first was used up
        for example_id, label in labels(sync).items():
            assert label == (topic(project.by_example()[example_id]["data"]["text"]),)
            assert (
                sync.session.run_state.answered_by[sync.session.run_state.position[example_id]][0]
                == f"{OWNER} (Label Studio)"
            )


def test_predictions_scores_and_arms_come_with_the_tasks(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    with connected_run(project, tmp_path / "run", **text_pool(tmp_path, holdout=0.4)) as connection:
        sync = connection.sync
        sync.step()
        answer_all(project)
        sync.step()
        second = [t for t in project.tasks() if t["data"]["tailor_round"] == 1]
        run_state = sync.session.run_state
        assert len(second) == 8
        holdout = [t for t in second if t["data"]["tailor_arm"] == "hold-out"]
        chosen = [t for t in second if t["data"]["tailor_arm"] != "hold-out"]
        assert holdout
        assert chosen
        assert not any(
            t["predictions"] for t in holdout
        )  # the model must not lead whoever measures it
        for task in chosen:
            pick_record = run_state.pick_record(run_state.position[task["data"]["tailor_id"]])
            (prediction,) = task["predictions"]
            assert task["data"]["tailor_arm"] == pick_record.arm
            best = run_state.task.classes[int(pick_record.predicted.argmax())]
            assert prediction["result"][0]["value"]["choices"] == [best]
            assert prediction["score"] == pytest.approx(
                float(pick_record.predicted.max()), abs=1e-3
            )
        # and Label Studio shows it to whoever labels
        shown = project.next()
        while shown["data"]["tailor_arm"] == "hold-out":
            project.annotate(shown, "sport")
            shown = project.next()
        assert shown["predictions"][0]["result"][0]["value"]["choices"]


def test_corrections_deletions_and_skips(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    with connected_run(project, tmp_path / "run", ahead=0, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        a, b, c, d, *rest = project.waiting()
        name = {t["id"]: t["data"]["tailor_id"] for t in project.tasks()}
        marks = {t["id"]: project.annotate(t, "sport") for t in (a, b)}
        skip = project.skip(c)
        sync.step()
        run_state = sync.session.run_state
        assert label_of(sync, name[a["id"]]) == ("sport",)
        assert run_state.is_skipped(run_state.position[name[c["id"]]])

        project.correct(marks[a["id"]], "science")
        project.delete(marks[b["id"]])
        project.delete(skip)
        sync.step()
        assert label_of(sync, name[a["id"]]) == ("science",)
        assert label_of(sync, name[b["id"]]) is None
        waiting = [s.id for s in sync.session.waiting()]
        assert {name[t["id"]] for t in (b, c, d)} <= set(waiting)

        project.annotate(b, "politics")  # annotated anew
        project.annotate(c, "science")
        once = project.annotate(d, "sport")
        sync.step()
        assert [label_of(sync, name[t["id"]]) for t in (b, c, d)] == [
            ("politics",),
            ("science",),
            ("sport",),
        ]

        project.call(
            "PATCH", f"/api/annotations/{once}/", json={"was_cancelled": True}
        )  # an answer becomes a skip
        sync.step()
        assert label_of(sync, name[d["id"]]) is None
        assert sync.session.run_state.is_skipped(run_state.position[name[d["id"]]])

        events = len(list(sync.session.store.events()))
        sync.step()
        sync.task_mirror.invalidate()
        sync.step()
        assert len(list(sync.session.store.events())) == events  # nothing changed, nothing is told
        assert len(rest) == 4


def test_annotations_deleted_in_bulk(make_project, tmp_path):
    """The Data Manager's action stamps tasks with a clock of its own: only the counts give it
    away.
    """
    project = make_project("text", "single", WORDS)
    with connected_run(project, tmp_path / "run", ahead=0, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        for task in project.waiting()[:5]:
            project.annotate(task, "sport")
        sync.step()
        assert len(labels(sync)) == 5
        selected = {
            "all": False,
            "included": [t["id"] for t in project.tasks() if t["annotations"]][:3],
        }
        action = {"project": project.id, "id": "delete_tasks_annotations"}
        project.call("POST", "/api/dm/actions/", params=action, json={"selectedItems": selected})
        sync.step()
        assert len(labels(sync)) == 2


def test_several_annotators(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    anna = project.colleague("anna@example.com")
    ben = project.colleague("ben@example.com")
    with connected_run(project, tmp_path / "run", ahead=0, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        task = project.waiting()[0]
        example_id = task["data"]["tailor_id"]
        project.annotate(task, "sport", by=anna)
        sync.step()
        assert label_of(sync, example_id) == ("sport",)
        disputed = project.annotate(task, "science", by=ben)
        sync.step()
        assert label_of(sync, example_id) == ("science",)  # a tie: the latest
        project.annotate(task, "sport")
        sync.step()
        assert label_of(sync, example_id) == ("sport",)  # two to one
        project.correct(disputed, "sport")
        project.skip(project.waiting()[0])
        sync.step()
        assert label_of(sync, example_id) == ("sport",)
        who, _ = sync.session.run_state.answered_by[sync.session.run_state.position[example_id]]
        assert who.endswith("(Label Studio)")


def test_deleted_tasks(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    with connected_run(project, tmp_path / "run", ahead=0, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        answered, open_one, *_ = project.waiting()
        project.annotate(answered, "sport")
        sync.step()
        project.delete_task(answered["id"])
        project.delete_task(open_one["id"])
        sync.step()
        assert label_of(sync, answered["data"]["tailor_id"]) == (
            "sport",
        )  # what is known stays known
        again = project.by_example()
        assert open_one["data"]["tailor_id"] in again  # what was not answered is there again
        assert answered["data"]["tailor_id"] not in again
        assert len(again) == 7


def test_pictures_with_several_labels_or_none(make_project, tmp_path):
    project = make_project("image", "multiple", ["red", "green", "blue"])
    pool = pictures(tmp_path / "photos")
    with connected_run(
        project, tmp_path / "run", pool=pool, settings=settings("image", batch=10)
    ) as connection:
        sync = connection.sync
        sync.step()
        for task in project.waiting():
            sent = project.http.get(task["data"]["image"])
            assert sent.status_code == 200
            with (
                Image.open(io.BytesIO(sent.content)) as got,
                Image.open(pool / task["data"]["tailor_id"]) as own,
            ):
                assert np.array_equal(np.asarray(got.convert("RGB")), np.asarray(own))
            project.annotate(task, *colours(task["data"]["tailor_id"]))
        sync.step()
        assert len(labels(sync)) == 10
        assert all(label == colours(example_id) for example_id, label in labels(sync).items())
        assert any(label == () for label in labels(sync).values())  # none of these
        second = [t for t in project.tasks() if t["data"]["tailor_round"] == 1]
        assert any(t["predictions"] for t in second)
        assert all(0 <= p["score"] <= 1 for t in second for p in t["predictions"])


def test_answers_told_elsewhere_stay(make_project, tmp_path):
    project = make_project("text", "single", WORDS)
    with connected_run(project, tmp_path / "run", ahead=0, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        a, b, *_ = project.waiting()
        project.annotate(a, "sport")
        sync.step()
        first_id = a["data"]["tailor_id"]
        second_id = b["data"]["tailor_id"]
        sync.session.tell(
            {first_id: "science", second_id: "politics"}, by="anna"
        )  # on TAILOR's own page
        sync.task_mirror.invalidate()
        sync.step()
        assert label_of(sync, first_id) == ("science",)
        assert label_of(sync, second_id) == (
            "politics",
        )  # no annotation is no reason to withdraw it
        project.correct(project.by_example()[first_id]["annotations"][0]["id"], "politics")
        sync.step()
        assert label_of(sync, first_id) == ("politics",)


def test_a_class_that_is_added_in_label_studio(make_project, tmp_path):
    project = make_project("text", "single", list(WORDS)[:2])
    with connected_run(project, tmp_path / "run", ahead=0, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        added = project.settings()["label_config"].replace(
            "</Choices>", '<Choice value="science"/></Choices>'
        )
        project.change_settings(label_config=added)
        answer_all(project)
        sync.step()
        assert len(labels(sync)) == 8
        assert sync.session.run_state.task.classes == ("sport", "politics", "science")
        answer_all(project)
        sync.step()
        assert len(labels(sync)) == 16
    project.change_settings(label_config=added.replace("science", "physics"))
    with (
        pytest.raises(InputError, match="no 'science' any more"),
        connected_run(project, tmp_path / "run"),
    ):
        pass
