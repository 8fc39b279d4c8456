"""Small contests and a round's outcomes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tailor.bandits.base import Contest
from tailor.task import MultiClass, MultiLabel, Task

Maker = Callable[..., Contest]


@pytest.fixture
def contest() -> Maker:
    def make(
        kind: str = "multi-class", arms: int = 3, classes: int = 4, rounds: int = 5, slots: int = 10
    ) -> Contest:
        task: Task = MultiClass(classes) if kind == "multi-class" else MultiLabel(classes)
        names = tuple(f"arm{i}" for i in range(arms))
        families = tuple("even" if i % 2 == 0 else "odd" for i in range(arms))
        return Contest(task, names, families, (-1,) * arms, rounds, slots)

    return make
