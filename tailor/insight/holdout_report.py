"""How good the model is, by the hold-out: in all, class by class, and where it is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailor.insight.intervals import MeanShare, Share, mean_share
from tailor.insight.ranking import average_precision
from tailor.task import MultiClass, Task

#: groups of equally wide probabilities that a reliability figure has
RELIABILITY_BINS = 5


@dataclass(frozen=True)
class ClassReport:
    """What the hold-out says of one class.

    in_pool            how many of the hold-out are of this class: its share of the whole pool,
                       since the hold-out is drawn at random
    recall             of those that are, how many the model finds; multi-class: its accuracy
    precision          of those that the model says are, how many are
    average_precision  over all thresholds, multi-label; None where the hold-out has none or nothing
                       else
    """

    in_pool: Share
    recall: Share
    precision: Share
    average_precision: float | None


@dataclass(frozen=True)
class ReliabilityBin:
    """Of what the model said with about this probability, how much was right."""

    probability: float  # the mean of what it said
    right: Share


@dataclass(frozen=True)
class HoldoutReport:
    """The model on the hold-out's n examples.

    accuracy   examples with all classes right
    balanced   multi-class: the mean of the classes' recalls
    decisions  multi-label: single yes-or-no answers that are right
    classes    one an entry of the task's
    confusion  (K, K) int64, multi-class: examples by their label and by what the model says; None
               in multi-label tasks
    is_right   (n,) bool, one an example
    """

    accuracy: Share
    balanced: MeanShare | None
    decisions: Share | None
    mean_average_precision: float | None
    classes: tuple[ClassReport, ...]
    confusion: np.ndarray | None
    reliability: tuple[ReliabilityBin, ...]
    is_right: np.ndarray


def report_holdout(task: Task, labels: np.ndarray, probs: np.ndarray) -> HoldoutReport:
    """labels (n, K) of 0 and 1, probs (n, K) of a model that has learned none of them."""
    is_labelled = labels > 0.5
    says = np.asarray(task.predicted(probs))
    is_right = (says == is_labelled).all(1)
    classes = []
    for k in range(task.size):
        of_class = _report_class(is_labelled[:, k], says[:, k], probs[:, k])
        classes.append(of_class)
    balanced = None
    decisions = None
    confusion = None
    mean_precision = None
    if isinstance(task, MultiClass):
        confusion = is_labelled.T.astype(np.int64) @ says.astype(np.int64)
        balanced = mean_share(np.diagonal(confusion), is_labelled.sum(0))
    else:
        right_decisions = int((says == is_labelled).sum())
        decisions = Share(right_decisions, is_labelled.size)
        known = []
        for each in classes:
            if each.average_precision is not None:
                known.append(each.average_precision)
        if known:
            mean_precision = float(np.mean(known))
    return HoldoutReport(
        accuracy=Share(int(is_right.sum()), len(labels)),
        balanced=balanced,
        decisions=decisions,
        mean_average_precision=mean_precision,
        classes=tuple(classes),
        confusion=confusion,
        reliability=_reliability(task, is_labelled, probs),
        is_right=is_right,
    )


def _report_class(is_labelled: np.ndarray, says: np.ndarray, scores: np.ndarray) -> ClassReport:
    """All (n,): whether an example is of the class, whether the model says so, how likely."""
    both = int((is_labelled & says).sum())
    positives = int(is_labelled.sum())
    return ClassReport(
        in_pool=Share(positives, len(is_labelled)),
        recall=Share(both, positives),
        precision=Share(both, int(says.sum())),
        average_precision=average_precision(is_labelled, scores),
    )


def _reliability(
    task: Task, is_labelled: np.ndarray, probs: np.ndarray
) -> tuple[ReliabilityBin, ...]:
    """Multi-class: of the likeliest class. Multi-label: of every class of every example."""
    probabilities = probs.ravel()
    came_true = is_labelled.ravel()
    if isinstance(task, MultiClass):
        likeliest = probs.argmax(1)
        rows = np.arange(len(probs))
        probabilities = probs[rows, likeliest]
        came_true = is_labelled[rows, likeliest]
    numbers = np.minimum(probabilities * RELIABILITY_BINS, RELIABILITY_BINS - 1).astype(np.int64)
    bins = []
    for number in range(RELIABILITY_BINS):
        in_bin = numbers == number
        count = int(in_bin.sum())
        if count == 0:
            continue
        right = int(came_true[in_bin].sum())
        mean = float(probabilities[in_bin].mean())
        bins.append(ReliabilityBin(mean, Share(right, count)))
    return tuple(bins)
