"""Taking in what annotators did: answers, corrections, skips and deletions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tailor.integrations.label_studio.annotations import SettledAnswer, settled
from tailor.integrations.label_studio.task_mirror import TaskMirror
from tailor.run.session import SKIP, Session

#: ends the name under which an annotator of Label Studio is kept
VIA = " (Label Studio)"


class AnnotationReader:
    """Makes the run say what the annotations say.

    An answer that came into the run by another way stays as long as no annotation is newer. A label
    whose task was deleted stays too: what was known is known; to take it back, delete the
    annotation.
    """

    def __init__(
        self, session: Session, task_mirror: TaskMirror, say: Callable[[str], None]
    ) -> None:
        self.session = session
        self.task_mirror = task_mirror
        self._say = say
        self._skipped = self._skipped_before()  # in Label Studio, that is
        self._said: set[tuple[str, str]] = set()

    def take(self, examples: Iterable[str]) -> None:
        """Compare these, which are in the run, and tell what differs."""
        run_state = self.session.run_state
        answers: dict[str, dict[str, Any]] = {}
        withdrawn: list[str] = []
        for one in sorted(set(examples) & self.task_mirror.shown.keys()):
            answer, label, (ours, at) = (
                settled(self.task_mirror.annotations(one)),
                self._label(one),
                self._told_here(one),
            )
            skipped = run_state.is_skipped(run_state.position[one])
            if answer is None:
                if one in self._skipped if skipped else label is not None and ours:
                    withdrawn.append(one)
            elif answer.classes is None:
                if label is not None and ours:
                    withdrawn.append(one)
                if ours if label is not None else not skipped:
                    answers.setdefault(self._name(answer), {})[one] = SKIP
            elif answer.classes != label and (label is None or ours or answer.at > at):
                given = self._given(one, answer.classes)
                if given is not SKIP:
                    answers.setdefault(self._name(answer), {})[one] = given
        if withdrawn:
            self.session.withdraw(withdrawn)
            self._skipped -= set(withdrawn)
        for by, told in answers.items():
            self.session.tell(told, by=by)
            self._skipped = (self._skipped - told.keys()) | {
                one for one, given in told.items() if given is SKIP
            }

    def _given(self, one: str, classes: tuple[str, ...]) -> Any:
        """An answer as `tell` takes it; SKIP, with a word about it, where the run can't have it."""
        task = self.session.run_state.task
        unknown = [name for name in classes if name not in task.classes]
        if unknown or (task.kind == "multi-class" and len(classes) != 1):
            what = (
                f"{unknown[0]!r}, which is no class of this run"
                if unknown
                else f"{len(classes)} classes"
            )
            if (one, what) not in self._said:
                self._say(f"{one} was annotated with {what}: it is left out.")
                self._said.add((one, what))
            return SKIP
        return list(classes) if task.kind == "multi-label" else classes[0]

    def unknown_classes(self, examples: Iterable[str]) -> set[str]:
        """Names in the annotations of these that the run does not know."""
        chosen = (a.classes or () for one in examples for a in self.task_mirror.annotations(one))
        return {name for classes in chosen for name in classes} - set(
            self.session.run_state.task.classes
        )

    # ------------------------------------------------------------------ what the run says

    def _label(self, one: str) -> tuple[str, ...] | None:
        run_state = self.session.run_state
        label = run_state.label_of(run_state.position[one])
        return (
            None
            if label is None
            else tuple(sorted(run_state.task.classes[k] for k in np.flatnonzero(label).tolist()))
        )

    def _told_here(self, one: str) -> tuple[bool, float]:
        """(whether its label came from Label Studio, when it came)"""
        by, at = self.session.run_state.who.get(self.session.run_state.position[one], (None, 0.0))
        return (by or "").endswith(VIA), at

    def _name(self, answer: SettledAnswer) -> str:
        return self.task_mirror.studio.name_of(answer.who) + VIA

    def _skipped_before(self) -> set[str]:
        found: set[int] = set()
        for event in self.session.store.events():
            for kind, body in (
                event.body["events"] if event.kind == "several" else [(event.kind, event.body)]
            ):
                if kind == "told":
                    found -= {position for position, _ in body["answers"]}
                    if (body.get("by") or "").endswith(VIA):
                        found |= set(body["skipped"])
                elif kind in ("withdrawn", "again"):
                    found -= set(body["positions"])
        return {self.session.run_state.ids[p] for p in found}
