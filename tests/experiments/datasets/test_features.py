"""Features that were computed before: what is read, and the pools that are made of them."""

from __future__ import annotations

import numpy as np
import pytest

from tailor.errors import InputError, UnknownName
from tailor_experiments.comparison.data import load_data
from tailor_experiments.datasets.features import load_features


@pytest.fixture
def folder(tmp_path):
    """400 and 60 rows of three classes, in int8 with a scale."""
    rng = np.random.default_rng(0)
    for split, rows in (("train", 400), ("test", 60)):
        y = rng.integers(0, 3, rows)
        x = rng.integers(-127, 128, (rows, 5), dtype=np.int8)
        np.savez(
            tmp_path / f"{split}.npz",
            x=x,
            scale=np.array([1, 2, 3, 4, 5], np.float32),
            y=y,
            classes=np.array(["a", "b", "c"]),
        )
    return tmp_path


def rows_of(pool):
    return np.stack(pool.read(range(len(pool))))


def test_features_are_scaled_and_labels_one_hot(folder):
    data = load_features(folder)
    with np.load(folder / "train.npz") as arrays:
        assert np.array_equal(rows_of(data.pool), arrays["x"] * arrays["scale"])
        assert np.array_equal(data.labels.argmax(1), arrays["y"])
    assert data.task.classes == ("a", "b", "c")
    assert data.test_labels.shape == (60, 3)


def test_classes_are_merged_as_the_paper_does(folder):
    assert load_features(folder, classes=2).task.classes == ("a", "other")


def test_a_long_tail_falls_by_its_ratio_and_the_test_set_stays(folder):
    data = load_features(folder, long_tail=10.0)
    counts = np.sort(data.labels.sum(0))
    assert counts[-1] / counts[0] == pytest.approx(10, rel=0.1)
    assert len(data.test_labels) == 60


def test_a_sample_is_the_same_each_time_and_the_test_set_stays(folder):
    whole = load_features(folder)
    sample = load_features(folder, examples=50)
    again = load_features(folder, examples=50)
    assert np.array_equal(rows_of(sample.pool), rows_of(again.pool))
    originals = {tuple(row) for row in rows_of(whole.pool).tolist()}
    assert all(tuple(row) in originals for row in rows_of(sample.pool).tolist())
    assert sample.labels.shape == (50, 3)
    assert sample.test_labels.shape == (60, 3)
    with pytest.raises(InputError, match="examples is 401: take 1 to 400"):
        load_features(folder, examples=401)


def test_copies_lie_near_their_originals(folder):
    plain = load_features(folder)
    data = load_features(folder, copies=3)
    assert len(data.pool) == 1200
    originals = np.repeat(rows_of(plain.pool), 3, axis=0)
    moved = np.abs(rows_of(data.pool) - originals) / originals.std(0)
    assert 0 < moved.max() < 0.3
    assert np.array_equal(data.labels, np.repeat(plain.labels, 3, axis=0))


def test_junk_is_of_no_class(folder):
    data = load_features(folder, junk=0.2)
    assert (data.labels.sum(1) == 0).mean() == pytest.approx(0.2, abs=0.002)


def test_the_development_split_never_opens_the_test_set(folder):
    (folder / "test.npz").unlink()
    data = load_features(folder, development=True)
    assert len(data.pool) + len(data.test_pool) == 400
    with pytest.raises(InputError, match=r"test\.npz"):
        load_features(folder)


def test_options_and_path_are_checked(folder):
    with pytest.raises(UnknownName, match="tail"):
        load_data({"name": "features", "path": str(folder), "options": {"tail": 3}})
    with pytest.raises(InputError, match="needs path"):
        load_data({"name": "features"})
    assert load_data({"name": "features", "path": str(folder)}).task.size == 3
