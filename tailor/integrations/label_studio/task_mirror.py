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
    data: dict[str, Any]
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
        example_of: Callable[[int, dict[str, Any]], str | None],
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
        changed = self._read_since(self._refreshed_at - OVERLAP)
        # The counts differ where tasks were made since that moment, or were deleted: that leaves no
        # trace in what is listed.
        if self._surplus() != self._usual_surplus:
            changed |= self._read_since(self._refreshed_at - OVERLAP)
            if self._surplus() != self._usual_surplus:
                changed |= self._read_all()
                self._usual_surplus = self._surplus()
        return changed

    def _read_all(self) -> set[str]:
        known_ids = set(self.tasks)
        read_ids: set[int] = set()
        changed = self._read_since(None, read_ids)
        for deleted_id in known_ids - read_ids:
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

    def update(self, task: dict[str, Any]) -> set[str]:
        """Take in a task as Label Studio's API gives it -> the example that has changed, if any."""
        annotations = task.get("annotations") or ()
        versions = (task.get("predictions_model_versions") or "").split(",")
        mirrored = MirroredTask(
            id=task["id"],
            data=task["data"],
            annotations=tuple(Annotation.read(a, self.config) for a in annotations),
            submitted=sum(not annotation.get("was_cancelled") for annotation in annotations),
            model_versions=frozenset(version.strip() for version in versions),
        )
        before = self.tasks.get(mirrored.id)
        self.tasks[mirrored.id] = mirrored
        example = self.example_of(mirrored.id, mirrored.data)
        if example is None:
            return self._unlink(mirrored.id)
        self._example_by_task[mirrored.id] = example
        self.tasks_by_example.setdefault(example, set()).add(mirrored.id)
        return set() if before == mirrored else {example}

    def set_data(self, task_id: int, data: dict[str, Any]) -> None:
        """Note that we have changed a task's data in Label Studio."""
        self.tasks[task_id] = replace(self.tasks[task_id], data=data)

    def _unlink(self, task_id: int) -> set[str]:
        """A task shows no example any more -> the example that it showed, if any."""
        example = self._example_by_task.pop(task_id, None)
        if example is None:
            return set()
        self.tasks_by_example[example].discard(task_id)
        if not self.tasks_by_example[example]:
            del self.tasks_by_example[example]
        return {example}

    def annotations(self, example: str) -> list[Annotation]:
        """The annotations of all tasks that show an example."""
        task_ids = sorted(self.tasks_by_example.get(example, ()))
        return [
            annotation for task_id in task_ids for annotation in self.tasks[task_id].annotations
        ]

    def task_of(self, example: str) -> MirroredTask | None:
        """The task that shows an example; None where there is none."""
        task_ids = self.tasks_by_example.get(example)
        return self.tasks[min(task_ids)] if task_ids else None

    def _surplus(self) -> tuple[int, int]:
        """(tasks, submitted annotations) that Label Studio counts beyond those mirrored."""
        tasks, submitted = self.studio.tasks.totals()
        mirrored_submitted = sum(task.submitted for task in self.tasks.values())
        return tasks - len(self.tasks), submitted - mirrored_submitted
