"""Statistics against numbers worked by hand and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as peer

from tailor.errors import InputError
from tailor_experiments.comparison import stats


def test_mean_and_standard_error():
    found = stats.mean_error(np.array([2.0, 4.0, 6.0, np.nan]))
    assert (found.mean, found.n) == (4.0, 3)
    assert found.error == pytest.approx(2 / np.sqrt(3))
    assert np.isnan(stats.mean_error(np.array([1.0])).error)
    assert stats.mean_error(np.array([])).n == 0


def test_paired_differences_by_hand():
    """Differences 1, 2, 3: mean 2, error 1/sqrt(3), t(0.975, 2) = 4.302653."""
    found = stats.paired(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    half = 4.302653 / np.sqrt(3)
    assert (found.mean, found.low, found.high) == pytest.approx((2, 2 - half, 2 + half), abs=1e-5)
    assert not found.clear


def test_paired_differences_against_scipy():
    rng = np.random.default_rng(0)
    a = rng.normal(1, 1, 12)
    b = rng.normal(0, 1, 12)
    found = stats.paired(a, b, 0.9)
    expected = peer.ttest_rel(a, b).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.clear == (expected.low > 0 or expected.high < 0)


def test_pairs_without_spread_prove_nothing():
    found = stats.paired(np.array([2.0, 2.0]), np.array([1.0, 1.0]))
    assert (found.low, found.high, found.clear) == (1, 1, False)
    assert np.isnan(stats.paired(np.array([2.0]), np.array([1.0])).low)
    with pytest.raises(InputError, match="one length"):
        stats.paired(np.array([1.0, 2.0]), np.array([1.0]))


def test_area_is_the_mean_height():
    """Trapezoids: 10 * 0.25 + 20 * 0.75 = 17.5, over 30 labels."""
    assert stats.area(np.array([10.0, 20.0, 40.0]), np.array([0.0, 0.5, 1.0])) == pytest.approx(
        17.5 / 30
    )


def test_labels_to_a_target():
    labels = np.array([10.0, 20.0, 30.0])
    scores = np.array([0.5, 0.7, 0.6])
    assert stats.labels_to(labels, scores, 0.6) == 20
    assert stats.labels_to(labels, scores, 0.7) == 20
    assert stats.labels_to(labels, scores, 0.71) == np.inf


def test_the_first_quarter_has_at_least_one_round():
    scores = np.arange(13.0)
    for rounds in range(1, 14):
        first = [scores[at] for at in range(rounds) if at == 0 or (at + 1) * 4 <= rounds]
        assert stats.first_quarter(scores[:rounds]) == sum(first) / len(first)
    assert stats.first_quarter(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist() == [1, 3]
    with pytest.raises(InputError, match="no first quarter"):
        stats.first_quarter(np.empty((2, 0)))


def test_labels_to_a_target_between_rounds():
    labels = np.array([10.0, 20.0, 40.0])
    scores = np.array([0.5, 0.75, 0.25])
    for target, expected in ((0.4, 10), (0.5, 10), (0.625, 15), (0.75, 20), (0.76, np.inf)):
        assert stats.labels_to_between(labels, scores, target) == expected


def test_labels_between_rounds_against_a_walk_along_the_curve():
    rng = np.random.default_rng(0)
    never = 0
    for _ in range(50):
        labels = np.cumsum(rng.integers(1, 9, 6))
        scores = rng.random(6)
        target = rng.random()
        walk = np.arange(labels[0], labels[-1] + 0.001, 0.001)
        heights = np.interp(walk, labels, scores)
        high_enough = [at for at, height in zip(walk, heights) if height >= target]
        found = stats.labels_to_between(labels, scores, target)
        if high_enough:
            assert high_enough[0] - 0.001 <= found <= high_enough[0] + 1e-9
        else:
            never += 1
            assert found == np.inf
    assert 0 < never < 50


def test_smoothing():
    values = np.array([[0.0, 3.0, 6.0, 0.0]])
    assert stats.smooth(values, 3).tolist() == [[1.5, 3.0, 3.0, 3.0]]
    assert stats.smooth(values, 1).tolist() == values.tolist()


def test_ranks_over_datasets():
    scores = {
        "a": {"x": 0.9, "y": 0.8, "z": 0.1},
        "b": {"x": 0.5, "y": 0.5, "z": 0.6},
        "c": {"y": 1, "x": 0, "z": 0},
    }
    # a: 1 2 3; b: 2.5 2.5 1; c: 2.5 1 2.5
    assert stats.mean_ranks(scores) == pytest.approx({"y": 5.5 / 3, "x": 2.0, "z": 6.5 / 3})
    del scores["b"]["z"]
    assert stats.mean_ranks(scores) == {"x": 1.5, "y": 1.5}
