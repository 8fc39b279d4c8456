"""The multi-label loaders on files in their true format."""

from __future__ import annotations

import official_files as files
import pytest

from tailor.errors import InputError
from tailor_experiments.datasets import load
from tailor_experiments.datasets.cars import LABELS, label_matrix
from tailor_experiments.datasets.voc import KINDS, SHARE


def test_celeba_by_partition(tmp_path):
    files.write_celeba(tmp_path)
    data = load("celeba", tmp_path)
    assert data.task.classes == ("Bald", "Male", "Young")
    assert data.task.kind == "multi-label"
    assert list(data.pool.ids) == [f"{i:06d}.jpg" for i in range(1, 7)]
    assert data.labels.tolist() == [[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(6)]
    assert list(data.test_pool.ids) == ["000010.jpg", "000011.jpg", "000012.jpg"]
    assert data.test_labels[0].tolist() == [1, 0, 0]
    assert data.pool.read([5])[0].shape == (12, 12, 3)


def test_celeba_in_the_folders_of_its_page(tmp_path):
    files.write_celeba(tmp_path)
    for inner, name in (("Anno", "list_attr_celeba.txt"), ("Eval", "list_eval_partition.txt")):
        (tmp_path / inner).mkdir()
        (tmp_path / name).rename(tmp_path / inner / name)
    (tmp_path / "Img").mkdir()
    (tmp_path / "img_align_celeba").rename(tmp_path / "Img" / "img_align_celeba")
    assert len(load("celeba", tmp_path).pool) == 6


def test_coco_leaves_out_pictures_without_annotation(tmp_path):
    files.write_coco(tmp_path)
    data = load("coco", tmp_path)
    assert data.task.classes == ("person", "cat", "toothbrush")
    assert list(data.pool.ids) == [f"COCO_train2014_{i:012d}.jpg" for i in (9, 25, 30)]
    assert data.labels.tolist() == [[0, 1, 0], [1, 0, 1], [1, 0, 0]]
    assert data.test_labels.tolist() == data.labels.tolist()
    assert data.pool.read([1])[0].shape == (12, 12, 3)
    (tmp_path / "annotations" / "instances_val2014.json").unlink()
    assert load("coco", tmp_path).test_pool is None


def test_voc_takes_the_papers_share(tmp_path):
    assert round(SHARE * 11_540) == 10_000
    files.write_voc(tmp_path)
    data = load("voc", tmp_path)
    assert data.task.classes == KINDS
    assert (len(data.pool), len(data.test_pool)) == (13, 2)
    cow, person, screen = (KINDS.index(k) for k in ("cow", "person", "tvmonitor"))
    rows = dict(zip([*data.pool.ids, *data.test_pool.ids], [*data.labels, *data.test_labels]))
    assert all(row[person] for row in rows.values())
    assert rows["2008_000000.jpg"].sum() == 1  # its cow is marked as difficult
    assert rows["2008_000003.jpg"][cow] == 1
    assert rows["2008_000004.jpg"][screen] == 1
    hard = load("voc", tmp_path / "VOCdevkit" / "VOC2012", difficult=True)
    assert hard.labels.sum() + hard.test_labels.sum() == 30
    assert list(hard.pool.ids) == list(data.pool.ids)


@pytest.mark.parametrize("whole", [False, True])
def test_cars(tmp_path, whole):
    files.write_cars(tmp_path, whole=whole)
    data = load("cars", tmp_path)
    assert data.task.classes == LABELS
    assert (len(data.pool), len(data.test_pool)) == ((8, 2) if whole else (16, 4))
    expected = label_matrix(files.CARS)
    for one, row in zip(data.pool.ids, data.labels):
        number = int(one[-10:-4].strip("/")) if whole else int(one[-9:-4])
        assert row.tolist() == expected[(number - 1) % len(files.CARS)].tolist()
    assert data.pool.read([0])[0].shape == (12, 12, 3)
    assert list(load("cars", tmp_path).pool.ids) == list(data.pool.ids)


def test_the_ten_labels_of_a_car():
    def named(name, types="paper"):
        return [label for label, y in zip(LABELS, label_matrix([name], types)[0]) if y]

    assert named("Audi TTS Coupe 2012") == ["Audi", "Coupe"]
    assert named("BMW X5 SUV 2007") == ["BMW", "SUV", "year<=2009"]
    assert named("Dodge Sprinter Cargo Van 2009") == ["Dodge", "Van", "year<=2009"]
    assert named("Dodge Caravan Minivan 1997") == ["Dodge", "year<=2009"]
    assert named("Aston Martin V8 Vantage Convertible 2012") == ["Convertible", "Van"]
    assert named("Aston Martin V8 Vantage Convertible 2012", "words") == ["Convertible"]
    assert named("Rolls-Royce Phantom Drophead Coupe Convertible 2012") == ["Convertible", "Coupe"]
    with pytest.raises(InputError, match="does not end in a year"):
        named("Audi")
    with pytest.raises(InputError, match="'paper' or 'words'"):
        load("cars", ".", types="all")
