"""What TAILOR's posterior learns from a pick: its label, or how much of the label was news to the
model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tailor.bandits.base import Outcomes
from tailor.errors import InputError, UnknownName
from tailor.task import Task

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
    p = _predicted(outcomes)
    news = y * (1 - p)
    return (
        news
        if task.kind == "multi-class"
        else np.where(outcomes.weights < 0, 1 - (1 - y) * p, news)
    )


#: what a round counts for `difficulty` beside the one after it
FADES = 0.8


def difficulty(rounds: Sequence[Outcomes], size: int) -> np.ndarray:
    """(K,) in (0, 1): how much of each class's labels was news when they were picked, the latest
    rounds first of all.

    As if each class had been seen twice before, once as news: a class that was never found is hard
    by half.
    """
    news = np.ones(size)
    seen = np.full(size, 2.0)
    for age, outcomes in enumerate(reversed(rounds)):
        y = np.asarray(outcomes.labels, np.float64)
        news += FADES**age * (y * (1 - _predicted(outcomes))).sum(axis=0)
        seen += FADES**age * y.sum(axis=0)
    share: np.ndarray = news / seen
    return share


def _predicted(outcomes: Outcomes) -> np.ndarray:
    if outcomes.predicted is None:
        raise InputError(
            "surprise needs the model's probabilities at the time of picking: give "
            "Outcomes.predicted"
        )
    return np.clip(np.asarray(outcomes.predicted, np.float64), 0, 1)


KINDS: dict[str, Callable[[Outcomes, Task], np.ndarray]] = {"labels": labels, "surprise": surprise}


def make_evidence(given: str | Evidence, task: Task) -> Evidence:
    """By name, or a function of Outcomes to (n, K) in [0, 1]."""
    if callable(given):
        return given
    if given not in KINDS:
        raise UnknownName("evidence", given, KINDS)
    return lambda outcomes: KINDS[given](outcomes, task)
