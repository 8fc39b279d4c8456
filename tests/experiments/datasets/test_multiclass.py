"""The multi-class loaders on files in their true format."""

from __future__ import annotations

import numpy as np
import official_files as files
import pytest

from tailor.errors import InputError, UnknownName
from tailor.pools.arrays import Arrays
from tailor.task import MultiClass
from tailor_experiments.datasets import load, registry, resolve
from tailor_experiments.datasets.base import OTHER, Dataset, fixed_order, fixed_split, merge_classes


def classes(labels):
    assert labels.dtype == np.uint8
    assert (labels.sum(1) == 1).all()
    return labels.argmax(1)


@pytest.mark.parametrize("packed", [False, True, "file"])
def test_cifar10_from_batches_and_from_the_archive(tmp_path, packed):
    files.write_cifar10(tmp_path)
    path = tmp_path
    if packed:
        files.pack(tmp_path / "cifar-10-batches-py", tmp_path / "cifar-10-python.tar.gz")
        path = tmp_path / "cifar-10-python.tar.gz" if packed == "file" else tmp_path
    data = load("cifar10", path)
    assert data.task.classes[:2] == ("airplane", "automobile")
    assert (len(data.pool), len(data.test_pool)) == (100, 20)
    assert classes(data.labels)[20] == 1  # the second batch begins with class 1
    first = data.pool.read([20])[0]
    expected = files.cifar_pixels(20, 1)[0].reshape(3, 32, 32).transpose(1, 2, 0)
    assert (first == expected).all()


def test_the_folder_of_batches_itself(tmp_path):
    files.write_cifar10(tmp_path)
    assert len(load("cifar10", tmp_path / "cifar-10-batches-py").pool) == 100


def test_two_classes_of_cifar10(tmp_path):
    files.write_cifar10(tmp_path)
    data = load("cifar10-2", tmp_path)
    assert data.task == MultiClass(["airplane", OTHER])
    assert data.labels.sum(0).tolist() == [10, 90]
    assert data.test_labels.sum(0).tolist() == [2, 18]
    assert (load("cifar10", tmp_path, classes=2).labels == data.labels).all()


def test_cifar100_by_fine_labels(tmp_path):
    files.write_cifar100(tmp_path)
    data = load("cifar100-10", tmp_path)
    assert data.task.classes == (*(f"thing_{k:02d}" for k in range(9)), OTHER)
    assert data.labels.sum(0).tolist() == [2] * 9 + [182]
    assert load("cifar100", tmp_path).task.size == 100


def test_svhn_writes_zero_as_ten(tmp_path):
    files.write_svhn(tmp_path)
    data = load("svhn", tmp_path)
    assert classes(data.labels)[:10].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert data.pool.read([3])[0].shape == (32, 32, 3)
    from scipy.io import loadmat

    raw = loadmat(tmp_path / "train_32x32.mat")["X"]
    assert (data.pool.read([3])[0] == raw[:, :, :, 3]).all()
    two = load("svhn-2", tmp_path)
    assert two.task.classes == ("0", OTHER)
    assert two.labels.sum(0).tolist() == [3, 27]


@pytest.mark.parametrize("compressed", [True, False])
def test_fashion_mnist(tmp_path, compressed):
    files.write_fashion(tmp_path, compressed=compressed)
    data = load("fashion-mnist", tmp_path)
    assert (data.task.size, len(data.pool), len(data.test_pool)) == (10, 20, 20)
    assert data.pool.read([0])[0].shape == (28, 28, 3)
    assert load("fashion-2", tmp_path).labels.sum(0).tolist() == [2, 18]


def test_a_tenth_of_kuzushiji(tmp_path):
    files.write_kuzushiji(tmp_path)
    data = load("kuzushiji49", tmp_path)
    assert (data.task.size, len(data.pool), len(data.test_pool)) == (49, 98, 60)
    assert data.task.classes[0] == "あ"
    assert classes(data.labels).tolist() == [int(one) % 49 for one in data.pool.ids]
    assert list(load("kuzushiji49", tmp_path).pool.ids) == list(data.pool.ids)
    whole = load("kuzushiji49", tmp_path, whole=True)
    assert len(whole.pool) == 987
    assert (whole.pool.read([int(data.pool.ids[5])])[0] == data.pool.read([5])[0]).all()


def test_caltech_merges_the_clutter(tmp_path):
    files.write_caltech(tmp_path)
    data = load("caltech256", tmp_path)
    assert data.task.size == 256
    assert data.task.classes[0] == "001.ak47"
    assert data.task.classes[-1] == "256.toad or clutter"
    assert (len(data.pool), len(data.test_pool)) == (
        206,
        52,
    )  # 258 pictures: four fifths, and the strays left out
    assert not set(data.pool.ids) & set(data.test_pool.ids)
    both = [
        *zip(data.pool.ids, classes(data.labels)),
        *zip(data.test_pool.ids, classes(data.test_labels)),
    ]
    assert all(k == min(int(one[:3]) - 1, 255) for one, k in both)
    assert data.pool.read([0])[0].shape == (12, 12, 3)
    dropped = load("caltech256", tmp_path, clutter="drop")
    kept = load("caltech256", tmp_path, clutter="keep")
    assert dropped.task.size == 256
    assert dropped.task.classes[-1] == "256.toad"
    assert not any("clutter" in one for one in [*dropped.pool.ids, *dropped.test_pool.ids])
    assert kept.task.size == 257
    assert len(load("caltech256", tmp_path, split=False).pool) == 258
    with pytest.raises(InputError, match="'merge', 'drop' or 'keep'"):
        load("caltech256", tmp_path, clutter="maybe")


@pytest.mark.parametrize("sorted_by_class", [False, True])
def test_imagenet_in_the_order_of_the_kit(tmp_path, sorted_by_class):
    files.write_imagenet(tmp_path)
    if sorted_by_class:
        for i, code in enumerate(
            ["n03126707", "n01440764", "n02012849", "n02119789", "n02119789", "n02012849"]
        ):
            name = f"ILSVRC2012_val_{i + 1:08d}.JPEG"
            (tmp_path / "val" / code).mkdir(exist_ok=True)
            (tmp_path / "val" / name).rename(tmp_path / "val" / code / name)
    data = load("imagenet", tmp_path)
    assert data.task.classes == ("kit fox", "crane (n02012849)", "tench", "crane (n03126707)")
    assert data.labels.sum(0).tolist() == [2, 3, 4, 5]
    assert data.pool.ids[0] == "n02119789/n02119789_0.JPEG"
    truth = {one[-13:]: k for one, k in zip(data.test_pool.ids, classes(data.test_labels))}
    assert [truth[one] for one in sorted(truth)] == [3, 2, 1, 0, 0, 1]
    assert data.test_pool.read([0])[0].shape == (12, 12, 3)


def test_no_test_files_no_test_set(tmp_path):
    files.write_svhn(tmp_path)
    (tmp_path / "test_32x32.mat").unlink()
    assert load("svhn", tmp_path).test_pool is None


def test_the_k_class_rule():
    with pytest.raises(InputError, match="from 2 to 3"):
        merge_classes(np.array([0]), ["a", "b", "c"], 1)
    with pytest.raises(InputError, match="from 2 to 3"):
        merge_classes(np.array([0]), ["a", "b", "c"], 4)
    same, names = merge_classes(np.array([2, 0]), ["a", "b", "c"], 3)
    assert (same.tolist(), names) == ([2, 0], ("a", "b", "c"))


def test_splits_never_move():
    """These numbers are part of the results: another order would be another experiment."""
    ids = [str(i) for i in range(12)]
    assert fixed_order(ids, "kuzushiji49").tolist() == [0, 9, 2, 5, 7, 3, 1, 4, 8, 11, 10, 6]
    train, test = fixed_split(ids, "cars", 0.8)
    assert (test.tolist(), len(train)) == ([2, 3], 10)
    assert sorted([*train, *test]) == list(range(12))


def test_names():
    assert resolve("svhn-2") == ("svhn", {"classes": 2})
    assert resolve("voc") == ("voc", {})
    with pytest.raises(UnknownName, match="cifar10"):
        resolve("cifar-10")
    with pytest.raises(UnknownName):
        resolve("voc-5")
    with pytest.raises(UnknownName, match="option of dataset"):
        load("svhn", ".", colour=True)
    assert len(registry.names()) >= 11


def test_labels_must_go_with_the_pool():
    pool = Arrays(np.zeros((3, 2)))
    with pytest.raises(InputError, match=r"expected \(3, 2\)"):
        Dataset("demo", MultiClass(2), pool, np.zeros((4, 2), np.uint8))
    with pytest.raises(InputError, match="one of them is missing"):
        Dataset("demo", MultiClass(2), pool, np.zeros((3, 2), np.uint8), pool)
