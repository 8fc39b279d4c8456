"""Which class needs labels next, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailor.insight.holdout_report import HoldoutReport
from tailor.insight.intervals import Share

#: examples at the mean error that a class is thought to have had before: few say little
PRIOR_EXAMPLES = 4


@dataclass(frozen=True)
class ClassNeed:
    """The class from whose next label most is expected, with the reason in words."""

    name: str
    reason: str


def neediest_class(
    names: Sequence[str], labels: np.ndarray, report: HoldoutReport
) -> ClassNeed | None:
    """The class whose error falls most with one more label; None where all is right.

    An error that falls with the square root of the labels falls by error / (2 labels) with the next
    one. Errors are those of the classes' recalls, drawn towards their mean where a class has few
    examples in the hold-out.

    labels  (K,) that the model may learn from
    """
    totals = np.array([each.recall.n for each in report.classes], np.float64)
    right = np.array([each.recall.count for each in report.classes], np.float64)
    wrong = totals - right
    if wrong.sum() == 0:
        return None
    mean_error = wrong.sum() / totals.sum()
    wrong_with_prior = wrong + PRIOR_EXAMPLES * mean_error
    totals_with_prior = totals + PRIOR_EXAMPLES
    errors = wrong_with_prior / totals_with_prior
    gains = errors / np.maximum(labels, 1)
    # Of equally needy classes the first: the page must not change by itself.
    neediest = int(np.argmax(gains))
    count = int(labels[neediest])
    recall = report.classes[neediest].recall
    reason = f"{_labels(count)}, and {_rightness(recall)}"
    return ClassNeed(names[neediest], reason)


def _labels(count: int) -> str:
    if count == 1:
        return "it has 1 label to learn from"
    return f"it has {count:,} labels to learn from"


def _rightness(recall: Share) -> str:
    if recall.n == 0:
        return "none in the hold-out, so that its accuracy is not known"
    return f"{recall.count} of {recall.n} in the hold-out are found"
