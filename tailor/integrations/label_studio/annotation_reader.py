"""Taking in what annotators did: answers, corrections, skips and deletions."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from typing import Any

import numpy as np

from tailor.integrations.label_studio.annotations import SettledAnswer, settled
from tailor.integrations.label_studio.task_mirror import TaskMirror
from tailor.run.events import (
    AnswersTold,
    AnswersWithdrawn,
    OfferedAgain,
    RunEvent,
    SeveralEvents,
    read_event,
)
from tailor.run.session import SKIP, Session

#: Ends the name under which an annotator of Label Studio is kept in the run.
VIA_STUDIO = " (Label Studio)"
#: By example: an answer as Session.tell takes it.
Answers = dict[str, Any]


class AnnotationReader:
    """Makes the run say what the annotations say.

    An answer that came into the run by another way stays as long as no annotation is newer. A label
    whose task was deleted stays too, as what was known is known; to take it back, delete the
    annotation.

    say  called with a message for the user
    """

    def __init__(
        self,
        session: Session,
        task_mirror: TaskMirror,
        say: Callable[[str], None],
    ) -> None:
        self.session = session
        self.task_mirror = task_mirror
        self._say = say
        self._skipped_in_studio = self._skips_of_earlier_sessions()
        self._reported: set[tuple[str, str]] = set()  # (example, problem)

    def read(self, examples: Iterable[str]) -> None:
        """Compare the annotations of these examples, which are in the run, with its labels, and
        tell or withdraw what differs.
        """
        answers_by_annotator: dict[str, Answers] = {}
        withdrawn: list[str] = []
        with_tasks = set(examples) & self.task_mirror.tasks_by_example.keys()
        for example in sorted(with_tasks):
            annotations = self.task_mirror.annotations(example)
            answer = settled(annotations)
            if self._is_withdrawn(example, answer):
                withdrawn.append(example)
            if answer is None:
                continue
            if not self._is_new(example, answer):
                continue
            if not self._fits_task(example, answer):
                continue
            annotator = self._annotator(answer)
            answers = answers_by_annotator.setdefault(annotator, {})
            answers[example] = self._as_told(answer)
        # First, as an example that was withdrawn may be among the new answers, as a skip.
        if withdrawn:
            self.session.withdraw(withdrawn)
            self._skipped_in_studio.difference_update(withdrawn)
        for annotator, answers in answers_by_annotator.items():
            self._tell(annotator, answers)

    def _annotator(self, answer: SettledAnswer) -> str:
        """The name under which the run keeps who gave an answer."""
        user_name = self.task_mirror.studio.user_name(answer.user)
        return user_name + VIA_STUDIO

    def _tell(self, annotator: str, answers: Answers) -> None:
        self.session.tell(answers, by=annotator)
        for example, told in answers.items():
            if told is SKIP:
                self._skipped_in_studio.add(example)
            else:
                self._skipped_in_studio.discard(example)

    def _is_withdrawn(self, example: str, answer: SettledAnswer | None) -> bool:
        """Whether what the run has from Label Studio is no longer there: it was deleted, or a skip
        took the place of a label.
        """
        if answer is None and self._is_skipped(example):
            return example in self._skipped_in_studio
        if answer is not None and answer.classes is not None:
            return False
        has_label = self._label(example) is not None
        return has_label and self._is_from_studio(example)

    def _is_new(self, example: str, answer: SettledAnswer) -> bool:
        """Whether the run has to be told this answer."""
        label = self._label(example)
        if answer.classes is None:
            # A skip does not touch a label that came by another way.
            if label is not None:
                return self._is_from_studio(example)
            return not self._is_skipped(example)
        if answer.classes == label:
            return False
        if label is None or self._is_from_studio(example):
            return True
        return answer.time > self._label_time(example)

    def _fits_task(self, example: str, answer: SettledAnswer) -> bool:
        """Whether the run can have this answer; the user is told once where it can't."""
        if answer.classes is None:
            return True
        problem = self._problem_with(answer.classes)
        if not problem:
            return True
        # Read again at every refresh, but told to the user once.
        report = (example, problem)
        if report not in self._reported:
            self._say(f"{example} was annotated with {problem}: it is left out.")
            self._reported.add(report)
        return False

    def _problem_with(self, classes: Sequence[str]) -> str:
        """What keeps these classes from being a label of the run; "" where nothing does."""
        task = self.session.run_state.task
        for name in classes:
            if name not in task.classes:
                return f"{name!r}, which is no class of this run"
        count = len(classes)
        if task.kind == "multi-class" and count != 1:
            return f"{count} classes"
        return ""

    def _as_told(self, answer: SettledAnswer) -> Any:
        """An answer as Session.tell takes it."""
        if answer.classes is None:
            return SKIP
        if self.session.run_state.task.kind == "multi-label":
            return list(answer.classes)
        return answer.classes[0]

    def unknown_classes(self, examples: Iterable[str]) -> set[str]:
        """Names in the annotations of these examples that are no classes of the run."""
        names: set[str] = set()
        for example in examples:
            for annotation in self.task_mirror.annotations(example):
                names.update(annotation.classes or ())
        run_classes = self.session.run_state.task.classes
        return names.difference(run_classes)

    # ------------------------------------------------------------------ what the run says

    def _is_skipped(self, example: str) -> bool:
        run_state = self.session.run_state
        position = run_state.position[example]
        return run_state.is_skipped(position)

    def _label(self, example: str) -> tuple[str, ...] | None:
        """The names of an example's classes in the run, sorted; None where it has no label."""
        run_state = self.session.run_state
        position = run_state.position[example]
        label = run_state.label_of(position)
        if label is None:
            return None
        class_names = run_state.task.classes
        class_indices = np.flatnonzero(label).tolist()
        names = [class_names[index] for index in class_indices]
        return tuple(sorted(names))

    def _told_by(self, example: str) -> tuple[str, float]:
        """(annotator, time) of an example's label."""
        run_state = self.session.run_state
        position = run_state.position[example]
        annotator, time = run_state.answered_by.get(position, (None, 0.0))
        return annotator or "", time

    def _is_from_studio(self, example: str) -> bool:
        annotator, _ = self._told_by(example)
        return annotator.endswith(VIA_STUDIO)

    def _label_time(self, example: str) -> float:
        _, time = self._told_by(example)
        return time

    def _skips_of_earlier_sessions(self) -> set[str]:
        """Examples that are skipped in the run because they were skipped in Label Studio."""
        positions: set[int] = set()
        for event in self._answer_events():
            if isinstance(event, AnswersTold):
                for position, _ in event.answers:
                    positions.discard(position)
                annotator = event.by or ""
                # Skips of others stay whatever becomes of the annotations.
                if annotator.endswith(VIA_STUDIO):
                    positions.update(event.skipped)
            elif isinstance(event, (AnswersWithdrawn, OfferedAgain)):
                positions.difference_update(event.positions)
        ids = self.session.run_state.ids
        return {ids[position] for position in positions}

    def _answer_events(self) -> Iterator[RunEvent]:
        """The events of the run that may concern skips, those written together one by one."""
        single_kinds = (
            AnswersTold.kind,
            AnswersWithdrawn.kind,
            OfferedAgain.kind,
        )
        for stored in self.session.store.events():
            # Events of other kinds may hold large arrays, which are not read here.
            if stored.kind == SeveralEvents.kind:
                several = SeveralEvents.read(stored.body, None)
                yield from several.events
            elif stored.kind in single_kinds:
                yield read_event(stored.kind, stored.body, None)
