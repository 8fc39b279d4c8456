"""The hold-out's figures, against a count by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta
from sklearn import metrics

from tailor.insight.holdout_report import report_holdout
from tailor.insight.intervals import Share, mean_share
from tailor.insight.ranking import average_precision
from tailor.task import MultiClass, MultiLabel


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_multi_class_figures_are_those_of_a_count_by_hand(rng):
    classes = 4
    truth = rng.integers(classes, size=80)
    probs = rng.dirichlet(np.ones(classes), 80)
    report = report_holdout(MultiClass(classes), np.eye(classes)[truth], probs)
    says = probs.argmax(1)
    confusion = np.zeros((classes, classes), int)
    for label, said in zip(truth, says):
        confusion[label, said] += 1
    assert np.array_equal(report.confusion, confusion)
    assert report.accuracy == Share(int((truth == says).sum()), 80)
    expected = metrics.balanced_accuracy_score(truth, says)
    assert report.balanced.share == pytest.approx(expected)
    for k, of_class in enumerate(report.classes):
        assert of_class.in_pool == Share(int((truth == k).sum()), 80)
        assert of_class.recall == Share(confusion[k, k], confusion[k].sum())
        assert of_class.precision == Share(confusion[k, k], confusion[:, k].sum())
    assert sum(each.right.n for each in report.reliability) == 80
    assert sum(each.right.count for each in report.reliability) == report.accuracy.count


def test_multi_label_figures_are_scikit_learns(rng):
    labels = (rng.random((60, 3)) < [0.2, 0.5, 0.0]).astype(np.float32)
    probs = np.clip(0.6 * labels + 0.6 * rng.random((60, 3)), 0, 1)
    report = report_holdout(MultiLabel(3), labels, probs)
    says = probs > 0.5
    assert report.confusion is None
    assert report.balanced is None
    assert report.decisions == Share(int((says == (labels > 0)).sum()), 180)
    precisions = []
    for k in range(2):
        expected = metrics.average_precision_score(labels[:, k], probs[:, k])
        assert report.classes[k].average_precision == pytest.approx(expected)
        recall = metrics.recall_score(labels[:, k], says[:, k])
        assert report.classes[k].recall.share == pytest.approx(recall)
        precision = metrics.precision_score(labels[:, k], says[:, k])
        assert report.classes[k].precision.share == pytest.approx(precision)
        precisions.append(expected)
    # Of a class that the hold-out has none of, nothing is known.
    assert report.classes[2].average_precision is None
    assert report.classes[2].recall.n == 0
    assert report.mean_average_precision == pytest.approx(np.mean(precisions))


def test_average_precision_takes_ties_together(rng):
    for _ in range(50):
        is_positive = rng.random(30) < 0.3
        scores = rng.integers(6, size=30).astype(float)
        if is_positive.any():
            expected = metrics.average_precision_score(is_positive, scores)
            assert average_precision(is_positive, scores) == pytest.approx(expected)
    assert average_precision(np.zeros(5, bool), np.arange(5.0)) is None


def test_the_interval_of_one_class_is_that_of_its_posterior():
    mean = mean_share(np.array([7, 0]), np.array([10, 0]))
    assert mean.classes == 1
    assert mean.lower == pytest.approx(beta.ppf(0.025, 8, 4))
    assert mean.upper == pytest.approx(beta.ppf(0.975, 8, 4))


def test_the_interval_of_a_mean_of_shares_holds_what_it_should(rng):
    """Three unequal classes, drawn 2,000 times: 95 of a hundred intervals, give or take two."""
    truth = np.array([0.95, 0.7, 0.5])
    totals = np.array([40, 12, 5])
    held = 0
    for _ in range(2000):
        mean = mean_share(rng.binomial(totals, truth), totals)
        held += mean.lower <= truth.mean() <= mean.upper
    assert 0.93 <= held / 2000 <= 0.98


def test_of_nothing_nothing_is_known():
    assert mean_share(np.zeros(3), np.zeros(3)) is None
    assert (Share(0, 0).lower, Share(0, 0).upper) == (0.0, 1.0)
    assert not Share(19, 19).is_enough
    assert Share(3, 20).is_enough
