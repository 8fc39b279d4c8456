"""Putting what was asked before the annotators: as new tasks, or as marks on tasks that are there
already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.integrations.label_studio.label_config import LabelConfig
from tailor.integrations.label_studio.studio_tasks import column_filter
from tailor.integrations.label_studio.task_contents import TaskContents
from tailor.integrations.label_studio.task_mirror import (
    ARM_KEY,
    ID_KEY,
    ROUND_KEY,
    MirroredTask,
    TaskMirror,
)
from tailor.pools.base import Pool
from tailor.run.records import PickRecord
from tailor.run.session import Session
from tailor.task import Task

#: The model version of predictions that come with a task. One for all rounds: Label Studio shows
#: annotators the predictions of one version alone, and those of the round before must not vanish
#: while they wait.
MODEL_VERSION = "TAILOR"
#: Pictures in one upload; Label Studio takes 100 files and 250 MB at once.
PICTURES_AT_ONCE = 20
#: Texts in one import.
TEXTS_AT_ONCE = 200
#: The Data Manager's tab that lists what was asked.
TAB = "TAILOR"


def prediction(config: LabelConfig, task: Task, probabilities: np.ndarray) -> dict[str, Any]:
    """probabilities (K,) -> the predicted classes and a score from 0 to 1, as Label Studio writes a
    prediction.
    """
    predicted = task.predicted(probabilities[None])[0]
    if task.kind == "multi-class":
        confidences = probabilities[predicted]
    else:
        confidences = np.where(predicted, probabilities, 1 - probabilities)
    class_indices = np.flatnonzero(predicted).tolist()
    classes = [task.classes[index] for index in class_indices]
    score = float(confidences.mean())
    return {
        "result": config.result(classes),
        "score": round(score, 4),
    }


def check_shown(pool: Pool, config: LabelConfig) -> None:
    """Raises InputError unless tasks can be made of the pool's examples."""
    if pool.kind != config.shows:
        raise InputError(
            f"the pool holds {pool.kind}s, the label config shows {config.shows}s: they must fit"
        )
    if config.other_keys:
        names = [f"${key}" for key in config.other_keys]
        keys = ", ".join(names)
        raise InputError(
            f"the label config also shows {keys}, which the pool does not have: remove it there"
        )


class Publisher:
    """Sees to it that every example that waits for an answer has a task in Label Studio, with the
    arm, the round and a prediction.

    creates_tasks  whether tasks are made from the session's pool; else the project's own tasks are
                   the pool
    say            called with a message for the user
    """

    def __init__(
        self,
        task_mirror: TaskMirror,
        session: Session,
        *,
        creates_tasks: bool,
        say: Callable[[str], None],
    ) -> None:
        self.task_mirror = task_mirror
        self.studio = task_mirror.studio
        self.session = session
        self.pool = session.pool
        self._creates_tasks = creates_tasks
        self._task_contents = TaskContents(self.pool, self.studio.tasks, say)
        if creates_tasks:
            check_shown(self.pool, self.config)

    @property
    def config(self) -> LabelConfig:
        return self.task_mirror.config

    def publish(self, pick_records: Sequence[PickRecord]) -> int:
        """Add what is not in Label Studio yet -> how many tasks were added or marked. Safe to
        repeat after a failure half-way.
        """
        published = 0
        if self._creates_tasks:
            published = self._publish_new(pick_records)
        unmarked = []
        for record in pick_records:
            if self._is_unmarked(record):
                unmarked.append(record)
        if unmarked:
            self._mark_tasks(unmarked)
        return published + len(unmarked)

    # ------------------------------------------------------------------ new tasks

    def _publish_new(self, pick_records: Sequence[PickRecord]) -> int:
        chunk_size = TEXTS_AT_ONCE
        if self.config.shows == "image":
            chunk_size = PICTURES_AT_ONCE
        unpublished = []
        for record in pick_records:
            if self.task_mirror.task_of(record.id) is None:
                unpublished.append(record)
        published = 0
        for chunk in _chunks(unpublished, chunk_size):
            published += self._create_tasks(chunk)
        return published

    def _create_tasks(self, pick_records: Sequence[PickRecord]) -> int:
        examples = [record.id for record in pick_records]
        contents = self._task_contents.get(examples, self.config.shows)
        tasks: list[dict[str, Any]] = []
        for record in pick_records:
            if record.id not in contents:
                continue
            data = {
                self.config.key: contents[record.id],
                ID_KEY: record.id,
                **_marks(record),
            }
            predictions = self._predictions(record)
            tasks.append({"data": data, "predictions": predictions})
        if not tasks:
            return 0
        task_ids = self.studio.tasks.add(tasks)
        # Into the mirror at once: before the next refresh they would be made again.
        for task_id, task in zip(task_ids, tasks):
            self.task_mirror.update({"id": task_id, "data": task["data"]})
        return len(tasks)

    # ------------------------------------------------------------------ tasks that are there

    def _is_unmarked(self, record: PickRecord) -> bool:
        task = self.task_mirror.task_of(record.id)
        if task is None:
            return False
        return task.data.get(ROUND_KEY) != record.round

    def _mark_tasks(self, pick_records: Sequence[PickRecord]) -> None:
        """Write into tasks why they were asked, the prediction first and the mark last: after a
        failure between the two the mark is still missing.
        """
        tasks: list[MirroredTask] = []
        predictions: list[dict[str, Any]] = []
        for record in pick_records:
            task = self.task_mirror.task_of(record.id)
            assert task is not None
            tasks.append(task)
            if MODEL_VERSION in task.model_versions:
                continue
            for predicted in self._predictions(record):
                predictions.append({"task": task.id, **predicted})
        if predictions:
            self._add_predictions(predictions)
        for record, task in zip(pick_records, tasks):
            data = {**task.data, **_marks(record)}
            self.studio.tasks.set_data(task.id, data)
            self.task_mirror.set_data(task.id, data)
        self._show_tab()

    def _add_predictions(self, predictions: Sequence[dict[str, Any]]) -> None:
        self.studio.tasks.add_predictions(predictions)
        settings = self.studio.describe()
        # With no version chosen, annotators would see no prediction.
        if not settings["model_version"]:
            self.studio.change_settings(model_version=MODEL_VERSION)

    def _show_tab(self) -> None:
        """Make a tab in the Data Manager that lists what was asked, in that order: the free edition
        lets nobody change the order in which it hands out tasks.
        """
        for tab in self.studio.tabs.list_items():
            tab_data = tab.get("data") or {}
            if tab_data.get("title") == TAB:
                return
        was_asked = column_filter(
            f"data.{ROUND_KEY}",
            "greater",
            "Number",
            -1,
        )
        column = f"tasks:data.{ROUND_KEY}"
        self.studio.tabs.add(
            data={
                "title": TAB,
                "filters": {"conjunction": "and", "items": [was_asked]},
                "ordering": [column],
                # As text, round 10 would precede 9.
                "columnsDisplayType": {column: "Number"},
            }
        )

    # ------------------------------------------------------------------ predictions

    def _predictions(self, record: PickRecord) -> list[dict[str, Any]]:
        """A list of one prediction. Empty for the hold-out, which measures the model: it must not
        lead the annotator.
        """
        if record.predicted is None or record.arm == "hold-out":
            return []
        task = self.session.run_state.task
        predicted = prediction(self.config, task, record.predicted)
        return [{"model_version": MODEL_VERSION, **predicted}]


def _marks(record: PickRecord) -> dict[str, Any]:
    """Why an example was asked, as it stands in its task's data."""
    return {ROUND_KEY: record.round, ARM_KEY: record.arm}


def _chunks(pick_records: Sequence[PickRecord], size: int) -> Iterator[Sequence[PickRecord]]:
    for first in range(0, len(pick_records), size):
        end = first + size
        yield pick_records[first:end]
