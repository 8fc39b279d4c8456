"""The adversary of comparisons keeps the contract of families, and asks for the surest first."""

from __future__ import annotations

import numpy as np
import pytest

from tailor import MultiClass, MultiLabel
from tailor.selection.array_view import ArrayView
from tailor.testing import check_strategy
from tailor_experiments.comparison.most_certain import MostCertain

TASKS = [MultiClass(4), MultiLabel(4)]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_it_keeps_the_contract_of_families(task):
    check_strategy(MostCertain(), task)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_the_surest_comes_first(task):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), size=50).astype(np.float32)
    certainty = probs.max(1)
    if task.kind == "multi-label":
        certainty = np.abs(2 * probs - 1).mean(1)
    arm = MostCertain().arms(task)[0]
    cursor = arm.open(ArrayView(task, probs), 1, rng)
    assert cursor.take() == certainty.argmax()
