"""Shards that a power cut damaged, numbers that don't fit them, and runs that go on by
themselves.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from point_runs import FAMILIES, begin, make_points, rounds

from tailor import InputError
from tailor.compute import LocalEngine, Predictions, Sharded
from tailor.run.project import Project
from tailor.selection.learner import Learner
from tailor.task import MultiClass

PROBS = np.full((10, 4), 0.25, np.float32)


@pytest.fixture
def made(tmp_path):
    """Three shards of four, four and two rows."""
    return Predictions(str(tmp_path / "p"), 10, 4, 2, shard=4).write_all(PROBS, np.ones((10, 2)))


def empty(path):
    path.write_bytes(b"")


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-1])


def cut_in_the_head(path):
    path.write_bytes(path.read_bytes()[:30])


def nonsense(path):
    path.write_bytes(b"\x93NUMPY nonsense")


def other_shape(path):
    np.save(path, np.zeros((1, 4), np.float16))


def other_numbers(path):
    np.save(path, np.load(path).astype(np.float32))


DAMAGE = [empty, cut_short, cut_in_the_head, nonsense, other_shape, other_numbers]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["probs", "features"])
def test_a_damaged_shard_counts_as_missing(made, damage, name):
    damage(Path(getattr(made[1], name)))
    assert made.missing() == [1]
    with pytest.raises(
        InputError,
        match=r"lacks 1 of 3 shards \(not written, or damaged\), the first is 1: predict",
    ):
        Predictions.open(made.folder)
    made.write(1, PROBS[4:8], np.ones((4, 2)))
    assert Predictions.open(made.folder) == made


@pytest.mark.parametrize("damage", [empty, cut_short, cut_in_the_head, nonsense])
def test_a_shard_damaged_since_it_was_looked_at_is_named(made, damage):
    damage(Path(made[2].probs))
    with pytest.raises(
        InputError, match=r"probs-00002.npy can't be read \(.+\): run this again, .* predicted anew"
    ):
        made.take("probs", np.arange(10))


def test_what_killed_writers_left_goes_with_the_shards(made):
    left = Path(f"{made[1].probs}.99999")
    left.write_bytes(b"half")
    made.begin()
    assert left.exists()  # of the same predictions: somebody may be writing it
    Predictions(made.folder, 10, 4, 2, shard=4, fingerprint="another model").begin()
    assert [p.name for p in Path(made.folder).iterdir()] == ["predictions.json"]


def test_predictions_whose_description_is_damaged_are_begun_anew(made):
    (Path(made.folder) / "predictions.json").write_bytes(b"\xff\x00")
    with pytest.raises(InputError, match=r"predictions.json can't be read .*: predict again"):
        Predictions.open(made.folder)
    assert made.begin().missing() == [0, 1, 2]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_run_predicts_damaged_shards_again(damage, tmp_path):
    """After a power cut in an open round: the same questions, no command in between, the other
    shards kept.
    """
    points = make_points(tmp_path)
    wanted = rounds(begin(tmp_path / "whole", points, "local"), 3)[1]
    folder = begin(tmp_path / "cut", points, "local")
    first, _ = rounds(folder, 2)
    some = first.ask(3).ids
    first.store.close()
    stamps = {
        path: path.stat().st_mtime_ns for path in (folder / "engine" / "predictions").glob("*.npy")
    }
    assert len(stamps) == 10
    damage(folder / "engine" / "predictions" / "probs-00003.npy")
    again = Project(folder).session()
    assert some + again.ask().ids == wanted[2]
    assert {p.name for p, stamp in stamps.items() if p.stat().st_mtime_ns != stamp} == {
        "probs-00003.npy",
        "features-00003.npy",
    }


# ---------------------------------------------------------------------- numbers too large for half
# precision


def test_features_beyond_float16_are_named(tmp_path):
    features = np.ones((10, 2), np.float32)
    features[6, 1] = -70_000
    half = Predictions(str(tmp_path / "half"), 10, 4, 2, shard=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy's own, which says nothing of where
        with pytest.raises(InputError) as raised:
            half.write_all(PROBS, features)
    assert str(raised.value) == (
        "features of example 6 reach -70000, and shards of float16 hold numbers up to 65,504: "
        'scale them, or set [engine] dtype = "float32"'
    )
    assert half.missing() == [1, 2]
    full = Predictions(str(tmp_path / "full"), 10, 4, 2, "float32", shard=4).write_all(
        PROBS, features
    )
    assert np.array_equal(full.take("features", np.arange(10)), features)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_what_is_not_finite_is_called_so(tmp_path, bad):
    features = np.ones((10, 2), np.float32)
    features[6, 1] = bad
    made = Predictions(str(tmp_path), 10, 4, 2, shard=4).write_all(PROBS, features)
    with pytest.raises(InputError, match="features of example 6 are not finite"):
        Learner(MultiClass(4), 10, strategies=["random"], batch=2).ask(Sharded(made, LocalEngine()))


def test_a_run_with_large_vectors(tmp_path):
    """float16 says what to set; then the picks are those of memory."""
    points = make_points(tmp_path, scale=1e5)
    families = [name for name in FAMILIES if name != "bald"]  # whose dropout goes by shards
    given = {"model": "sklearn(estimator=naive_bayes.GaussianNB)", "strategies": families}
    with pytest.raises(
        InputError, match=r"features of example \d+ reach .*: scale them, or set \[engine\] dtype"
    ):
        rounds(begin(tmp_path / "half", points, "local", **given), 2)
    _, full = rounds(begin(tmp_path / "full", points, "local", 'dtype = "float32"', **given), 2)
    _, memory = rounds(begin(tmp_path / "memory", points, "memory", **given), 2)
    assert full == memory


def test_a_wrong_dtype_is_named_with_its_line(tmp_path):
    folder = begin(tmp_path / "a", make_points(tmp_path), "local", 'dtype = "int8"')
    with pytest.raises(
        InputError, match=r"tailor.toml, line \d+.*dtype is 'int8': float16, float32 or float64"
    ):
        Project(folder).session()
