"""The same datasets as Parquet in the Hugging Face layout."""

from __future__ import annotations

import official_files as files
import pytest

from tailor.errors import InputError
from tailor_experiments.datasets import load
from tailor_experiments.datasets.base import OTHER
from tailor_experiments.datasets.cars import LABELS
from tailor_experiments.datasets.celeba import ATTRIBUTES
from tailor_experiments.datasets.cifar import TEN


def test_cifar10_under_its_own_column_names(tmp_path):
    files.write_parquet(tmp_path / "train.parquet", [0, 9, 3], TEN, image="img")
    files.write_parquet(tmp_path / "test.parquet", [2, 0], TEN, image="img")
    data = load("cifar10-2", tmp_path)
    assert data.task.classes == ("airplane", OTHER)
    assert data.labels.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert data.test_labels.tolist() == [[0, 1], [1, 0]]
    assert data.pool.read([2])[0].shape == (8, 8, 3)


def test_several_files_in_a_folder_data(tmp_path):
    files.write_parquet(tmp_path / "data" / "train-00000-of-00002.parquet", [0, 1], [])
    files.write_parquet(tmp_path / "data" / "train-00001-of-00002.parquet", [7], [])
    data = load("svhn", tmp_path)
    assert data.labels.argmax(1).tolist() == [0, 1, 7]
    assert data.test_pool is None


def test_cifar100_takes_the_fine_labels(tmp_path):
    files.write_parquet(
        tmp_path / "train.parquet", [3, 1], [], column="fine_label", extra={"coarse_label": [0, 0]}
    )
    assert load("cifar100-10", tmp_path).labels.argmax(1).tolist() == [3, 1]


def test_kuzushiji_takes_a_tenth(tmp_path):
    files.write_parquet(tmp_path / "train.parquet", [i % 49 for i in range(49)], [])
    assert len(load("kuzushiji49", tmp_path).pool) == 4


def test_imagenet_tests_on_the_validation_split(tmp_path):
    names = [f"class {k}" for k in range(1000)]
    for split, classes in (("train", [0, 999]), ("validation", [5]), ("test", [-1, -1])):
        files.write_parquet(tmp_path / f"{split}-00000.parquet", classes, names)
    data = load("imagenet", tmp_path)
    assert data.test_labels.argmax(1).tolist() == [5]


def test_caltech_with_and_without_a_split_of_its_own(tmp_path):
    names = ["a", "b", "c", "clutter"]
    files.write_parquet(tmp_path / "train.parquet", [0, 1, 2, 3, 3], names)
    data = load("caltech256", tmp_path)
    assert (len(data.pool), len(data.test_pool), data.task.classes[-1]) == (4, 1, "c or clutter")
    files.write_parquet(tmp_path / "test.parquet", [3, 0], names)
    data = load("caltech256", tmp_path)
    assert (len(data.pool), data.test_labels.argmax(1).tolist()) == (5, [2, 0])
    with pytest.raises(InputError, match="split already"):
        load("caltech256", tmp_path, split=True)


def test_cars_by_ten_labels_or_by_196_classes(tmp_path):
    files.write_parquet(
        tmp_path / "ten" / "train.parquet", [[0, 6], [], [9]], LABELS, column="labels"
    )
    files.write_parquet(tmp_path / "ten" / "test.parquet", [[1]], LABELS, column="labels")
    data = load("cars", tmp_path / "ten")
    assert data.labels.sum(1).tolist() == [2, 0, 1]
    assert data.test_labels[0, 1] == 1
    files.write_parquet(tmp_path / "names" / "train.parquet", [0, 1, 2], files.CARS)
    files.write_parquet(tmp_path / "names" / "test.parquet", [3, 4], files.CARS)
    data = load("cars", tmp_path / "names")  # the official splits are put together, then split anew
    assert (len(data.pool), len(data.test_pool)) == (4, 1)


def test_voc_and_coco_by_lists(tmp_path):
    files.write_parquet(tmp_path / "train.parquet", [[0], [19, 1], []], [], column="labels")
    data = load("voc", tmp_path / "train.parquet")
    assert (len(data.pool), data.task.size) == (3, 20)
    with pytest.raises(InputError, match="do not name their classes"):
        load("coco", tmp_path)
    files.write_parquet(
        tmp_path / "train.parquet", [[0], [1, 0], []], ["cat", "dog"], column="labels"
    )
    assert load("coco", tmp_path).labels.tolist() == [[1, 0], [1, 1], [0, 0]]


def test_celeba_by_lists_or_by_columns(tmp_path):
    files.write_parquet(tmp_path / "lists" / "train.parquet", [[0, 39], []], [], column="labels")
    data = load("celeba", tmp_path / "lists")
    assert data.task.classes == ATTRIBUTES
    assert data.labels.sum(1).tolist() == [2, 0]
    columns = {name: [k == 3, k != 3] for k, name in enumerate(ATTRIBUTES)}
    for split in ("train", "valid", "test"):
        files.write_parquet(
            tmp_path / "columns" / f"{split}.parquet", [1, 2], [], column="celeb_id", extra=columns
        )
    data = load("celeba", tmp_path / "columns")
    assert data.labels.sum(1).tolist() == [1, 39]
    assert data.labels[0, 3] == 1
    assert data.test_labels.tolist() == data.labels.tolist()


def test_what_parquet_lacks_is_said(tmp_path):
    files.write_parquet(tmp_path / "test.parquet", [1], TEN)
    with pytest.raises(InputError, match="no split 'train'"):
        load("cifar10", tmp_path)
    files.write_parquet(tmp_path / "train.parquet", [1, -1], TEN)
    with pytest.raises(InputError, match="label None in row 1"):
        load("cifar10", tmp_path)
    (tmp_path / "train.parquet").write_bytes(b"PAR1 broken")
    with pytest.raises(InputError, match=r"train\.parquet"):
        load("cifar10", tmp_path)
