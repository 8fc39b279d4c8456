"""What is measured: of the model, and of the labels it was given."""

from __future__ import annotations

import numpy as np

from tailor.errors import InputError


def balanced_accuracy(labels: np.ndarray, probs: np.ndarray) -> float:
    """labels (n, K) one-hot, probs (n, K) -> the mean over classes that occur of the share
    predicted right.
    """
    true = labels.argmax(1)
    own = probs.argmax(1)
    per_class = class_accuracy(labels, probs)
    present = np.bincount(true, minlength=labels.shape[1]) > 0
    if len(own) == 0:
        raise InputError("balanced accuracy of no examples: at least one is needed")
    return float(per_class[present].mean())


def class_accuracy(labels: np.ndarray, probs: np.ndarray) -> np.ndarray:
    """(K,) share of each class's examples predicted right; NaN for a class that does not occur."""
    true = labels.argmax(1)
    right = labels.argmax(1) == probs.argmax(1)
    counts = np.bincount(true, minlength=labels.shape[1])
    hits = np.bincount(true, weights=right, minlength=labels.shape[1])
    return np.where(counts > 0, hits / np.maximum(counts, 1), np.nan)


def average_precision(labels: np.ndarray, scores: np.ndarray) -> float:
    """labels (n,) of 0 and 1, scores (n,) -> the sum over thresholds of precision times the recall
    gained.

    Equal scores are one threshold, so the order of rows makes no difference. 0 where nothing is
    positive.
    """
    positives = float(labels.sum())
    if positives == 0:
        return 0.0
    ranked, hits = _descending(labels, scores)
    last = np.flatnonzero(
        np.append(ranked[1:] != ranked[:-1], True)
    )  # the end of each run of equal scores
    found = np.cumsum(hits, dtype=np.int64)[last].astype(np.float64)
    return float(np.sum(found / (last + 1) * np.diff(found, prepend=0.0)) / positives)


def _descending(labels: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores from the highest, or what is equal where they are, and their labels."""
    if scores.dtype == np.float32 and scores.min() >= 0:
        # the bits of such floats are in the floats' order, and leave room for the label: plain
        # numbers sort fastest
        packed = np.sort((np.ascontiguousarray(scores + 0.0).view(np.uint32) << 1) | (labels != 0))[
            ::-1
        ]
        return packed >> 1, packed & 1
    order = np.argsort(-scores)
    return scores[order], labels[order]


def mean_average_precision(labels: np.ndarray, probs: np.ndarray) -> float:
    """labels (n, K) of 0 and 1, probs (n, K) -> mean average precision over the classes that
    occur.
    """
    present = np.flatnonzero(labels.any(0))
    if len(present) == 0:
        raise InputError("mean average precision needs at least one positive label")
    return float(np.mean([average_precision(labels[:, k], probs[:, k]) for k in present]))


def imbalance_ratio(counts: np.ndarray) -> float:
    """counts (K,) of collected labels -> smallest class over largest; 0 with no label at all."""
    return float(counts.min() / counts.max()) if counts.max() > 0 else 0.0


def score(kind: str, labels: np.ndarray, probs: np.ndarray) -> float:
    """Balanced accuracy in multi-class, mean average precision in multi-label."""
    return (mean_average_precision if kind == "multi-label" else balanced_accuracy)(labels, probs)


def rarest_score(kind: str, labels: np.ndarray, probs: np.ndarray, klass: int) -> float:
    """Of one class: the share of its examples predicted right, in multi-label its average
    precision.
    """
    if kind == "multi-label":
        return average_precision(labels[:, klass], probs[:, klass])
    return float(class_accuracy(labels, probs)[klass])
