"""A run with its pool and its model: examples that join, what can't be read, training and
predictions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tailor.common.checks import check_array, check_function, check_instance, shown
from tailor.errors import InputError, TailorError
from tailor.models.base import Model, ProgressCallback, quiet
from tailor.pools.base import Pool, Unreadable
from tailor.run.answer_writer import AnswerWriter
from tailor.run.event_applier import apply_stored
from tailor.run.events import ExamplesSetAside, ExamplesVanished, FilesSetAside, PoolDescribed
from tailor.run.holdout import HoldoutEstimate
from tailor.run.model_runner import ModelRunner
from tailor.run.settings import Settings
from tailor.selection.class_edits import ClassEdit
from tailor.storage.base import Store
from tailor.task import Task

#: makes the way from a run to its pool and model
MakeModelRunner = Callable[[Pool, Model, ProgressCallback], ModelRunner]


class GivenUp(TailorError):
    """A round that was being prepared is not needed any more. Nothing is lost."""


class ModelSession(AnswerWriter):
    """A run that can train its model, as the examples and classes stand today.

    Long work (reading the pool, training) is done without `lock`; whoever changes the run's state
    holds it. `stage` says what is being done, since `stage_since`, and `step` how far it is.
    """

    def __init__(
        self,
        store: Store,
        pool: Pool,
        model: Model,
        settings: Settings,
        *,
        progress: ProgressCallback = quiet,
        remodel: Callable[[Task], Model] | None = None,
        model_runner: MakeModelRunner = ModelRunner,
    ) -> None:
        """As Session."""
        check_instance(store, Store, "store", "a Store (tailor.storage)")
        check_instance(pool, Pool, "pool", "a Pool (tailor.pools.open_pool makes one)")
        check_instance(model, Model, "model", "a Model (tailor.models.make_model makes one)")
        check_instance(settings, Settings, "settings", "a Settings object")
        check_function(progress, "progress")
        check_function(remodel, "remodel", optional=True)
        check_function(model_runner, "model_runner")
        super().__init__(store, settings)
        _check_same_task(model, self.run_state.task)
        # Reentrant: methods that take it call others that do.
        self.lock = threading.RLock()
        self.pool = pool
        self.model = model
        self._remodel = remodel
        self._show_progress = progress
        self.enter_stage("idle")
        #: whether long work is to be given up
        self.stopping = False
        self._make_model_runner = model_runner
        self.model_runner = model_runner(pool, model, self._progress)

    # ------------------------------------------------------------------ progress

    def enter_stage(self, stage: str) -> None:
        """Something else is being done for the next round from now on."""
        self.stage = stage
        self.stage_since = time.time()
        self.step = (0, 0)  # (done, total)

    def _progress(
        self,
        done: int,
        total: int,
        what: str,
    ) -> None:
        if self.stopping:
            raise GivenUp("the session is closing: the next round was given up")
        self.step = (done, total)
        self._show_progress(done, total, what)

    # ------------------------------------------------------------------ training

    def can_train(self) -> bool:
        """Whether anything is labelled that is still there to learn from."""
        return self.model_runner.can_train(self.run_state)

    def train(self, number: int) -> HoldoutEstimate | None:
        """Fit the model as for round `number` on all answers but the hold-out's -> how it does on
        the hold-out.
        """
        return self.model_runner.train(self.run_state, number)

    def final_fit(self) -> HoldoutEstimate | None:
        """Train on all answers there are, as `tailor train` does -> how the model does on the
        hold-out. Raises InputError where nothing is labelled.
        """
        if not self.can_train():
            raise InputError("nothing is labelled yet: answer some examples first")
        self.read_pool()
        return self.train(len(self.run_state.rounds))

    def predict(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities (n, K), features (n, d)) at the run's positions (n,)."""
        checked = check_array(positions, "positions")
        size = len(self.run_state.ids)
        if not _are_positions(checked, size):
            last = size - 1
            raise InputError(
                f"positions is {shown(positions)}: a list of positions from 0 to {last} is needed"
            )
        task = self.run_state.task
        indices = checked.astype(np.int64)
        return self.model_runner.predict(task, indices)

    # ------------------------------------------------------------------ classes

    def _change_classes(
        self,
        change: ClassEdit,
        by: str | None,
        undoes: int | None = None,
    ) -> None:
        if self._remodel is None:
            raise InputError("this session can't make a model for other classes: hand in remodel=")
        # Before the lock is taken: a model may take long to make.
        model = self._remodel(change.after)
        with self.lock:
            if self.run_state.task != change.before:
                raise InputError(
                    "the classes were changed by someone else just now: look at them again"
                )
            super()._change_classes(change, by, undoes)
            self._adopt(model)
            self._classes_changed(change)

    def _classes_changed(self, change: ClassEdit) -> None:
        """The run's classes are others now. The lock is held."""

    def _adopt(self, model: Model) -> None:
        model_runner = self._make_model_runner(self.pool, model, self._progress)
        # first: whoever prepares a round takes what stands here, without the lock
        model_runner.connect(self.run_state.ids)
        self.model = model
        self.model_runner = model_runner

    def _start_over(self) -> None:
        super()._start_over()
        # A change of the classes may have arrived in the store, though its answer did not.
        task = self.run_state.task
        is_outdated = self.model.task.classes != task.classes
        if not is_outdated or self._remodel is None:
            return
        model = self._remodel(task)
        self._adopt(model)

    # ------------------------------------------------------------------ pool

    def read_pool(self) -> None:
        """Whatever the model needs of every example; what can't be read is set aside for good. Long
        the first time.
        """
        unreadable = self.model_runner.prepare()
        self._set_aside(unreadable)

    def _refresh_pool(self) -> None:
        """New entries of the pool join; what has vanished is set aside until it is back."""
        self.pool.refresh()
        self._join_pool()
        files = self.pool.set_aside()
        is_absent = ~self.model_runner.is_present
        vanished = np.flatnonzero(is_absent).tolist()
        with self.lock:
            # Only what is news: an event for every look at the pool would fill the store.
            if files != self.run_state.files:
                self._record(FilesSetAside(files))
            if vanished != self.run_state.vanished:
                self._record(ExamplesVanished(vanished))

    def _join_pool(self) -> None:
        """New entries of the pool join at the end."""
        new_ids = self._new_ids()
        if new_ids:
            with self.lock:
                self._add_examples(new_ids)
        self.model_runner.connect(self.run_state.ids)

    def _new_ids(self) -> list[str]:
        """Ids of the pool that are not in the run yet."""
        listed = list(self.pool.ids)
        # Most often nothing is new, which a comparison of two lists finds out quickly.
        if listed == self.run_state.ids:
            return []
        joined = self.run_state.position
        return [example_id for example_id in listed if example_id not in joined]

    def _add_examples(self, ids: list[str]) -> None:
        """New ids join the run. The lock is held."""
        description = _described(self.pool)
        self._record(PoolDescribed(description))
        self.store.add_examples(ids)
        # The store writes the event of it itself.
        for event in self.store.events(after=self.run_state.event):
            apply_stored(self.run_state, event, self.store)

    def _set_aside(self, unreadable: dict[int, str]) -> bool:
        """Record what can't be read, with the reasons; whether any of it is news."""
        with self.lock:
            news = {}
            for position, reason in unreadable.items():
                if position not in self.run_state.aside:
                    news[position] = reason
            if not news:
                return False
            event = ExamplesSetAside(news)
            self._record(event)
            return True

    def _find_unreadable(self, positions: list[int]) -> dict[int, str]:
        """Those of the positions that can't be read, with the reasons."""
        indices = self.model_runner.in_pool(positions)
        examples = self.pool.read(indices)
        reasons = {}
        for position, example in zip(positions, examples):
            if isinstance(example, Unreadable):
                reasons[position] = example.reason
        return reasons


def _check_same_task(model: Model, task: Task) -> None:
    """Raises InputError where a model is for another task than the run's."""
    has_same_classes = model.task.classes == task.classes
    has_same_kind = model.task.kind == task.kind
    if has_same_classes and has_same_kind:
        return
    raise InputError(f"the model is for {model.task.classes}, the settings say {task.classes}")


def _are_positions(array: np.ndarray, size: int) -> bool:
    """Whether an array is a list of whole numbers from 0 to size - 1."""
    if array.ndim != 1:
        return False
    # An empty list has any type.
    if array.size == 0:
        return True
    if array.dtype.kind not in "iu":
        return False
    if array.min() < 0:
        return False
    return bool(array.max() < size)


def _described(pool: Pool) -> dict[str, Any] | None:
    try:
        return pool.describe()
    except InputError:
        return None
