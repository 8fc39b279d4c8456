"""The linear heads of scikit-learn's linear classifiers."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tailor.common.linear_head import LinearHead
from tailor.models.sklearn_classifiers import FittedClassifiers
from tailor.task import MultiClass

#: how far below the others the logit of a class lies that is never predicted
OUT_OF_REACH = 100.0
#: how far a head's probabilities may be from the classifier's own
TOLERANCE = 1e-3
#: the largest logit at which they are compared: beyond, all classifiers are sure and look alike
LARGEST_LOGIT = 3.0
#: vectors on which they are compared
COMPARED = 64


def find_linear_head(fitted: FittedClassifiers, vectors: np.ndarray) -> LinearHead | None:
    """The head behind fitted classifiers; None where they are not linear, or where their
    probabilities are not the softmax (multi-label: the sigmoids) of its logits, as of a classifier
    that weighs each class against the rest by itself.

    vectors  (n, d) some examples, on which that is tried
    """
    task = fitted.task
    some = vectors[:COMPARED]
    for classifier in fitted.classifiers:
        # An int: a class that all have or none has.
        if not isinstance(classifier, int) and not _is_softmax(classifier, some):
            return None
    if isinstance(task, MultiClass):
        return _multi_class(fitted.classifiers[0], task.size)
    return _multi_label(fitted.classifiers, vectors.shape[1])


def _is_softmax(classifier: Any, vectors: np.ndarray) -> bool:
    """Whether a classifier is linear, and its probabilities are the softmax of its logits, or the
    sigmoid of its only one.
    """
    rows = _rows(classifier)
    if rows is None:
        return False
    weights, bias = rows
    own_logits = vectors @ weights.T + bias
    largest = np.abs(own_logits).max()
    scale = min(1.0, LARGEST_LOGIT / max(largest, LARGEST_LOGIT))
    # Of a copy with smaller weights, so that it is not sure of everything.
    milder = copy.copy(classifier)
    milder.coef_ = classifier.coef_ * scale
    milder.intercept_ = classifier.intercept_ * scale
    logits = scale * own_logits
    if len(weights) == 1:
        zeros = np.zeros_like(logits)
        logits = np.concatenate([zeros, logits], 1)
    powers = np.exp(logits)
    expected = powers / powers.sum(1, keepdims=True)
    predicted = milder.predict_proba(vectors)
    if predicted.shape != expected.shape:
        return False
    differences = np.abs(predicted - expected)
    return bool(differences.max() <= TOLERANCE)


def _multi_class(classifier: Any, classes: int) -> LinearHead | None:
    rows = _rows(classifier)
    if rows is None:
        return None
    weights, bias = rows
    seen = np.asarray(classifier.classes_, np.int64)
    if len(weights) == 1:
        # Two classes have one row: half of it for the one, half against the other.
        half_weights = weights / 2
        half_bias = bias / 2
        weights = np.concatenate([-half_weights, half_weights])
        bias = np.concatenate([-half_bias, half_bias])
    if len(weights) != len(seen):
        return None
    all_weights = np.zeros((classes, weights.shape[1]))
    all_weights[seen] = weights
    never_predicted = bias.min() - OUT_OF_REACH
    all_bias = np.full(classes, never_predicted)
    all_bias[seen] = bias
    return LinearHead(all_weights, all_bias, _ridge(classifier))


def _multi_label(classifiers: list[Any], width: int) -> LinearHead | None:
    weights = np.zeros((len(classifiers), width))
    bias = np.zeros(len(classifiers))
    ridge = None
    for number, classifier in enumerate(classifiers):
        if isinstance(classifier, int):
            # All labelled examples have the class, or none has it.
            bias[number] = -OUT_OF_REACH
            if classifier:
                bias[number] = OUT_OF_REACH
            continue
        rows = _rows(classifier)
        if rows is None:
            return None
        weight_rows, biases = rows
        if len(weight_rows) != 1:
            return None
        weights[number] = weight_rows[0]
        bias[number] = biases[0]
        ridge = _ridge(classifier)
    return LinearHead(weights, bias, ridge)


def _rows(classifier: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Weights (r, d) and bias (r,) of a fitted linear classifier, or None."""
    if not hasattr(classifier, "coef_") or not hasattr(classifier, "intercept_"):
        return None
    weights = np.asarray(classifier.coef_, np.float64)
    bias = np.asarray(classifier.intercept_, np.float64)
    if weights.ndim != 2:
        return None
    # Without an intercept scikit-learn gives one 0 for all.
    bias_of_rows = np.broadcast_to(bias, len(weights))
    return weights, bias_of_rows.copy()


def _ridge(classifier: Any) -> float | None:
    """Of a logistic regression, whose C is its inverse."""
    inverse = getattr(classifier, "C", None)
    if not isinstance(inverse, (int, float)) or not 0 < inverse < np.inf:
        return None
    return 1 / inverse
