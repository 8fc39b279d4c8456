"""What is measured: of the model, and of the labels it was given."""

from __future__ import annotations

import numpy as np

from tailor.errors import InputError


def balanced_accuracy(labels: np.ndarray, probs: np.ndarray) -> float:
    """labels (n, K) one-hot, probs (n, K) -> the mean over classes that occur of the share
    predicted right.

    Raises InputError where there is no example.
    """
    if len(labels) == 0:
        raise InputError("balanced accuracy of no examples: at least one is needed")
    per_class = class_accuracy(labels, probs)
    # A class without examples has no accuracy: counted as 0 it would lower every mean.
    of_occurring = per_class[~np.isnan(per_class)]
    return float(of_occurring.mean())


def class_accuracy(labels: np.ndarray, probs: np.ndarray) -> np.ndarray:
    """labels (n, K) one-hot, probs (n, K) -> (K,) share of each class's examples predicted right;
    NaN for a class that does not occur.
    """
    classes = labels.shape[1]
    true_class = labels.argmax(1)
    is_right = true_class == probs.argmax(1)
    counts = np.bincount(true_class, minlength=classes)
    hits = np.bincount(true_class, weights=is_right, minlength=classes)
    accuracy = hits / np.maximum(counts, 1)
    # Not 0, which a class that is never recognised has.
    accuracy[counts == 0] = np.nan
    return accuracy


def average_precision(labels: np.ndarray, scores: np.ndarray) -> float:
    """labels (n,) of 0 and 1, scores (n,) -> the sum over thresholds of precision times the recall
    gained.

    Equal scores are one threshold, so the order of rows makes no difference. 0 where nothing is
    positive.
    """
    positives = float(labels.sum())
    if positives == 0:
        return 0.0
    ranked_scores, ranked_labels = _descending(labels, scores)
    thresholds = _thresholds(ranked_scores)
    # In whole numbers: sums of many float32 ones would stop growing at 2^24.
    cumulative = np.cumsum(ranked_labels, dtype=np.int64)
    hits = cumulative[thresholds].astype(np.float64)
    precision = hits / (thresholds + 1)
    gained = np.diff(hits, prepend=0.0)
    area = np.sum(precision * gained)
    return float(area / positives)


def _thresholds(ranked_scores: np.ndarray) -> np.ndarray:
    """Places of the last of each run of equal scores."""
    differs_from_next = ranked_scores[1:] != ranked_scores[:-1]
    is_last_of_equals = np.append(differs_from_next, True)
    return np.flatnonzero(is_last_of_equals)


def _descending(labels: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores from the highest, or what is equal where they are, and their labels."""
    if scores.dtype == np.float32 and scores.min() >= 0:
        return _descending_bits(labels, scores)
    # Stability is not needed: equal scores are one threshold.
    order = np.argsort(-scores)
    return scores[order], labels[order]


def _descending_bits(labels: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same of float32 scores that are not negative, as the bits of each."""
    # The bits of such floats are in the floats' order, and leave room for the label: plain
    # numbers sort fastest. Adding 0 makes -0.0, whose bits are not, 0.0.
    positive_zeros = np.ascontiguousarray(scores + 0.0)
    bits = positive_zeros.view(np.uint32)
    packed = (bits << 1) | (labels != 0)
    packed.sort()
    descending = packed[::-1]
    return descending >> 1, descending & 1


def mean_average_precision(labels: np.ndarray, probs: np.ndarray) -> float:
    """labels (n, K) of 0 and 1, probs (n, K) -> mean average precision over the classes that
    occur.

    Raises InputError where none does.
    """
    precisions = []
    # Average precision is about positives, and says nothing of a class that has none.
    for klass in np.flatnonzero(labels.any(0)):
        precision = average_precision(labels[:, klass], probs[:, klass])
        precisions.append(precision)
    if not precisions:
        raise InputError("mean average precision needs at least one positive label")
    return float(np.mean(precisions))


def imbalance_ratio(counts: np.ndarray) -> float:
    """counts (K,) of collected labels -> smallest class over largest; 0 with no label at all."""
    largest = counts.max()
    if largest == 0:
        return 0.0
    return float(counts.min() / largest)


def score(kind: str, labels: np.ndarray, probs: np.ndarray) -> float:
    """Balanced accuracy in multi-class, mean average precision in multi-label."""
    if kind == "multi-label":
        return mean_average_precision(labels, probs)
    return balanced_accuracy(labels, probs)


def rarest_score(
    kind: str,
    labels: np.ndarray,
    probs: np.ndarray,
    klass: int,
) -> float:
    """Of one class: the share of its examples predicted right, in multi-label its average
    precision.
    """
    if kind == "multi-label":
        return average_precision(labels[:, klass], probs[:, klass])
    per_class = class_accuracy(labels, probs)
    return float(per_class[klass])
