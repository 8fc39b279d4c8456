"""What the model says of each example, frozen, so that another thread can read it while the run
goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tailor.run.session import Session
from tailor.task import Task


@dataclass(frozen=True)
class FrozenPredictions:
    """Of every example since a round was opened; after a restart, until the next one, of those
    asked before.
    """

    version: str
    task: Task
    asked: Mapping[str, np.ndarray]
    probs: np.ndarray | None  # (N, K)
    position: Mapping[str, int]
    holdout: frozenset[str]  # nothing is said of these: they measure the model

    @classmethod
    def of(cls, session: Session, probs: np.ndarray | None = None) -> FrozenPredictions:
        """probs: where a model was trained outside a round."""
        run_state = session.run_state
        version = f"TAILOR round {len(run_state.rounds) - 1}" if run_state.rounds else "TAILOR"
        if probs is not None:
            version += f", {run_state.answered()} labels"
        ids = run_state.ids
        return cls(
            version,
            run_state.task,
            {ids[p]: row for p, row in run_state.predicted.items()},
            session.probs if probs is None else probs,
            dict(run_state.position),
            frozenset(ids[p] for p in np.flatnonzero(run_state.in_holdout).tolist()),
        )

    def __call__(self, example: str) -> np.ndarray | None:
        """(K,) probabilities, or None."""
        if example in self.holdout:
            return None
        at = self.position.get(example)
        if self.probs is not None and at is not None and at < len(self.probs):
            return self.probs[at]
        return self.asked.get(example)
