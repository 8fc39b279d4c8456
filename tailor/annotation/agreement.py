"""How far annotators agree on the examples that several of them answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tailor.run.consensus import Vote
from tailor.task import MultiClass, Task

#: an annotator's answer to one example, as class indices
Answer = tuple[int, ...]
#: the answers of two annotators to the same examples
AnswerPairs = list[tuple[Answer, Answer]]
#: the names of two annotators, in the order of the alphabet
NamePair = tuple[str, str]
#: what is told of one pair, or of all of them together
Figures = dict[str, Any]


def agreement(task: Task, votes: Iterable[dict[str, Vote]]) -> dict[str, Any]:
    """Agreement of each pair of annotators, and over all pairs.

    votes: for each example, the votes by annotator; votes that skip are left out.

    Returns {"overall": figures, "pairs": [{"a": name, "b": name, **figures}, ...]}, where figures
    are "n" (examples that both answered), "equal" (share of equal answers) and "kappa" (Cohen's).
    In a multi-label task "classes" has a kappa for each class, and "kappa" is their mean. Kappa
    over all is the mean of the pairs', weighted by their examples. It is None where it is not
    defined: no examples, or both always gave the same class.
    """
    by_pair = _answers_by_pair(votes)
    pairs: list[Figures] = []
    for names, answers in sorted(by_pair.items()):
        first, second = names
        figures = {
            "a": first,
            "b": second,
            **_figures(task, answers),
        }
        pairs.append(figures)
    return {
        "overall": _overall(task, pairs),
        "pairs": pairs,
    }


def _overall(task: Task, pairs: Sequence[Figures]) -> Figures:
    """The figures over all pairs, each pair weighted by its examples."""
    examples = [pair["n"] for pair in pairs]
    equal_shares = [pair["equal"] for pair in pairs]
    kappas = [pair["kappa"] for pair in pairs]
    overall: Figures = {
        "n": sum(examples),
        "equal": _weighted_mean(equal_shares, examples),
        "kappa": _weighted_mean(kappas, examples),
    }
    if isinstance(task, MultiClass):
        return overall
    class_kappas: dict[str, float | None] = {}
    for name in task.classes:
        kappas_of_class = [pair["classes"][name] for pair in pairs]
        class_kappas[name] = _weighted_mean(kappas_of_class, examples)
    overall["classes"] = class_kappas
    return overall


def _answers_by_pair(votes: Iterable[dict[str, Vote]]) -> dict[NamePair, AnswerPairs]:
    by_pair: dict[NamePair, AnswerPairs] = {}
    for votes_on_example in votes:
        answers = _without_skips(votes_on_example)
        # Sorted, so that two annotators always form the same pair.
        names = sorted(answers)
        for pair in combinations(names, 2):
            first, second = pair
            answers_of_pair = by_pair.setdefault(pair, [])
            answers_of_pair.append((answers[first], answers[second]))
    return by_pair


def _without_skips(votes: dict[str, Vote]) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    for name, vote in votes.items():
        if vote.classes is not None:
            answers[name] = vote.classes
    return answers


def _figures(task: Task, answers: AnswerPairs) -> Figures:
    """The figures of one pair, which has answered at least one example."""
    count = len(answers)
    equal = 0
    for first, second in answers:
        if first == second:
            equal += 1
    figures: Figures = {
        "n": count,
        "equal": equal / count,
    }
    if isinstance(task, MultiClass):
        figures["kappa"] = _multi_class_kappa(answers)
        return figures
    kappas = _class_kappas(task, answers)
    figures["kappa"] = _mean_of_defined(kappas.values())
    figures["classes"] = kappas
    return figures


def _multi_class_kappa(answers: AnswerPairs) -> float | None:
    # An answer of a multi-class task is a single class.
    first_classes = [first[0] for first, _ in answers]
    second_classes = [second[0] for _, second in answers]
    return cohen_kappa(np.array(first_classes), np.array(second_classes))


def _class_kappas(task: Task, answers: AnswerPairs) -> dict[str, float | None]:
    """The kappa of each class by name, of a multi-label task."""
    first_answers = [first for first, _ in answers]
    second_answers = [second for _, second in answers]
    kappas: dict[str, float | None] = {}
    for k, name in enumerate(task.classes):
        # Each class is a question of its own, with the answers 0 and 1.
        kappas[name] = cohen_kappa(_gave_class(k, first_answers), _gave_class(k, second_answers))
    return kappas


def _mean_of_defined(kappas: Iterable[float | None]) -> float | None:
    defined = []
    for kappa in kappas:
        if kappa is not None:
            defined.append(kappa)
    if not defined:
        return None
    return float(np.mean(defined))


def _gave_class(k: int, answers: Sequence[Answer]) -> np.ndarray:
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
    beyond_chance = observed - expected
    return beyond_chance / (1 - expected)


def _weighted_mean(values: Sequence[float | None], weights: Sequence[int]) -> float | None:
    """The mean of the values that are defined; None where none is."""
    total = 0.0
    total_weight = 0
    for value, weight in zip(values, weights):
        if value is None:
            continue
        total += value * weight
        total_weight += weight
    # A pair has at least one example, so no weight means that no value is defined.
    if not total_weight:
        return None
    return total / total_weight
