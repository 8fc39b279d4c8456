"""A copy in memory of the project's tasks in Label Studio, kept up to date with few requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tailor.integrations.label_studio.annotations import Annotation
from tailor.integrations.label_studio.client import Studio
from tailor.integrations.label_studio.label_config import LabelConfig

#: Seconds that a refresh goes back before the last one: clocks differ a little, and what was being
#: written then shows up later.
OVERLAP = 15.0
#: A task, or its data, as Label Studio's API gives it.
Json = dict[str, Any]
#: Keys in a task's data: the example's id, and why it was asked for.
ID_KEY = "tailor_id"
ROUND_KEY = "tailor_round"
ARM_KEY = "tailor_arm"


@dataclass(frozen=True)
class MirroredTask:
    """A task as it was read last.

    submitted       annotations that are not skips, as Label Studio counts them
    model_versions  of the models whose predictions it has
    """

    id: int
    data: Json
    annotations: tuple[Annotation, ...]
    submitted: int
    model_versions: frozenset[str]


class TaskMirror:
    """Which task shows which example, and what its annotations say.

    Nothing of this is kept on disk: Label Studio is asked anew after a restart, so the two sides
    can't drift apart.

    example_of  (task id, data) -> the example's id; None for a task that is none of ours
    """

    def __init__(
        self,
        studio: Studio,
        config: LabelConfig,
        example_of: Callable[[int, Json], str | None],
    ) -> None:
        self.studio = studio
        self.config = config
        self.example_of = example_of
        self.tasks: dict[int, MirroredTask] = {}
        #: Example -> ids of its tasks; several, if it was pushed twice by accident.
        self.tasks_by_example: dict[str, set[int]] = {}
        self._example_by_task: dict[int, str] = {}
        self._refreshed_at = 0.0  # by Label Studio's clock; 0: never
        #: What Label Studio counts beyond what it lists: its counters may be wrong.
        self._usual_surplus = (0, 0)

    def invalidate(self) -> None:
        """Makes the next refresh read everything: something went wrong half-way."""
        self._refreshed_at = 0.0

    def refresh(self) -> set[str]:
        """Read what has changed -> the examples it concerns. The first time reads everything.

        Raises what StudioTransport.call raises.
        """
        if not self._refreshed_at:
            return self._read_all()
        since = self._refreshed_at - OVERLAP
        changed = self._read_since(since)
        if self._surplus() == self._usual_surplus:
            return changed
        # The counts differ where tasks were made since that moment ...
        since = self._refreshed_at - OVERLAP
        changed |= self._read_since(since)
        if self._surplus() == self._usual_surplus:
            return changed
        # ... or were deleted: that leaves no trace in what is listed.
        changed |= self._read_all()
        self._usual_surplus = self._surplus()
        return changed

    def _read_all(self) -> set[str]:
        ids_before = set(self.tasks)
        read_ids: set[int] = set()
        changed = self._read_since(None, read_ids)
        deleted_ids = ids_before - read_ids
        for deleted_id in deleted_ids:
            self.tasks.pop(deleted_id, None)
            changed |= self._unlink(deleted_id)
        return changed

    def _read_since(self, since: float | None, read_ids: set[int] | None = None) -> set[str]:
        """Read the tasks changed since a time, or all -> the examples that have changed. The ids
        read are added to read_ids.
        """
        changed: set[str] = set()
        started_at: float | None = None
        for task in self.studio.tasks.list_tasks(since):
            # The time of the first page: what changes while the others are read comes next time.
            started_at = started_at or self.studio.transport.server_time
            if read_ids is not None:
                read_ids.add(task["id"])
            changed |= self.update(task)
        self._refreshed_at = started_at or self.studio.transport.server_time
        return changed

    def update(self, task: Json) -> set[str]:
        """Take in a task as Label Studio's API gives it -> the example that has changed, if any."""
        task_id = task["id"]
        mirrored = self._mirrored(task)
        before = self.tasks.get(task_id)
        self.tasks[task_id] = mirrored
        example = self.example_of(task_id, mirrored.data)
        if example is None:
            return self._unlink(task_id)
        self._example_by_task[task_id] = example
        task_ids = self.tasks_by_example.setdefault(example, set())
        task_ids.add(task_id)
        # A refresh goes back a little in time, so most of what it reads is known.
        if mirrored == before:
            return set()
        return {example}

    def _mirrored(self, task: Json) -> MirroredTask:
        annotations = []
        submitted = 0
        # A task that was just made has none of these keys.
        for annotation in task.get("annotations") or ():
            annotations.append(Annotation.read(annotation, self.config))
            if not annotation.get("was_cancelled"):
                submitted += 1
        listed_versions = task.get("predictions_model_versions") or ""
        versions = set()
        for version in listed_versions.split(","):
            versions.add(version.strip())
        return MirroredTask(
            id=task["id"],
            data=task["data"],
            annotations=tuple(annotations),
            submitted=submitted,
            model_versions=frozenset(versions),
        )

    def set_data(self, task_id: int, data: Json) -> None:
        """Note that we have changed a task's data in Label Studio."""
        task = self.tasks[task_id]
        self.tasks[task_id] = replace(task, data=data)

    def _unlink(self, task_id: int) -> set[str]:
        """A task shows no example any more -> the example that it showed, if any."""
        example = self._example_by_task.pop(task_id, None)
        if example is None:
            return set()
        task_ids = self.tasks_by_example[example]
        task_ids.discard(task_id)
        if not task_ids:
            del self.tasks_by_example[example]
        return {example}

    def annotations(self, example: str) -> list[Annotation]:
        """The annotations of all tasks that show an example."""
        task_ids = self.tasks_by_example.get(example, set())
        annotations: list[Annotation] = []
        for task_id in sorted(task_ids):
            task = self.tasks[task_id]
            annotations.extend(task.annotations)
        return annotations

    def task_of(self, example: str) -> MirroredTask | None:
        """The task that shows an example; None where there is none."""
        task_ids = self.tasks_by_example.get(example)
        if not task_ids:
            return None
        oldest_id = min(task_ids)
        return self.tasks[oldest_id]

    def _surplus(self) -> tuple[int, int]:
        """(tasks, submitted annotations) that Label Studio counts beyond those mirrored."""
        tasks, submitted = self.studio.tasks.totals()
        mirrored_submitted = 0
        for task in self.tasks.values():
            mirrored_submitted += task.submitted
        further_tasks = tasks - len(self.tasks)
        further_submitted = submitted - mirrored_submitted
        return further_tasks, further_submitted
