"""A durable run from Python: begun, gone on with, trained, predicted, exported."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from PIL import Image

import tailor
from tailor import InputError

QUICK = {"backbone": "given", "device": "cpu", "batch": 10}


@pytest.fixture
def points(tmp_path):
    """A .npy file of 60 points, and what each is: left or right of 0."""
    vectors = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    np.save(tmp_path / "points.npy", vectors)
    sides = np.where(vectors[:, 0] < 0, "left", "right")
    return tmp_path / "points.npy", {str(row): str(side) for row, side in enumerate(sides)}


def answer(run, sides, rounds):
    for _ in range(rounds):
        asked = run.ask()
        run.tell({example_id: sides[example_id] for example_id in asked.ids}, by="ann")


def test_from_a_file_to_labels_and_a_model(points, tmp_path):
    path, sides = points
    with tailor.open_run(path, ["left", "right"], **QUICK) as run:
        assert run.folder == tmp_path / "points-labels"
        assert run.classes == ("left", "right")
        answer(run, sides, 3)
        estimate = run.train(tmp_path / "model")
        assert estimate is not None
        predictions = run.predict()
        assert len(predictions.ids) == 60
        assert predictions.probs.shape == (60, 2)
        right = [sides[i] == said for i, said in zip(predictions.ids, predictions.classes)]
        assert np.mean(right) > 0.8
        assert run.predict(["7", "3"]).ids == ("7", "3")
        assert run.export(tmp_path / "labels.csv") == 30
        assert run.export(tmp_path / "all.jsonl", predictions=True) == 60
        assert run.status()["answered"] == 30
    rows = list(csv.DictReader((tmp_path / "labels.csv").open()))
    assert {row["id"]: row["label"] for row in rows}.items() <= sides.items()
    assert json.loads((tmp_path / "model" / "card.json").read_text())["trained_on"] > 20


def test_it_goes_on_where_it_stood(points):
    path, sides = points
    with tailor.open_run(path, ["left", "right"], **QUICK) as run:
        answer(run, sides, 1)
        asked = run.ask()
        run.tell({asked.ids[0]: sides[asked.ids[0]]})
        expected = asked.ids[1:]
    with tailor.open_run(path) as again:
        assert again.ask().ids == expected
        assert again.ask(3).ids == expected[:3]
        assert len(again.ask(12)) == 12
        assert again.status()["answered"] == 11
    with tailor.open_run(again.folder) as by_folder:
        assert by_folder.ask().ids[: len(expected)] == expected


def test_the_same_run_as_the_command_line_begins(points, tmp_path):
    from tailor.cli.label import find_or_begin

    path, _ = points
    project = find_or_begin(path, None, "left,right", False, 10, "given")
    with tailor.open_run(path, classes=["left", "right"], batch=10, backbone="given") as run:
        assert run.folder == project.folder
        assert run.project.settings == project.settings


def test_options_other_than_the_runs_are_refused(points):
    path, _ = points
    tailor.open_run(path, ["left", "right"], seed=3, **QUICK).close()
    tailor.open_run(path, ["left", "right"], seed=3, **QUICK).close()
    with pytest.raises(InputError, match=r"seed is 4, the run in .* has 3: leave it out, or edit"):
        tailor.open_run(path, seed=4)
    with pytest.raises(InputError, match=r"classes is .*'up'"):
        tailor.open_run(path, classes=["left", "up"])
    with pytest.raises(InputError, match="kind is 'multi-label', the run in"):
        tailor.open_run(path, multi_label=True)
    with pytest.raises(InputError, match=r"labels points\.npy|labels .*points.npy, not"):
        tailor.open_run(path.parent, run=path.with_name("points-labels"))


def test_one_process_at_a_time(points):
    path, _ = points
    with (
        tailor.open_run(path, ["left", "right"], **QUICK),
        pytest.raises(tailor.TailorError, match=r"process \d+"),
    ):
        tailor.open_run(path)


def test_what_can_not_be_begun(points, tmp_path):
    path, _ = points
    with pytest.raises(InputError, match=r'name the classes: classes=\["cat"'):
        tailor.open_run(path)
    with pytest.raises(InputError, match="nothing at"):
        tailor.open_run(tmp_path / "nowhere", ["a", "b"])
    for wrong in ({"strategies": "galaxi"}, {"model": "prob"}, {"reward": "serch"}):
        with pytest.raises(InputError, match=r"did you mean '(galaxy|probe|search)'"):
            tailor.open_run(path, ["a", "b"], **{**QUICK, **wrong})
    with tailor.open_run(path, ["a", "b"], strategies="galaxy", **QUICK) as run:
        assert run.project.settings.strategies == ("galaxy",)


def test_an_unknown_id_and_a_model_without_labels(points):
    path, sides = points
    with tailor.open_run(path, ["left", "right"], **QUICK) as run:
        with pytest.raises(InputError, match="nothing is labelled yet"):
            run.train()
        answer(run, sides, 1)
        with pytest.raises(InputError, match="'nobody' is not the id"):
            run.predict(["nobody"])
        with pytest.raises(InputError, match="no known ending"):
            run.export("labels")


def test_classes_and_kind_come_from_known_labels(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(6):
            pixels = np.full((8, 8, 3), 10 * number, np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{number}.png")
    with tailor.open_run(
        tmp_path / "photos", labels="folder", backbone="pixels(size=4)", device="cpu", batch=4
    ) as run:
        assert run.classes == ("cat", "dog")
        assert len(run.ask()) == 4
