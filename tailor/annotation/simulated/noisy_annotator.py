"""An annotator who errs."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from tailor.annotation.simulated.known_labels import Known
from tailor.errors import InputError
from tailor.task import MultiClass, Task


class Noisy:
    """Like Known, but wrong at a rate: another class at random, or each class of a subset flipped.

    Whether and how it errs depends on the seed and the id alone, so asking twice gives the same
    mistake.
    """

    def __init__(self, known: Known, task: Task, rate: float, seed: int = 0) -> None:
        if not 0 <= rate <= 1:
            raise InputError(f"noise is {rate}: it must lie in [0, 1]")
        self._known = known
        self._task = task
        self._rate = rate
        self._seed = seed

    def answer(self, ids: Sequence[str]) -> dict[str, Any]:
        return {one: self._err(one, label) for one, label in self._known.answer(ids).items()}

    def _err(self, one: str, label: Any) -> Any:
        if label is None:
            return None
        digest = blake2b(one.encode(), digest_size=8, key=self._seed.to_bytes(8, "little")).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "little"))
        true = self._task.encode([label])[0] > 0.5
        if isinstance(self._task, MultiClass):
            if rng.random() >= self._rate:
                return label
            others = np.flatnonzero(~true)
            return int(others[rng.integers(len(others))])
        return np.flatnonzero(true ^ (rng.random(len(true)) < self._rate)).tolist()
