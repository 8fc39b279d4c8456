"""Between a run and its pool and model: the run has positions of its own, since a pool may list its
entries anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.models.base import Model, ProgressCallback, as_array
from tailor.models.uninformed import uninformed_probability
from tailor.pools.base import Pool
from tailor.run.holdout import HoldoutEstimate, estimate
from tailor.run.state import RunState
from tailor.task import Task

#: where an example stands in the pool that has vanished from it
NOT_IN_POOL = -1


class ModelRunner:
    """Trains the model and predicts with it by the run's positions. An entry that has vanished gets
    a prediction that says nothing.
    """

    def __init__(self, pool: Pool, model: Model, progress: ProgressCallback) -> None:
        self.pool = pool
        self.model = model
        self._progress = progress
        # (N,) where each of the run's examples stands in the pool, or NOT_IN_POOL
        self._pool_index = np.empty(0, np.int64)

    def connect(self, ids: list[str]) -> None:
        """Find the run's ids, by position, in the pool as it lists them now."""
        listed = list(self.pool.ids)
        if listed == ids:
            self._pool_index = np.arange(len(ids))
        else:
            index_of = {example_id: index for index, example_id in enumerate(listed)}
            indices = [index_of.get(example_id, NOT_IN_POOL) for example_id in ids]
            self._pool_index = np.array(indices, np.int64)
        self.model.run_positions = self._pool_index[self.is_present]

    @property
    def is_present(self) -> np.ndarray:
        """(N,) bool: which of the run's examples are in the pool today."""
        return self._pool_index != NOT_IN_POOL

    def in_pool(self, positions: list[int]) -> list[int]:
        """Where these examples, which are present, stand in the pool."""
        indices: list[int] = self._pool_index[positions].tolist()
        return indices

    # ------------------------------------------------------------------ training

    def prepare(self) -> dict[int, str]:
        """Let the model read the pool -> the run's positions that can't be read, with the reason.
        Entries that haven't joined the run are left out.
        """
        unreadable = self.model.prepare(self._progress)
        if not unreadable:
            return {}
        position_of = {
            index: position
            for position, index in enumerate(self._pool_index.tolist())
            if index in unreadable
        }
        return {
            position_of[index]: reason
            for index, reason in unreadable.items()
            if index in position_of
        }

    def fit(self, positions: np.ndarray, labels: np.ndarray, seed: int) -> None:
        """Train the model on labels (n, K) of positions (n,) that are present."""
        indices = self._pool_index[positions]
        self.model.fit(indices, labels, seed=seed, progress=self._progress)

    def can_train(self, run_state: RunState) -> bool:
        """Whether anything is labelled that is still there to learn from."""
        return bool(self.is_present[run_state.label_table.labelled].any())

    def train(self, run_state: RunState, number: int) -> HoldoutEstimate | None:
        """Fit the model of round `number` on all answers but the hold-out's -> how it does on the
        hold-out; None where nothing of it is labelled.
        """
        table = run_state.label_table
        is_present = self.is_present
        labelled = table.labelled
        labelled = labelled[is_present[labelled]]
        seeds = np.random.SeedSequence((run_state.settings.seed, number))
        seed = int(seeds.generate_state(1, np.uint32)[0])
        self.fit(labelled, table.labels_of(labelled), seed)
        holdout = table.holdout_labelled
        holdout = holdout[is_present[holdout]]
        if len(holdout) == 0:
            return None
        probs, _ = self.predict(run_state.task, holdout)
        return estimate(run_state.task, table.labels_of(holdout), probs)

    # ------------------------------------------------------------------ predictions

    def predict(self, task: Task, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities (n, K), features (n, d)) of positions (n,).

        Raises InputError where the model gives arrays of other shapes.
        """
        is_present = self.is_present[positions]
        indices = self._pool_index[positions[is_present]]
        prediction = self.model.predict(indices, self._progress)
        count = len(indices)
        probs_fit = prediction.probs.shape == (count, task.size)
        if not probs_fit or prediction.features.shape[:1] != (count,):
            raise InputError(
                f"{type(self.model).__name__} gave probabilities of shape "
                f"{prediction.probs.shape} and features of shape {prediction.features.shape} for "
                f"{count} examples: {(count, task.size)} and ({count}, d) are needed"
            )
        if is_present.all():
            return prediction.probs, prediction.features
        probs = _uninformed(task, len(positions))
        features = np.zeros((len(positions), prediction.features.shape[1]), np.float32)
        probs[is_present] = prediction.probs
        features[is_present] = prediction.features
        return probs, features

    def predict_all(self, task: Task) -> tuple[Any, Any]:
        """As predict, of all of the run's examples; arrays, or what Learner.open_round takes in
        their place.
        """
        return self.predict(task, np.arange(len(self._pool_index)))

    def finetune(self, run_state: RunState, seed: int) -> Any:
        """Weak supervision's fine-tuning: (soft targets (N, K), epochs) -> probabilities (N, K)."""

        def tune(targets: Any, epochs: int) -> np.ndarray:
            targets = np.asarray(as_array(targets), np.float32)
            is_present = self.is_present
            indices = self._pool_index[is_present]
            pool_targets = _uninformed(run_state.task, len(self.pool))
            pool_targets[indices] = targets[is_present]
            tuned = as_array(self.model.finetune(pool_targets, epochs, seed=seed))
            probs = targets.copy()
            probs[is_present] = tuned[indices]
            return probs

        return tune

    def dropout(
        self, run_state: RunState, passes: int, seed: int
    ) -> Callable[[], Iterator[np.ndarray]]:
        """Bald's passes: () -> probabilities (N, K) of each."""

        def all_passes() -> Iterator[np.ndarray]:
            is_present = self.is_present
            indices = self._pool_index[is_present]
            for drawn in self.model.dropout(passes, seed=seed):
                probs = _uninformed(run_state.task, len(is_present))
                probs[is_present] = as_array(drawn)[indices]
                yield probs

        return all_passes


def _uninformed(task: Task, count: int) -> np.ndarray:
    """(count, K) float32: probabilities that say nothing."""
    return np.full((count, task.size), uninformed_probability(task), np.float32)
