"""Cross-fitted heads: what each says of the labels that it did not see."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from tailor.models import cross_fitting
from tailor.models.convex import shrinkage
from tailor.models.cross_fitting import cross_fit_linear, spread_over_folds
from tailor.task import MultiClass, MultiLabel

VARIANCE = 3.0


def blobs(rng, count, classes, width):
    centres = rng.normal(size=(classes, width))
    numbers = rng.integers(classes, size=count)
    features = centres[numbers] + rng.normal(size=(count, width))
    features = (features - features.mean(0)) / features.std(0)
    return features.astype(np.float32), numbers


def slow_fold(features, targets, seen):
    """One logistic regression a fold, by another solver: probabilities of what it did not see."""
    strength = shrinkage(features.shape[1], int(seen.sum()), VARIANCE)
    head = LogisticRegression(C=1 / (strength * seen.sum()), tol=1e-8, max_iter=2000)
    head.fit(features[seen], targets[seen])
    return head.predict_proba(features[~seen])


def test_every_example_is_judged_by_a_head_that_did_not_see_it(monkeypatch):
    monkeypatch.setattr(cross_fitting, "STEPS", 300)
    monkeypatch.setattr(cross_fitting, "LOGIT_VARIANCES", (VARIANCE,))
    rng = np.random.default_rng(0)
    task = MultiClass(3)
    features, numbers = blobs(rng, 60, 3, 5)
    targets = np.eye(3)[numbers]
    probs = cross_fit_linear(task, torch.from_numpy(features), targets, seed=7)
    folds = spread_over_folds(task, targets, np.random.default_rng(7))
    for fold in range(cross_fitting.FOLDS):
        seen = folds != fold
        expected = slow_fold(features, numbers, seen)
        np.testing.assert_allclose(probs[~seen], expected, atol=2e-3)


def test_multi_label_heads_are_one_regression_a_class(monkeypatch):
    monkeypatch.setattr(cross_fitting, "STEPS", 300)
    monkeypatch.setattr(cross_fitting, "LOGIT_VARIANCES", (VARIANCE,))
    rng = np.random.default_rng(1)
    task = MultiLabel(2)
    features, _ = blobs(rng, 50, 2, 4)
    noisy = features[:, :2] + rng.normal(size=(50, 2))
    targets = (noisy > 0).astype(np.float64)
    probs = cross_fit_linear(task, torch.from_numpy(features), targets, seed=3)
    folds = spread_over_folds(task, targets, np.random.default_rng(3))
    seen = folds != 0
    # The loss is a mean over examples and classes, and the prior stands against their sum.
    strength = shrinkage(4, 2 * int(seen.sum()), VARIANCE)
    for k in range(2):
        head = LogisticRegression(C=1 / (strength * 2 * seen.sum()), tol=1e-8, max_iter=2000)
        head.fit(features[seen], targets[seen, k])
        expected = head.predict_proba(features[~seen])[:, 1]
        np.testing.assert_allclose(probs[~seen, k], expected, atol=2e-3)


def test_heads_that_do_not_fit_together_are_solved_one_after_another(monkeypatch):
    rng = np.random.default_rng(2)
    features, numbers = blobs(rng, 40, 2, 3)
    targets = np.eye(2)[numbers]
    together = cross_fit_linear(MultiClass(2), torch.from_numpy(features), targets, seed=0)
    monkeypatch.setattr(cross_fitting, "LARGEST_STACK", 1)
    apart = cross_fit_linear(MultiClass(2), torch.from_numpy(features), targets, seed=0)
    np.testing.assert_allclose(together, apart, atol=1e-4)


@pytest.mark.parametrize("count", [2, 7, 23])
def test_folds_are_even_and_spread_every_class(count):
    numbers = np.arange(count) % 2
    folds = spread_over_folds(MultiClass(2), np.eye(2)[numbers], np.random.default_rng(0))
    sizes = np.bincount(folds)
    assert len(sizes) == min(cross_fitting.FOLDS, count)
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("seed", range(3))
def test_the_prior_that_finds_the_labels_likeliest_counts(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    features, numbers = blobs(rng, 60, 3, 6)
    targets = np.eye(3)[numbers]
    rows = torch.from_numpy(features)
    chosen = cross_fit_linear(MultiClass(3), rows, targets, seed=0)
    losses = {}
    for variance in (1.0, 3.0, 10.0):
        monkeypatch.setattr(cross_fitting, "LOGIT_VARIANCES", (variance,))
        probs = cross_fit_linear(MultiClass(3), rows, targets, seed=0)
        losses[variance] = (cross_fitting._log_loss(targets, probs), probs)
    _, best = min(losses.values(), key=lambda pair: pair[0])
    np.testing.assert_allclose(chosen, best, atol=1e-6)
