"""The tasks of the project as they stand in Label Studio, kept in step with few requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tailor.integrations.label_studio.annotations import Annotation
from tailor.integrations.label_studio.client import Studio
from tailor.integrations.label_studio.label_config import LabelConfig

#: seconds that a look goes back before the last one: clocks differ a little, and what was being
#: written shows up later
OVERLAP = 15.0
#: keys in a task's data: the example's id, and why it was asked for
ID, ROUND, ARM = "tailor_id", "tailor_round", "tailor_arm"


@dataclass(frozen=True)
class MirroredTask:
    id: int
    data: dict[str, Any]
    annotations: tuple[Annotation, ...]
    submitted: int  # annotations that are not skips, as Label Studio counts them
    predicted_by: frozenset[str]  # versions of the models whose predictions it has


class TaskMirror:
    """Which task shows which example, and what its annotations say.

    example_of tells the example's id from (task id, data), None for a task that is none of ours.
    Nothing of this is kept on disk: Label Studio is asked anew after a restart, so the two sides
    can't drift apart.
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
        self.shown: dict[
            str, set[int]
        ] = {}  # example -> its tasks; several, if it was pushed twice by accident
        self._example: dict[int, str] = {}
        self._looked = 0.0
        self._off = (
            0,
            0,
        )  # what Label Studio counts beyond what it lists; its counters may be wrong

    def forget(self) -> None:
        """The next look reads everything: something went wrong half-way."""
        self._looked = 0.0

    def look(self) -> set[str]:
        """Read what has changed -> the examples it concerns. The first look reads everything."""
        if not self._looked:
            return self._read_all()
        changed = self._read(self._looked - OVERLAP)
        if (
            self._difference() != self._off
        ):  # made since that moment, or deleted, which leaves no trace behind
            changed |= self._read(self._looked - OVERLAP)
            if self._difference() != self._off:
                changed |= self._read_all()
                self._off = self._difference()
        return changed

    def _read_all(self) -> set[str]:
        before = set(self.tasks)
        seen: set[int] = set()
        changed = self._read(None, seen)
        for gone in before - seen:
            changed |= self._drop(gone)
        return changed

    def _read(self, since: float | None, seen: set[int] | None = None) -> set[str]:
        changed: set[str] = set()
        started: float | None = None
        for given in self.studio.tasks(since):
            started = started or self.studio.now
            if seen is not None:
                seen.add(given["id"])
            changed |= self.put(given)
        self._looked = started or self.studio.now
        return changed

    def put(self, given: dict[str, Any]) -> set[str]:
        """Take in a task as Label Studio gives it -> the example that has changed, if any."""
        annotations = tuple(Annotation.read(a, self.config) for a in given.get("annotations") or ())
        submitted = sum(not a.get("was_cancelled") for a in given.get("annotations") or ())
        versions = frozenset(
            v.strip() for v in (given.get("predictions_model_versions") or "").split(",")
        )
        task = MirroredTask(given["id"], given["data"], annotations, submitted, versions)
        before, self.tasks[task.id] = self.tasks.get(task.id), task
        example = self.example_of(task.id, task.data)
        if example is None:
            return self._unlink(task.id)
        self._example[task.id] = example
        self.shown.setdefault(example, set()).add(task.id)
        return set() if before == task else {example}

    def remark(self, task: int, data: dict[str, Any]) -> None:
        """We changed a task's data."""
        self.tasks[task] = replace(self.tasks[task], data=data)

    def _drop(self, task: int) -> set[str]:
        self.tasks.pop(task, None)
        return self._unlink(task)

    def _unlink(self, task: int) -> set[str]:
        example = self._example.pop(task, None)
        if example is None:
            return set()
        self.shown[example].discard(task)
        if not self.shown[example]:
            del self.shown[example]
        return {example}

    def annotations(self, example: str) -> list[Annotation]:
        return [
            a for task in sorted(self.shown.get(example, ())) for a in self.tasks[task].annotations
        ]

    def task_of(self, example: str) -> MirroredTask | None:
        """The task that shows an example."""
        return self.tasks[min(self.shown[example])] if example in self.shown else None

    def _difference(self) -> tuple[int, int]:
        tasks, submitted = self.studio.totals()
        return tasks - len(self.tasks), submitted - sum(t.submitted for t in self.tasks.values())
