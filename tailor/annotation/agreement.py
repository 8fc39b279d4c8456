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
    pairs: list[dict[str, Any]] = []
    by_pair = _answers_by_pair(votes)
    for (first, second), answers in sorted(by_pair.items()):
        figures = _figures(task, answers)
        pairs.append({"a": first, "b": second, **figures})
    examples = [pair["n"] for pair in pairs]
    equal_shares = [pair["equal"] for pair in pairs]
    kappas = [pair["kappa"] for pair in pairs]
    overall: dict[str, Any] = {
        "n": sum(examples),
        "equal": _weighted_mean(equal_shares, examples),
        "kappa": _weighted_mean(kappas, examples),
    }
    if not isinstance(task, MultiClass):
        class_kappas: dict[str, float | None] = {}
        for name in task.classes:
            kappas_of_class = [pair["classes"][name] for pair in pairs]
            class_kappas[name] = _weighted_mean(kappas_of_class, examples)
        overall["classes"] = class_kappas
    return {"overall": overall, "pairs": pairs}


def _answers_by_pair(votes: Iterable[dict[str, Vote]]) -> dict[tuple[str, str], AnswerPairs]:
    by_pair: dict[tuple[str, str], AnswerPairs] = {}
    for votes_on_example in votes:
        answers: dict[str, tuple[int, ...]] = {}
        for name, vote in votes_on_example.items():
            if vote.classes is not None:
                answers[name] = vote.classes
        # Sorted, so that two annotators always form the same pair.
        for first, second in combinations(sorted(answers), 2):
            answers_of_pair = by_pair.setdefault((first, second), [])
            answers_of_pair.append((answers[first], answers[second]))
    return by_pair


def _figures(task: Task, answers: AnswerPairs) -> dict[str, Any]:
    count = len(answers)
    equal = 0
    for first, second in answers:
        if first == second:
            equal += 1
    figures: dict[str, Any] = {
        "n": count,
        "equal": equal / count,
    }
    first_answers = [first for first, _ in answers]
    second_answers = [second for _, second in answers]
    if isinstance(task, MultiClass):
        first_classes = np.array([answer[0] for answer in first_answers])
        second_classes = np.array([answer[0] for answer in second_answers])
        figures["kappa"] = cohen_kappa(first_classes, second_classes)
        return figures
    kappas: dict[str, float | None] = {}
    for k, name in enumerate(task.classes):
        # Each class is a question of its own, with the answers 0 and 1.
        kappas[name] = cohen_kappa(
            _gave_class(k, first_answers),
            _gave_class(k, second_answers),
        )
    defined = [kappa for kappa in kappas.values() if kappa is not None]
    figures["kappa"] = None
    if defined:
        figures["kappa"] = float(np.mean(defined))
    figures["classes"] = kappas
    return figures


def _gave_class(k: int, answers: Sequence[tuple[int, ...]]) -> np.ndarray:
    """(n,) int64: 1 for each answer with the class k, else 0."""
    gave_class = [k in answer for answer in answers]
    return np.array(gave_class, np.int64)


def cohen_kappa(first: np.ndarray, second: np.ndarray) -> float | None:
    """Cohen's kappa of two annotators' classes, first and second (n,) int, or None where it is not
    defined: both gave one and the same class throughout.

    As scikit-learn's cohen_kappa_score, which takes eighty times as long for few examples: a page
    with twenty annotators and a hundred classes needs nineteen thousand of them.
    """
    count = len(first)
    largest = max(first.max(), second.max())
    size = int(largest) + 1
    first_shares = np.bincount(first, minlength=size) / count
    second_shares = np.bincount(second, minlength=size) / count
    expected = float(first_shares @ second_shares)
    if expected == 1:
        return None
    is_equal = first == second
    observed = float(is_equal.mean())
    return (observed - expected) / (1 - expected)


def _weighted_mean(values: Sequence[float | None], weights: Sequence[int]) -> float | None:
    """The mean of the values that are defined; None where none is."""
    total = 0.0
    total_weight = 0
    for value, weight in zip(values, weights):
        if value is not None:
            total += value * weight
            total_weight += weight
    # A pair has at least one example, so no weight means that no value is defined.
    if not total_weight:
        return None
    return total / total_weight
