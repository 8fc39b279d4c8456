"""What a posterior learns from a pick: its label, or how much of the label was news to the
model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tailor.bandits.base import Outcomes
from tailor.errors import UnknownName
from tailor.task import Task

#: a user's own: outcomes of n picks -> (n, K) in [0, 1]
Evidence = Callable[[Outcomes], Any]


def labels(outcomes: Outcomes, task: Task) -> np.ndarray:
    """(n, K): y itself, as in the paper."""
    return outcomes.labels


def surprise(outcomes: Outcomes, task: Task) -> np.ndarray:
    """(n, K): y_k (1 - p_k), p what the model said when the example was picked.

    A label that the model knew already is worth nothing, however rare its class. In a multi-label
    task a class of negative weight is one whose label 0 is wanted: there 1 - (1 - y_k) p_k, so that
    the weight times this is larger by the surprise of a 0.
    """
    y = np.asarray(outcomes.labels, np.float64)
    p = outcomes.probabilities()
    surprise_of_ones = y * (1 - p)
    if task.kind == "multi-class":
        return surprise_of_ones
    surprise_of_zeros = (1 - y) * p
    # The weight is negative there, so the surprise of a 0 is taken off.
    flipped = 1 - surprise_of_zeros
    wants_zeros = outcomes.weights < 0
    return np.where(wants_zeros, flipped, surprise_of_ones)


#: outcomes of n picks, and their task -> (n, K) in [0, 1]
EvidenceOfTask = Callable[[Outcomes, Task], Any]

KINDS: dict[str, EvidenceOfTask] = {
    "labels": labels,
    "surprise": surprise,
}


def find_evidence(evidence: str | Evidence) -> EvidenceOfTask:
    """Evidence by its name, or from a user's own function."""
    if callable(evidence):
        # A user's own has no need of the task, and is not asked to take it.
        return lambda outcomes, task: evidence(outcomes)
    if evidence not in KINDS:
        raise UnknownName("evidence", evidence, KINDS)
    return KINDS[evidence]
