"""`tailor data check`, and the paper's table."""

from __future__ import annotations

import json

import numpy as np
import official_files as files
import pytest
from typer.testing import CliRunner

from tailor import strategies
from tailor.errors import InputError
from tailor.pools.arrays import Arrays
from tailor.task import MultiClass
from tailor_experiments.cli.data import data as app
from tailor_experiments.datasets import PAPER, load, resolve
from tailor_experiments.datasets.base import Dataset
from tailor_experiments.datasets.check import check, figures


def run(*words, code=0):
    result = CliRunner().invoke(app, ["check", *map(str, words)], env={"COLUMNS": "160"})
    assert result.exit_code == code, result.output
    return result.stdout


def test_the_table_is_whole():
    assert len(PAPER) == 10
    for name, setting in PAPER.items():
        assert name == setting.name
        assert resolve(name)[1].get("classes", setting.classes) == setting.classes
        assert set(setting.narrow) < set(setting.wide) <= set(strategies.registry.names())
        assert (setting.binary_imbalance is not None) == setting.multilabel
        assert setting.batch * setting.rounds <= setting.pool
    assert PAPER["imagenet"].training_batch == 200
    assert (PAPER["celeba"].epochs, PAPER["coco"].batch, PAPER["svhn-2"].rounds) == (8, 5_000, 10)


def full_size(setting):
    """Two classes of the paper's size and ratio, without pictures."""
    n = setting.pool
    rare = round(n * setting.class_imbalance / (1 + setting.class_imbalance))
    labels = np.zeros((n, 2), np.uint8)
    labels[:rare, 0], labels[rare:, 1] = 1, 1
    return Dataset(setting.name.rpartition("-")[0], MultiClass(2), Arrays(np.zeros((n, 1))), labels)


@pytest.mark.parametrize("name", ["cifar10-2", "svhn-2"])
def test_the_papers_figures_are_ok(name):
    report = check(full_size(PAPER[name]), sample=5)
    assert [figure.ok for figure in report.figures] == [True, True, True]
    assert report.ok
    assert report.sampled == 5


def test_a_random_part_may_differ_a_little():
    whole = full_size(PAPER["cifar10-2"])
    drawn = PAPER["cifar10-2"].__class__(
        **PAPER["cifar10-2"].__dict__ | {"drawn": True, "class_imbalance": 0.113}
    )
    found = figures(whole, drawn)[2]
    assert found.ok
    assert "random part" in found.note
    exact = PAPER["cifar10-2"].__class__(**PAPER["cifar10-2"].__dict__ | {"class_imbalance": 0.113})
    assert figures(whole, exact)[2].ok is False


def test_what_differs_is_said(tmp_path):
    files.write_cifar10(tmp_path)
    text = run("cifar10-2", tmp_path, code=1)
    rows = {line.split("│")[1].strip(): line for line in text.splitlines() if line.startswith("│")}
    assert "ok" in rows["K, classes"]
    assert "differs" in rows["N, pool"]
    assert "50,000" in rows["N, pool"]
    assert "0.1111" in rows["class imbalance"]
    assert "ok" in rows["class imbalance"]
    assert "test set of 20; read 120 examples, 0 of them unreadable" in text


def test_both_ratios_for_several_labels(tmp_path):
    files.write_celeba(tmp_path)
    text = run("celeba", tmp_path, code=1)
    assert "binary imbalance" in text
    assert "0.2257" in text
    assert "multi-label" in text


def test_a_setting_that_the_paper_lacks(tmp_path):
    files.write_cifar10(tmp_path)
    assert "the paper's setting is cifar10-2" in run("cifar10", tmp_path)
    files.write_fashion(tmp_path / "fashion")
    assert "no such setting" in run("fashion-2", tmp_path / "fashion")


def test_missing_and_unreadable_pictures_are_counted(tmp_path):
    files.write_coco(tmp_path)
    (tmp_path / "train2014" / "COCO_train2014_000000000025.jpg").unlink()
    (tmp_path / "val2014" / "COCO_val2014_000000000009.jpg").write_bytes(b"no picture")
    text = run("coco", tmp_path, code=1)
    assert "read 6 examples, 2 of them unreadable" in text
    assert "missing files, 1 in all: COCO_train2014_000000000025.jpg" in text
    assert "unreadable: COCO_val2014_000000000009.jpg: not an image" in text


def test_missing_files_of_a_split_are_counted_once(tmp_path):
    files.write_voc(tmp_path)
    pictures = tmp_path / "VOCdevkit" / "VOC2012" / "JPEGImages"
    for one in sorted(pictures.iterdir())[:3]:
        one.unlink()
    report = check(load("voc", tmp_path), sample=0)
    assert sorted(report.missing) == [f"2008_{i:06d}.jpg" for i in range(3)]
    assert report.sampled == 0
    assert not report.ok


def test_as_json(tmp_path):
    files.write_svhn(tmp_path)
    found = json.loads(run("svhn-2", tmp_path, "--json", "--sample", 4, code=1))
    assert found["name"] == "svhn"
    assert found["sampled"] == 8
    assert [figure["ok"] for figure in found["figures"]][:2] == [True, False]


def test_a_missing_file_ends_the_check():
    result = CliRunner().invoke(app, ["check", "svhn", "nowhere"])
    assert isinstance(result.exception, InputError)
    assert "nowhere" in str(result.exception)


def test_an_empty_class_is_no_error():
    labels = np.array([[1, 0], [1, 0]], np.uint8)
    found = figures(Dataset("demo", MultiClass(2), Arrays(np.zeros((2, 1))), labels), None)
    assert found[2].here == 0
