"""How far annotators agree on the examples that several of them answered."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np

from tailor.run.consensus import Ballot
from tailor.task import MultiClass, Task

#: the answers of two people to the same examples
Pairs = list[tuple[tuple[int, ...], tuple[int, ...]]]


def agreement(task: Task, votes: Iterable[dict[str, Ballot]]) -> dict[str, Any]:
    """votes: the ballots on each example; skipped ones are left out.

    For each pair of people and for all: how many examples both answered, the share of equal
    answers, and Cohen's kappa; in a multi-label task kappa for each class, and `kappa` is their
    mean. Kappa over all is the mean of the pairs', weighted by their examples. None where it is not
    defined: no examples, or both always gave the same.
    """
    by_pair: dict[tuple[str, str], Pairs] = {}
    for ballots in votes:
        given = sorted(
            (name, ballot.classes) for name, ballot in ballots.items() if ballot.classes is not None
        )
        for (one, mine), (other, theirs) in combinations(given, 2):
            by_pair.setdefault((one, other), []).append((mine, theirs))
    pairs = [
        {"a": one, "b": other, **_figures(task, both)}
        for (one, other), both in sorted(by_pair.items())
    ]
    total = sum(pair["n"] for pair in pairs)
    overall: dict[str, Any] = {
        "n": total,
        "equal": sum(pair["equal"] * pair["n"] for pair in pairs) / total if total else None,
        "kappa": _weighted([(pair["kappa"], pair["n"]) for pair in pairs]),
    }
    if not isinstance(task, MultiClass):
        overall["classes"] = {
            name: _weighted([(pair["classes"][name], pair["n"]) for pair in pairs])
            for name in task.classes
        }
    return {"overall": overall, "pairs": pairs}


def _figures(task: Task, both: Pairs) -> dict[str, Any]:
    figures: dict[str, Any] = {"n": len(both), "equal": sum(a == b for a, b in both) / len(both)}
    if isinstance(task, MultiClass):
        a, b = (np.array([answers[side][0] for answers in both]) for side in (0, 1))
        return figures | {"kappa": cohen_kappa(a, b)}
    found: dict[str, float | None] = {}
    for k, name in enumerate(task.classes):
        a, b = (np.array([k in answers[side] for answers in both], np.int64) for side in (0, 1))
        found[name] = cohen_kappa(a, b)
    defined = [kappa for kappa in found.values() if kappa is not None]
    return figures | {"kappa": float(np.mean(defined)) if defined else None, "classes": found}


def cohen_kappa(a: np.ndarray, b: np.ndarray) -> float | None:
    """a, b (n,) int: two people's classes. (observed - expected) / (1 - expected) agreement."""
    size = int(max(a.max(), b.max())) + 1
    expected = float(
        (np.bincount(a, minlength=size) / len(a)) @ (np.bincount(b, minlength=size) / len(b))
    )
    return None if expected == 1 else (float((a == b).mean()) - expected) / (1 - expected)


def _weighted(values: list[tuple[float | None, int]]) -> float | None:
    known = [(value, n) for value, n in values if value is not None]
    return sum(value * n for value, n in known) / sum(n for _, n in known) if known else None
