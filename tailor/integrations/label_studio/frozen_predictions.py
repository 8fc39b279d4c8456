"""The model's predictions for all examples, frozen, so that another thread can read them while the
run goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tailor.run.session import Session
from tailor.run.state import RunState
from tailor.task import Task


@dataclass(frozen=True)
class FrozenPredictions:
    """Predictions of one version of the model.

    After a restart, until the next round opens, only the examples asked before have one.

    version        names the model in Label Studio
    task           the classes at that time
    when_asked     by example: (K,) the probabilities at the time when it was asked
    probabilities  (N, K) by position; None after a restart
    position       by example
    holdout        examples for which there is no prediction: they measure the model
    """

    version: str
    task: Task
    when_asked: Mapping[str, np.ndarray]
    probabilities: np.ndarray | None
    position: Mapping[str, int]
    holdout: frozenset[str]

    @classmethod
    def of(
        cls, session: Session, trained_probabilities: np.ndarray | None = None
    ) -> FrozenPredictions:
        """The predictions of a session now.

        trained_probabilities  (N, K) of a model that was trained outside a round
        """
        run_state = session.run_state
        version = "TAILOR"
        if run_state.rounds:
            version = f"TAILOR round {len(run_state.rounds) - 1}"
        probabilities = session.probs
        if trained_probabilities is not None:
            version += f", {run_state.answered()} labels"
            probabilities = trained_probabilities
        return cls(
            version=version,
            task=run_state.task,
            when_asked=_predictions_when_asked(run_state),
            probabilities=probabilities,
            # A copy: the run's own grows while another thread reads this one.
            position=dict(run_state.position),
            holdout=_holdout_ids(run_state),
        )

    def get(self, example: str) -> np.ndarray | None:
        """(K,) probabilities of an example; None where there is no prediction."""
        if example in self.holdout:
            return None
        position = self.position.get(example)
        # What was said when it was asked is better than nothing.
        if self.probabilities is None or position is None:
            return self.when_asked.get(example)
        if position >= len(self.probabilities):  # it joined later
            return self.when_asked.get(example)
        row: np.ndarray = self.probabilities[position]
        return row


def _predictions_when_asked(run_state: RunState) -> dict[str, np.ndarray]:
    """By example: (K,) the probabilities at the time when it was asked."""
    predictions = run_state.label_table.picks.predictions
    positions = predictions.positions
    rows = predictions.get(positions)
    when_asked = {}
    for position, row in zip(positions.tolist(), rows):
        example = run_state.ids[position]
        when_asked[example] = row
    return when_asked


def _holdout_ids(run_state: RunState) -> frozenset[str]:
    is_holdout = run_state.label_table.availability.for_holdout
    positions = np.flatnonzero(is_holdout)
    ids = [run_state.ids[position] for position in positions.tolist()]
    return frozenset(ids)
