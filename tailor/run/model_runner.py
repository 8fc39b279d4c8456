"""Between a run and its pool and model: the run has positions of its own, since a pool may list its
entries anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.models.base import Model, ProgressCallback, as_array
from tailor.models.uninformed import uninformed_probability
from tailor.pools.base import Pool
from tailor.run.holdout import HoldoutEstimate, estimate
from tailor.run.state import RunState
from tailor.task import Task


class ModelRunner:
    """The model seen from the run's positions. An entry that has vanished gets a prediction that
    says nothing.
    """

    def __init__(self, pool: Pool, model: Model, progress: ProgressCallback) -> None:
        self.pool = pool
        self.model = model
        self._progress = progress
        self._at = np.empty(
            0, np.int64
        )  # (N,) where each of the run's examples stands in the pool, or -1

    def connect(self, ids: list[str]) -> None:
        """ids: the run's, by position."""
        listed = list(self.pool.ids)
        if listed == ids:
            self._at = np.arange(len(ids))
        else:
            place = {one: at for at, one in enumerate(listed)}
            self._at = np.array([place.get(one, -1) for one in ids], np.int64)
        self.model.known = self._at[self.there]

    @property
    def there(self) -> np.ndarray:
        """(N,) bool: which of the run's examples are in the pool today."""
        return self._at >= 0

    def in_pool(self, positions: list[int]) -> list[int]:
        """Where these examples, which are there, stand in the pool."""
        found: list[int] = self._at[positions].tolist()
        return found

    def prepare(self) -> dict[int, str]:
        """The run's positions that can't be read, with the reason. Entries that haven't joined the
        run are left out.
        """
        unreadable = self.model.prepare(self._progress)
        if not unreadable:
            return {}
        mine = {
            int(at): position for position, at in enumerate(self._at.tolist()) if at in unreadable
        }
        return {mine[at]: reason for at, reason in unreadable.items() if at in mine}

    def fit(self, positions: np.ndarray, labels: np.ndarray, seed: int) -> None:
        self.model.fit(self._at[positions], labels, seed=seed, progress=self._progress)

    def can_train(self, run_state: RunState) -> bool:
        """Whether anything is labelled that is still there to learn from."""
        return bool(self.there[run_state.label_table.labelled].any())

    def train(self, run_state: RunState, number: int) -> HoldoutEstimate | None:
        """Fit the model of a round on all answers but the hold-out's -> how it does on the
        hold-out.
        """
        there = self.there
        label_table = run_state.label_table
        labelled = label_table.labelled[there[label_table.labelled]]
        holdout = label_table.holdout_labelled[there[label_table.holdout_labelled]]
        seed = int(
            np.random.SeedSequence((run_state.settings.seed, number)).generate_state(1, np.uint32)[
                0
            ]
        )
        self.fit(labelled, label_table.labels_of(labelled), seed)
        if len(holdout) == 0:
            return None
        return estimate(
            run_state.task,
            label_table.labels_of(holdout),
            self.predict(run_state.task, holdout)[0],
        )

    def predict(self, task: Task, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities (n, K), features (n, d))"""
        there = self.there[positions]
        found = self.model.predict(self._at[positions[there]], self._progress)
        wanted = (int(there.sum()), task.size)
        if found.probs.shape != wanted or found.features.shape[:1] != wanted[:1]:
            raise InputError(
                f"{type(self.model).__name__} gave probabilities of shape {found.probs.shape} "
                "and features of shape "
                f"{found.features.shape} for {wanted[0]} examples: {wanted} and ({wanted[0]}, d) "
                "are needed"
            )
        if there.all():
            return found.probs, found.features
        probs = np.full((len(positions), task.size), uninformed_probability(task), np.float32)
        features = np.zeros((len(positions), found.features.shape[1]), np.float32)
        probs[there], features[there] = found.probs, found.features
        return probs, features

    def predict_all(self, task: Task) -> tuple[Any, Any]:
        """As predict, of all of the run's examples; arrays, or what Loop.open_round takes in their
        place.
        """
        return self.predict(task, np.arange(len(self._at)))

    def finetune(self, run_state: RunState, seed: int) -> Any:
        """Weak supervision's fine-tuning: (soft targets (N, K), epochs) -> probabilities (N, K)."""

        def tune(targets: Any, epochs: int) -> np.ndarray:
            given = np.asarray(targets.cpu() if hasattr(targets, "cpu") else targets, np.float32)
            in_pool = np.full(
                (len(self.pool), given.shape[1]), uninformed_probability(run_state.task), np.float32
            )
            in_pool[self._at[self.there]] = given[self.there]
            probs = given.copy()
            probs[self.there] = as_array(self.model.finetune(in_pool, epochs, seed=seed))[
                self._at[self.there]
            ]
            return probs

        return tune

    def dropout(self, run_state: RunState, passes: int, seed: int) -> Any:
        """Bald's passes: () -> probabilities (N, K) of each."""

        def all_passes() -> Iterator[np.ndarray]:
            for given in self.model.dropout(passes, seed=seed):
                found = as_array(given)
                probs = np.full(
                    (len(self._at), found.shape[1]),
                    uninformed_probability(run_state.task),
                    np.float32,
                )
                probs[self.there] = found[self._at[self.there]]
                yield probs

        return all_passes
