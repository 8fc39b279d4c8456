"""The loop against a real Label Studio: batches go there, annotations come back."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from studio_runs import WORDS, colours, label_of, labels, linked, pictures, settings, texts, topic
from studio_server import OWNER

from tailor.errors import InputError


def text_pool(tmp_path, **selection):
    return {"pool": texts(tmp_path / "news.jsonl"), "settings": settings("text", **selection)}


def answer_all(answer_writer):
    for task in answer_writer.waiting():
        answer_writer.annotate(task, topic(task["data"]["text"]))


def test_batches_go_out_and_answers_come_back(answer_writer, tmp_path):
    there = answer_writer("text", "single", WORDS)
    with linked(there, tmp_path / "run", ahead=2, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        first = there.waiting()
        assert len(first) == 8
        assert {t["data"]["tailor_round"] for t in first} == {0}
        assert {t["data"]["tailor_arm"] for t in first} <= {"random start", "hold-out"}
        assert not any(t["predictions"] for t in first)  # there is no model yet
        for task in first[:5]:
            there.annotate(task, topic(task["data"]["text"]))
        sync.step()
        assert len(labels(sync)) == 5
        assert len(there.tasks()) == 8  # three are left: no hurry
        there.annotate(first[5], topic(first[5]["data"]["text"]))
        sync.step()
        assert len(labels(sync)) == 6
        assert len(there.waiting()) == 2 + 8  # the next batch came before the first was used up
        for one, label in labels(sync).items():
            assert label == (topic(there.by_example()[one]["data"]["text"]),)
            assert (
                sync.session.run_state.who[sync.session.run_state.position[one]][0]
                == f"{OWNER} (Label Studio)"
            )


def test_predictions_scores_and_arms_come_with_the_tasks(answer_writer, tmp_path):
    there = answer_writer("text", "single", WORDS)
    with linked(there, tmp_path / "run", **text_pool(tmp_path, holdout=0.4)) as connection:
        sync = connection.sync
        sync.step()
        answer_all(there)
        sync.step()
        second = [t for t in there.tasks() if t["data"]["tailor_round"] == 1]
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
        shown = there.next()
        while shown["data"]["tailor_arm"] == "hold-out":
            there.annotate(shown, "sport")
            shown = there.next()
        assert shown["predictions"][0]["result"][0]["value"]["choices"]


def test_corrections_deletions_and_skips(answer_writer, tmp_path):
    there = answer_writer("text", "single", WORDS)
    with linked(there, tmp_path / "run", ahead=0, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        a, b, c, d, *rest = there.waiting()
        name = {t["id"]: t["data"]["tailor_id"] for t in there.tasks()}
        marks = {t["id"]: there.annotate(t, "sport") for t in (a, b)}
        skip = there.skip(c)
        sync.step()
        run_state = sync.session.run_state
        assert label_of(sync, name[a["id"]]) == ("sport",)
        assert run_state.is_skipped(run_state.position[name[c["id"]]])

        there.correct(marks[a["id"]], "science")
        there.delete(marks[b["id"]])
        there.delete(skip)
        sync.step()
        assert label_of(sync, name[a["id"]]) == ("science",)
        assert label_of(sync, name[b["id"]]) is None
        waiting = [s.id for s in sync.session.waiting()]
        assert {name[t["id"]] for t in (b, c, d)} <= set(waiting)

        there.annotate(b, "politics")  # annotated anew
        there.annotate(c, "science")
        once = there.annotate(d, "sport")
        sync.step()
        assert [label_of(sync, name[t["id"]]) for t in (b, c, d)] == [
            ("politics",),
            ("science",),
            ("sport",),
        ]

        there.call(
            "PATCH", f"/api/annotations/{once}/", json={"was_cancelled": True}
        )  # an answer becomes a skip
        sync.step()
        assert label_of(sync, name[d["id"]]) is None
        assert sync.session.run_state.is_skipped(run_state.position[name[d["id"]]])

        events = len(list(sync.session.store.events()))
        sync.step()
        sync.task_mirror.forget()
        sync.step()
        assert len(list(sync.session.store.events())) == events  # nothing changed, nothing is told
        assert len(rest) == 4


def test_annotations_deleted_in_bulk(answer_writer, tmp_path):
    """The Data Manager's action stamps tasks with a clock of its own: only the counts give it
    away.
    """
    there = answer_writer("text", "single", WORDS)
    with linked(there, tmp_path / "run", ahead=0, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        for task in there.waiting()[:5]:
            there.annotate(task, "sport")
        sync.step()
        assert len(labels(sync)) == 5
        selected = {
            "all": False,
            "included": [t["id"] for t in there.tasks() if t["annotations"]][:3],
        }
        where = {"project": there.id, "id": "delete_tasks_annotations"}
        there.call("POST", "/api/dm/actions/", params=where, json={"selectedItems": selected})
        sync.step()
        assert len(labels(sync)) == 2


def test_several_annotators(answer_writer, tmp_path):
    there = answer_writer("text", "single", WORDS)
    anna = there.colleague("anna@example.com")
    ben = there.colleague("ben@example.com")
    with linked(there, tmp_path / "run", ahead=0, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        task = there.waiting()[0]
        one = task["data"]["tailor_id"]
        there.annotate(task, "sport", by=anna)
        sync.step()
        assert label_of(sync, one) == ("sport",)
        disputed = there.annotate(task, "science", by=ben)
        sync.step()
        assert label_of(sync, one) == ("science",)  # a tie: the latest
        there.annotate(task, "sport")
        sync.step()
        assert label_of(sync, one) == ("sport",)  # two to one
        there.correct(disputed, "sport")
        there.skip(there.waiting()[0])
        sync.step()
        assert label_of(sync, one) == ("sport",)
        who, _ = sync.session.run_state.who[sync.session.run_state.position[one]]
        assert who.endswith("(Label Studio)")


def test_deleted_tasks(answer_writer, tmp_path):
    there = answer_writer("text", "single", WORDS)
    with linked(there, tmp_path / "run", ahead=0, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        answered, open_one, *_ = there.waiting()
        there.annotate(answered, "sport")
        sync.step()
        there.delete_task(answered["id"])
        there.delete_task(open_one["id"])
        sync.step()
        assert label_of(sync, answered["data"]["tailor_id"]) == (
            "sport",
        )  # what is known stays known
        again = there.by_example()
        assert open_one["data"]["tailor_id"] in again  # what was not answered is there again
        assert answered["data"]["tailor_id"] not in again
        assert len(again) == 7


def test_pictures_with_several_labels_or_none(answer_writer, tmp_path):
    there = answer_writer("image", "multiple", ["red", "green", "blue"])
    pool = pictures(tmp_path / "photos")
    with linked(
        there, tmp_path / "run", pool=pool, settings=settings("image", batch=10)
    ) as connection:
        sync = connection.sync
        sync.step()
        for task in there.waiting():
            sent = there.http.get(task["data"]["image"])
            assert sent.status_code == 200
            with (
                Image.open(io.BytesIO(sent.content)) as got,
                Image.open(pool / task["data"]["tailor_id"]) as own,
            ):
                assert np.array_equal(np.asarray(got.convert("RGB")), np.asarray(own))
            there.annotate(task, *colours(task["data"]["tailor_id"]))
        sync.step()
        assert len(labels(sync)) == 10
        assert all(label == colours(one) for one, label in labels(sync).items())
        assert any(label == () for label in labels(sync).values())  # none of these
        second = [t for t in there.tasks() if t["data"]["tailor_round"] == 1]
        assert any(t["predictions"] for t in second)
        assert all(0 <= p["score"] <= 1 for t in second for p in t["predictions"])


def test_answers_told_elsewhere_stay(answer_writer, tmp_path):
    there = answer_writer("text", "single", WORDS)
    with linked(there, tmp_path / "run", ahead=0, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        a, b, *_ = there.waiting()
        there.annotate(a, "sport")
        sync.step()
        mine = a["data"]["tailor_id"]
        other = b["data"]["tailor_id"]
        sync.session.tell({mine: "science", other: "politics"}, by="anna")  # on TAILOR's own page
        sync.task_mirror.forget()
        sync.step()
        assert label_of(sync, mine) == ("science",)
        assert label_of(sync, other) == ("politics",)  # no annotation is no reason to withdraw it
        there.correct(there.by_example()[mine]["annotations"][0]["id"], "politics")
        sync.step()
        assert label_of(sync, mine) == ("politics",)


def test_a_class_that_is_added_in_label_studio(answer_writer, tmp_path):
    there = answer_writer("text", "single", list(WORDS)[:2])
    with linked(there, tmp_path / "run", ahead=0, **text_pool(tmp_path)) as connection:
        sync = connection.sync
        sync.step()
        added = there.project()["label_config"].replace(
            "</Choices>", '<Choice value="science"/></Choices>'
        )
        there.change(label_config=added)
        answer_all(there)
        sync.step()
        assert len(labels(sync)) == 8
        assert sync.session.run_state.task.classes == ("sport", "politics", "science")
        answer_all(there)
        sync.step()
        assert len(labels(sync)) == 16
    there.change(label_config=added.replace("science", "physics"))
    with pytest.raises(InputError, match="no 'science' any more"), linked(there, tmp_path / "run"):
        pass
