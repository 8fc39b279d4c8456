"""Metrics against scikit-learn, ties included."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, balanced_accuracy_score

from tailor.errors import InputError
from tailor_experiments.metrics import (
    average_precision,
    balanced_accuracy,
    class_accuracy,
    imbalance_ratio,
    mean_average_precision,
)

seeds = st.integers(0, 2**32)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(seeds, st.integers(1, 60), st.integers(1, 6), st.sampled_from([1, 2, 8]))
def test_mean_average_precision(seed, n, classes, decimals):
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, classes)) < 0.4).astype(np.uint8)
    labels[rng.integers(n), 0] = 1
    probs = rng.random((n, classes)).round(decimals)  # few decimals: many ties
    present = labels.any(0)
    expected = [average_precision_score(labels[:, k], probs[:, k]) for k in np.flatnonzero(present)]
    assert mean_average_precision(labels, probs) == pytest.approx(np.mean(expected), abs=1e-12)
    order = rng.permutation(n)
    assert mean_average_precision(labels[order], probs[order]) == pytest.approx(
        np.mean(expected), abs=1e-12
    )


@settings(max_examples=80, deadline=None, derandomize=True)
@given(seeds, st.integers(1, 60), st.integers(2, 6))
def test_balanced_accuracy(seed, n, classes):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    probs = rng.random((n, classes))
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # scikit-learn's, where a predicted class does not occur
        expected = balanced_accuracy_score(true, probs.argmax(1))
    assert balanced_accuracy(np.eye(classes)[true], probs) == pytest.approx(expected)


def test_all_tied_does_not_depend_on_the_order_of_rows():
    for labels in ([1, 0, 0, 0], [0, 0, 0, 1]):
        assert average_precision(np.array(labels), np.full(4, 0.5)) == 0.25


def test_classes_that_do_not_occur():
    labels = np.eye(3)[[0, 0, 1]]
    probs = np.eye(3)[[0, 1, 1]]
    np.testing.assert_array_equal(class_accuracy(labels, probs), [0.5, 1, np.nan])
    assert balanced_accuracy(labels, probs) == 0.75
    with pytest.raises(InputError, match="at least one positive"):
        mean_average_precision(np.zeros((3, 2)), np.zeros((3, 2)))


def test_imbalance_ratio():
    assert imbalance_ratio(np.array([5, 20, 10])) == 0.25
    assert imbalance_ratio(np.zeros(3)) == 0
