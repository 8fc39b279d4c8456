"""What the next labels bring, on curves whose future is known."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from tailor.insight.learning_curve import Measurement, expected_gain

RECORDED = Path(__file__).parents[2] / "benchmarks" / "results" / "few-cifar10" / "rows.jsonl.gz"


def accuracy(labels):
    return 1 - 0.05 - 2.0 * labels**-0.5


def test_a_power_law_is_followed():
    counts = range(100, 1001, 100)
    measurements = [Measurement(n, 5000, accuracy(n)) for n in counts]
    gain = expected_gain(measurements, 100)
    expected = accuracy(1100) - accuracy(1000)
    assert gain.gain == pytest.approx(expected, abs=0.003)
    assert gain.lower <= expected <= gain.upper
    assert (gain.rounds, gain.examples, gain.labels) == (10, 5000, 100)


def test_where_nothing_grows_nothing_is_promised():
    measurements = [Measurement(n, 400, 0.9) for n in range(100, 2001, 100)]
    gain = expected_gain(measurements, 100)
    assert abs(gain.gain) < 0.005


def test_few_examples_make_a_wide_interval():
    def width(examples):
        measurements = [Measurement(n, examples, accuracy(n)) for n in range(100, 1001, 100)]
        gain = expected_gain(measurements, 1000)
        return gain.upper - gain.lower

    assert width(20) > 1.2 * width(5000)


def test_two_rounds_are_too_few():
    two = [Measurement(100, 20, 0.7), Measurement(200, 30, 0.8)]
    assert expected_gain(two, 100) is None
    same = [Measurement(100, 20, 0.7)] * 4
    assert expected_gain(same, 100) is None
    assert expected_gain([], 100) is None


def test_extremes_are_no_trouble():
    for share in (0.0, 1.0):
        measurements = [Measurement(n, 30, share) for n in (50, 100, 150)]
        gain = expected_gain(measurements, 100)
        assert np.isfinite([gain.gain, gain.lower, gain.upper]).all()


def test_recorded_runs_do_as_the_interval_says():
    """Four recorded runs of cifar10 with a hold-out of an eighth, cut off at every fourth round."""
    runs = {}
    with gzip.open(RECORDED, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if row["contender"] == "auto":
                runs.setdefault(row["seed"], []).append((row["labels"], row["test_score"]))
    rng = np.random.default_rng(0)
    held = []
    for rows in runs.values():
        rows.sort()
        for cut in range(5, len(rows) - 5, 4):
            measurements = []
            for labels, score in rows[1 : cut + 1]:
                examples = max(1, labels // 8)
                right = rng.binomial(examples, score)
                measurements.append(Measurement(labels, examples, right / examples))
            later_labels, later_score = rows[cut + 5]
            labels, score = rows[cut]
            gain = expected_gain(measurements, later_labels - labels)
            held.append(gain.lower <= later_score - score <= gain.upper)
    assert len(held) >= 9
    assert np.mean(held) >= 0.85
