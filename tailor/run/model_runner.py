"""Between a run and its pool and model: the run has positions of its own, since a pool may list its
entries anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tailor.common.linear_head import LinearHead
from tailor.errors import InputError
from tailor.models.base import Model, Prediction, ProgressCallback, as_array
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

    def __init__(
        self,
        pool: Pool,
        model: Model,
        progress: ProgressCallback,
    ) -> None:
        self.pool = pool
        self.model = model
        self._progress = progress
        # (N,) where each of the run's examples stands in the pool, or NOT_IN_POOL
        self._pool_index = np.empty(0, np.int64)

    def connect(self, ids: list[str]) -> None:
        """Find the run's ids, by position, in the pool as it lists them now."""
        self._pool_index = self._find_in_pool(ids)
        self.model.run_positions = self._present_indices

    def _find_in_pool(self, ids: list[str]) -> np.ndarray:
        """(N,) where each of the ids stands in the pool, or NOT_IN_POOL."""
        listed = list(self.pool.ids)
        # Most often nothing has changed, and a list of millions needs no dictionary.
        if listed == ids:
            return np.arange(len(ids))
        index_of = {}
        for index, example_id in enumerate(listed):
            index_of[example_id] = index
        indices = []
        for example_id in ids:
            index = index_of.get(example_id, NOT_IN_POOL)
            indices.append(index)
        return np.array(indices, np.int64)

    @property
    def is_present(self) -> np.ndarray:
        """(N,) bool: which of the run's examples are in the pool today."""
        return self._pool_index != NOT_IN_POOL

    @property
    def _present_indices(self) -> np.ndarray:
        """Where the run's examples stand in the pool, of those that are in it today."""
        return self._pool_index[self.is_present]

    def _locate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of positions (n,): where those that are present stand in the pool, and (n,) bool which
        they are.
        """
        all_indices = self._pool_index[positions]
        is_present = all_indices != NOT_IN_POOL
        return all_indices[is_present], is_present

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
        # Most often all can be read, and no dictionary is needed.
        if not unreadable:
            return {}
        position_of = {}
        for position, index in enumerate(self._pool_index.tolist()):
            if index in unreadable:
                position_of[index] = position
        # In the order of the model's list, in which they are recorded.
        reasons = {}
        for index, reason in unreadable.items():
            if index in position_of:
                position = position_of[index]
                reasons[position] = reason
        return reasons

    def fit(
        self,
        positions: np.ndarray,
        labels: np.ndarray,
        seed: int,
    ) -> None:
        """Train the model on labels (n, K) of positions (n,) that are present."""
        indices = self._pool_index[positions]
        self.model.fit(
            indices,
            labels,
            seed=seed,
            progress=self._progress,
        )

    def first_features(self) -> Callable[[np.ndarray], np.ndarray] | None:
        """positions (n,) -> features (n, d), before the model has learned anything; None where it
        has none. Of an entry that has vanished they are 0.
        """
        if not self.model.has_first_features:
            model_name = type(self.model).__name__
            self.model.say(
                f"the first batch is random: {model_name} has no features before it is trained"
            )
            return None

        def rows(positions: np.ndarray) -> np.ndarray:
            indices, is_present = self._locate(positions)
            features = self.model.first_features(indices)
            return _with_zeros(features, is_present)

        return rows

    def can_train(self, run_state: RunState) -> bool:
        """Whether anything is labelled that is still there to learn from."""
        labelled = run_state.label_table.labelled
        present = self._present(labelled)
        return len(present) > 0

    def train(self, run_state: RunState, number: int) -> HoldoutEstimate | None:
        """Fit the model of round `number` on all answers but the hold-out's -> how it does on the
        hold-out; None where nothing of it is labelled.
        """
        table = run_state.label_table
        task = run_state.task
        labelled = self._present(table.labelled)
        labels = table.labels_of(labelled)
        seed = _round_seed(run_state.settings.seed, number)
        self.fit(labelled, labels, seed)
        holdout = self._present(table.holdout_labelled)
        if len(holdout) == 0:
            return None
        holdout_labels = table.labels_of(holdout)
        probs, _ = self.predict(task, holdout)
        return estimate(task, holdout_labels, probs)

    def _present(self, positions: np.ndarray) -> np.ndarray:
        """Those of the positions (n,) whose examples are in the pool today."""
        _, is_present = self._locate(positions)
        present: np.ndarray = positions[is_present]
        return present

    # ------------------------------------------------------------------ predictions

    def predict(self, task: Task, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities (n, K), features (n, d)) of positions (n,).

        Raises InputError where the model gives arrays of other shapes.
        """
        indices, is_present = self._locate(positions)
        prediction = self.model.predict(indices, self._progress)
        self._check_shapes(prediction, len(indices), task)
        # Most often nothing has vanished, and nothing of a large pool has to be copied.
        if is_present.all():
            return prediction.probs, prediction.features
        probs = uninformed_rows(task, len(positions))
        probs[is_present] = prediction.probs
        # In float32, whatever the model gave.
        features = prediction.features.astype(np.float32, copy=False)
        return probs, _with_zeros(features, is_present)

    def _check_shapes(
        self,
        prediction: Prediction,
        count: int,
        task: Task,
    ) -> None:
        """Raises InputError where a prediction is not one of `count` examples."""
        probs_shape = prediction.probs.shape
        features_shape = prediction.features.shape
        needed_shape = (count, task.size)
        has_right_probs = probs_shape == needed_shape
        # Of the features any width will do.
        has_right_features = features_shape[:1] == (count,)
        if has_right_probs and has_right_features:
            return
        model_name = type(self.model).__name__
        raise InputError(
            f"{model_name} gave probabilities of shape {probs_shape} "
            f"and features of shape {features_shape} "
            f"for {count} examples: {needed_shape} and ({count}, d) are needed"
        )

    def predict_all(self, task: Task) -> tuple[Any, Any]:
        """As predict, of all of the run's examples; arrays, or what Learner.open_round takes in
        their place.
        """
        count = len(self._pool_index)
        positions = np.arange(count)
        return self.predict(task, positions)

    def finetune(self, run_state: RunState, seed: int) -> Any:
        """Weak supervision's fine-tuning: (soft targets (N, K), epochs) -> probabilities (N, K)."""

        def tune(targets: Any, epochs: int) -> np.ndarray:
            targets = as_array(targets)
            targets = np.asarray(targets, np.float32)
            is_present = self.is_present
            indices = self._present_indices
            # Of entries that haven't joined the run no target is known.
            pool_targets = uninformed_rows(run_state.task, len(self.pool))
            pool_targets[indices] = targets[is_present]
            tuned = self.model.finetune(pool_targets, epochs, seed=seed)
            pool_probs = as_array(tuned)
            # What has vanished keeps its target: the model says nothing of it.
            probs = targets.copy()
            probs[is_present] = pool_probs[indices]
            return probs

        return tune

    def dropout(
        self,
        run_state: RunState,
        passes: int,
        seed: int,
    ) -> Callable[[], Iterator[np.ndarray]]:
        """Bald's passes: () -> probabilities (N, K) of each."""

        def all_passes() -> Iterator[np.ndarray]:
            is_present = self.is_present
            indices = self._present_indices
            all_drawn = self.model.dropout(passes, seed=seed)
            for drawn in all_drawn:
                pool_probs = as_array(drawn)
                probs = uninformed_rows(run_state.task, len(is_present))
                probs[is_present] = pool_probs[indices]
                yield probs

        return all_passes

    def linear_head(self) -> LinearHead | None:
        """The last layer of the trained model, where it has one that is known."""
        return self.model.linear_head()

    def boundary_distances(self) -> Callable[[np.ndarray, int], np.ndarray] | None:
        """(positions (n,), steps) -> distances (n,) through the network; None where the model has
        no gradients. Of an entry that has vanished the distance is infinite.
        """
        if not self.model.can_measure_boundaries:
            return None

        def measure(positions: np.ndarray, steps: int) -> np.ndarray:
            indices, is_present = self._locate(positions)
            distances = np.full(len(positions), np.inf)
            distances[is_present] = self.model.boundary_distances(indices, steps)
            return distances

        return measure


def _round_seed(run_seed: int, number: int) -> int:
    """By the round's number, so that a round that is gone through again has the same model."""
    sequence = np.random.SeedSequence((run_seed, number))
    (seed,) = sequence.generate_state(1, np.uint32)
    return int(seed)


def _with_zeros(features: np.ndarray, is_present: np.ndarray) -> np.ndarray:
    """features (m, d) of the m examples that are present -> (n, d), 0 for those that are not."""
    if is_present.all():
        return features
    _, width = features.shape
    shape = (len(is_present), width)
    padded = np.zeros(shape, features.dtype)
    padded[is_present] = features
    return padded


def uninformed_rows(task: Task, count: int) -> np.ndarray:
    """(count, K) float32: probabilities that say nothing."""
    shape = (count, task.size)
    probability = uninformed_probability(task)
    return np.full(shape, probability, np.float32)
