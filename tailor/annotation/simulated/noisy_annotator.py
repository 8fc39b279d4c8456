"""An annotator who errs."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from tailor.annotation.simulated.known_labels import KnownLabels
from tailor.errors import InputError
from tailor.task import MultiClass, Task


class NoisyAnnotator:
    """Like KnownLabels, but wrong at a rate: another class at random, or in a multi-label task each
    class flipped at that rate.

    Whether and how it errs depends on the seed and the id alone, so asking twice gives the same
    mistake.
    """

    def __init__(
        self,
        known: KnownLabels,
        task: Task,
        rate: float,
        seed: int = 0,
    ) -> None:
        if not 0 <= rate <= 1:
            raise InputError(f"noise is {rate}: it must lie in [0, 1]")
        self._known_labels = known
        self._task = task
        self._rate = rate
        self._seed = seed

    def answer(self, ids: Sequence[str]) -> dict[str, Any]:
        answers = self._known_labels.answer(ids)
        for id, label in answers.items():
            if label is not None:
                answers[id] = self._answer_with_mistakes(id, label)
        return answers

    def _answer_with_mistakes(self, id: str, label: Any) -> Any:
        rng = self._generator(id)
        (encoded,) = self._task.encode([label])
        has_class = encoded > 0.5
        if not isinstance(self._task, MultiClass):
            return self._flipped(has_class, rng)
        if rng.random() >= self._rate:
            return label
        wrong_classes = np.flatnonzero(~has_class)
        choice = rng.integers(len(wrong_classes))
        return int(wrong_classes[choice])

    def _flipped(self, has_class: np.ndarray, rng: np.random.Generator) -> list[int]:
        """The classes of a multi-label answer, each flipped at the rate. has_class (K,) bool"""
        draws = rng.random(len(has_class))
        is_flipped = draws < self._rate
        answered = has_class ^ is_flipped
        classes: list[int] = np.flatnonzero(answered).tolist()
        return classes

    def _generator(self, id: str) -> np.random.Generator:
        # Not hash(), which differs from process to process.
        key = self._seed.to_bytes(8, "little")
        keyed_hash = blake2b(id.encode(), digest_size=8, key=key)
        seed = int.from_bytes(keyed_hash.digest(), "little")
        return np.random.default_rng(seed)
