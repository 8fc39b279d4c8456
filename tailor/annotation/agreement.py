"""How far annotators agree on the examples that several of them answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tailor.run.consensus import Vote
from tailor.task import MultiClass, Task

#: the answers of two annotators to the same examples, as class indices
AnswerPairs = list[tuple[tuple[int, ...], tuple[int, ...]]]


def agreement(task: Task, votes: Iterable[dict[str, Vote]]) -> dict[str, Any]:
    """Agreement of each pair of annotators, and over all pairs.

    votes: for each example, the votes by annotator; votes that skip are left out.

    Returns {"overall": figures, "pairs": [{"a": name, "b": name, **figures}, ...]}, where figures
    are "n" (examples that both answered), "equal" (share of equal answers) and "kappa" (Cohen's).
    In a multi-label task "classes" has a kappa for each class, and "kappa" is their mean. Kappa
    over all is the mean of the pairs', weighted by their examples. It is None where it is not
    defined: no examples, or both always gave the same class.
    """
    pairs = [
        {"a": first, "b": second, **_figures(task, answers)}
        for (first, second), answers in sorted(_answers_by_pair(votes).items())
    ]
    examples = [pair["n"] for pair in pairs]
    overall: dict[str, Any] = {
        "n": sum(examples),
        "equal": _weighted_mean([pair["equal"] for pair in pairs], examples),
        "kappa": _weighted_mean([pair["kappa"] for pair in pairs], examples),
    }
    if not isinstance(task, MultiClass):
        overall["classes"] = {
            name: _weighted_mean([pair["classes"][name] for pair in pairs], examples)
            for name in task.classes
        }
    return {"overall": overall, "pairs": pairs}


def _answers_by_pair(votes: Iterable[dict[str, Vote]]) -> dict[tuple[str, str], AnswerPairs]:
    by_pair: dict[tuple[str, str], AnswerPairs] = {}
    for votes_on_example in votes:
        answers = sorted(
            (name, vote.classes)
            for name, vote in votes_on_example.items()
            if vote.classes is not None
        )
        for (first, first_answer), (second, second_answer) in combinations(answers, 2):
            by_pair.setdefault((first, second), []).append((first_answer, second_answer))
    return by_pair


def _figures(task: Task, answers: AnswerPairs) -> dict[str, Any]:
    equal = sum(first == second for first, second in answers)
    figures: dict[str, Any] = {"n": len(answers), "equal": equal / len(answers)}
    if isinstance(task, MultiClass):
        first_classes = np.array([first[0] for first, _ in answers])
        second_classes = np.array([second[0] for _, second in answers])
        figures["kappa"] = cohen_kappa(first_classes, second_classes)
        return figures
    kappas: dict[str, float | None] = {}
    for k, name in enumerate(task.classes):
        first_gave = np.array([k in first for first, _ in answers], np.int64)
        second_gave = np.array([k in second for _, second in answers], np.int64)
        kappas[name] = cohen_kappa(first_gave, second_gave)
    defined = [kappa for kappa in kappas.values() if kappa is not None]
    figures["kappa"] = float(np.mean(defined)) if defined else None
    figures["classes"] = kappas
    return figures


def cohen_kappa(first: np.ndarray, second: np.ndarray) -> float | None:
    """Cohen's kappa of two annotators' classes, first and second (n,) int, or None where it is not
    defined: both gave one and the same class throughout.

    As scikit-learn's cohen_kappa_score, which takes eighty times as long for few examples: a page
    with twenty annotators and a hundred classes needs nineteen thousand of them.
    """
    size = int(max(first.max(), second.max())) + 1
    first_shares = np.bincount(first, minlength=size) / len(first)
    second_shares = np.bincount(second, minlength=size) / len(second)
    expected = float(first_shares @ second_shares)
    if expected == 1:
        return None
    observed = float((first == second).mean())
    return (observed - expected) / (1 - expected)


def _weighted_mean(values: Sequence[float | None], weights: Sequence[int]) -> float | None:
    """The mean of the values that are defined; None where none is."""
    defined = [(value, weight) for value, weight in zip(values, weights) if value is not None]
    if not defined:
        return None
    total_weight = sum(weight for _, weight in defined)
    return sum(value * weight for value, weight in defined) / total_weight
