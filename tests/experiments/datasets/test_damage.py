"""What is missing or damaged is named, with where to get it. And no pickle is ever run."""

from __future__ import annotations

import os
import pickle

import numpy as np
import official_files as files
import pytest

from tailor.errors import InputError
from tailor_experiments.datasets import load, registry
from tailor_experiments.datasets.pickles import read_pickle

WRITERS = {
    "celeba": files.write_celeba,
    "coco": files.write_coco,
    "voc": files.write_voc,
    "cars": files.write_cars,
    "imagenet": files.write_imagenet,
    "kuzushiji49": files.write_kuzushiji,
    "caltech256": files.write_caltech,
    "cifar10": files.write_cifar10,
    "cifar100": files.write_cifar100,
    "svhn": files.write_svhn,
    "fashion-mnist": files.write_fashion,
}
#: (dataset, a file that must be there)
NEEDED = [
    ("celeba", "list_attr_celeba.txt"),
    ("celeba", "list_eval_partition.txt"),
    ("coco", "annotations/instances_train2014.json"),
    ("voc", "VOCdevkit/VOC2012/ImageSets/Main/trainval.txt"),
    ("voc", "VOCdevkit/VOC2012/Annotations/2008_000003.xml"),
    ("cars", "devkit/cars_meta.mat"),
    ("cars", "devkit/cars_train_annos.mat"),
    ("cars", "cars_test_annos_withlabels.mat"),
    ("imagenet", "ILSVRC2012_devkit_t12/data/meta.mat"),
    ("imagenet", "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt"),
    ("kuzushiji49", "k49-train-imgs.npz"),
    ("kuzushiji49", "k49-train-labels.npz"),
    ("cifar10", "cifar-10-batches-py/data_batch_3"),
    ("cifar10", "cifar-10-batches-py/test_batch"),
    ("cifar100", "cifar-100-python/train"),
    ("svhn", "train_32x32.mat"),
    ("fashion-mnist", "train-images-idx3-ubyte.gz"),
    ("fashion-mnist", "train-labels-idx1-ubyte.gz"),
]
#: damaged too, though not needed
OPTIONAL = [("cifar10", "cifar-10-batches-py/batches.meta"), ("kuzushiji49", "k49_classmap.csv")]


def test_every_dataset_is_tried():
    assert set(WRITERS) == set(registry.builtin) == {name for name, _ in NEEDED} | {"caltech256"}


@pytest.mark.parametrize(("name", "file"), NEEDED)
def test_a_missing_file_is_named(tmp_path, name, file):
    WRITERS[name](tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(InputError) as error:
        load(name, tmp_path)
    assert os.path.basename(file) in str(error.value)
    assert "http" in str(error.value)


@pytest.mark.parametrize("damage", ["cut", "empty", "noise"])
@pytest.mark.parametrize(("name", "file"), NEEDED + OPTIONAL)
def test_a_damaged_file_is_named(tmp_path, name, file, damage):
    WRITERS[name](tmp_path)
    path = tmp_path / file
    raw = path.read_bytes()
    noise = np.random.default_rng(3).integers(0, 256, 500, dtype=np.uint8).tobytes()
    path.write_bytes({"cut": raw[: len(raw) // 2], "empty": b"", "noise": noise}[damage])
    with pytest.raises(InputError) as error:
        load(name, tmp_path)
    assert os.path.basename(file) in str(error.value)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("celeba", "img_align_celeba"),
        ("coco", "train2014"),
        ("voc", "VOCdevkit/VOC2012/JPEGImages"),
        ("cars", "cars_train"),
        ("imagenet", "train"),
        ("imagenet", "train/n01440764"),
    ],
)
def test_a_missing_folder_is_named(tmp_path, name, folder):
    WRITERS[name](tmp_path)
    (tmp_path / folder).rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="missing folder") as error:
        load(name, tmp_path)
    assert folder.rpartition("/")[2] in str(error.value)


def test_missing_caltech_folders(tmp_path):
    with pytest.raises(InputError, match=r"001\.ak47 to 257\.clutter"):
        load("caltech256", tmp_path)
    files.write_caltech(tmp_path)
    (tmp_path / "256_ObjectCategories" / "017.thing-17").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"missing folder .*017"):
        load("caltech256", tmp_path)


@pytest.mark.parametrize("name", list(WRITERS))
def test_nothing_there(tmp_path, name):
    with pytest.raises(InputError, match="nowhere"):
        load(name, tmp_path / "nowhere")


def test_labels_of_another_dataset_are_refused(tmp_path):
    files.write_cifar10(tmp_path)
    batch = tmp_path / "cifar-10-batches-py" / "data_batch_2"
    content = {"data": files.cifar_pixels(4), "labels": [0, 1, 2, 10]}
    batch.write_bytes(files.python2_pickle(content))
    with pytest.raises(InputError, match=r"data_batch_2 \(a label is out of range\)"):
        load("cifar10", tmp_path)
    batch.write_bytes(files.python2_pickle(content | {"labels": [0, 1]}))
    with pytest.raises(InputError, match=r"data_batch_2 \(2 labels for 4 examples\)"):
        load("cifar10", tmp_path)


def test_voc_xml_with_entities_is_refused(tmp_path):
    files.write_voc(tmp_path)
    path = tmp_path / "VOCdevkit" / "VOC2012" / "Annotations" / "2008_000001.xml"
    path.write_text('<!DOCTYPE a [<!ENTITY b "cow">]>' + files.voc_xml("2008_000001", [("&b;", 0)]))
    with pytest.raises(InputError, match=r"2008_000001\.xml \(it declares entities\)"):
        load("voc", tmp_path)


class Runs:
    """Unpickled by the usual means, this makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(6))
def test_a_malicious_pickle_is_refused(tmp_path, protocol):
    trap = tmp_path / "trap"
    raw = pickle.dumps({"data": Runs(trap), "labels": [1]}, protocol)
    with pytest.raises(InputError, match="which no such file needs"):
        read_pickle(raw, "data_batch_1")
    assert not trap.exists()
    pickle.loads(raw)  # the trap is a real one
    assert trap.is_dir()


def test_a_malicious_batch_is_refused_by_the_loader(tmp_path):
    files.write_cifar10(tmp_path)
    raw = pickle.dumps({"data": Runs(tmp_path / "trap"), "labels": [1]}, 2)
    (tmp_path / "cifar-10-batches-py" / "data_batch_1").write_bytes(raw)
    with pytest.raises(InputError, match=r"data_batch_1: it names .*mkdir"):
        load("cifar10", tmp_path)
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.dump\x93.",
        b"Psomething\n.",
        b"c_codecs\nencode\n(S'x'\nS'hex'\ntR.",
        b"cnumpy\ndtype\n(S'O8'\nI0\nI1\ntR.",
        pickle.dumps({"data": np.array([object()])}, 2),
        pickle.dumps({"data": np.zeros(3)}, 2),
        pickle.dumps([1, 2], 2),
        pickle.dumps({"data": {1, 2}}, 2),
        b"",
        b"\x80\x02",
    ],
)
def test_other_pickles_are_refused(raw):
    with pytest.raises(InputError, match="data_batch_1"):
        read_pickle(raw, "data_batch_1")


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_batches_saved_again_by_python_3_are_read(protocol):
    pixels = files.cifar_pixels(3)
    found = read_pickle(
        pickle.dumps({b"data": pixels, "labels": [1, 2, 3], b"filenames": [b"a"]}, protocol),
        "batch",
    )
    assert (found["data"] == pixels).all()
    assert found["labels"] == [1, 2, 3]
    fortran = np.asfortranarray(pixels)
    assert (read_pickle(pickle.dumps({"data": fortran}, 2), "batch")["data"] == pixels).all()
