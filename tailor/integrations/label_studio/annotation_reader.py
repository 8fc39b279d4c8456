"""Taking in what annotators did: answers, corrections, skips and deletions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
        answers_by_annotator: dict[str, dict[str, Any]] = {}
        withdrawn: list[str] = []
        for example in sorted(set(examples) & self.task_mirror.tasks_by_example.keys()):
            answer = settled(self.task_mirror.annotations(example))
            if self._is_withdrawn(example, answer):
                withdrawn.append(example)
            if answer is None or not self._is_new(example, answer):
                continue
            if self._fits_task(example, answer):
                annotator = self.task_mirror.studio.user_name(answer.user) + VIA_STUDIO
                answers = answers_by_annotator.setdefault(annotator, {})
                answers[example] = self._as_told(answer)
        if withdrawn:
            self.session.withdraw(withdrawn)
            self._skipped_in_studio -= set(withdrawn)
        for annotator, answers in answers_by_annotator.items():
            self.session.tell(answers, by=annotator)
            skipped = {example for example, told in answers.items() if told is SKIP}
            self._skipped_in_studio -= answers.keys()
            self._skipped_in_studio |= skipped

    def _is_withdrawn(self, example: str, answer: SettledAnswer | None) -> bool:
        """Whether what the run has from Label Studio is no longer there: it was deleted, or a skip
        took the place of a label.
        """
        is_labelled_in_studio = self._label(example) is not None and self._is_from_studio(example)
        if answer is not None:
            return answer.classes is None and is_labelled_in_studio
        if self._is_skipped(example):
            return example in self._skipped_in_studio
        return is_labelled_in_studio

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
        task = self.session.run_state.task
        unknown = [name for name in answer.classes if name not in task.classes]
        if unknown:
            problem = f"{unknown[0]!r}, which is no class of this run"
        elif task.kind == "multi-class" and len(answer.classes) != 1:
            problem = f"{len(answer.classes)} classes"
        else:
            return True
        if (example, problem) not in self._reported:
            self._say(f"{example} was annotated with {problem}: it is left out.")
            self._reported.add((example, problem))
        return False

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
        return names - set(self.session.run_state.task.classes)

    # ------------------------------------------------------------------ what the run says

    def _is_skipped(self, example: str) -> bool:
        run_state = self.session.run_state
        return run_state.is_skipped(run_state.position[example])

    def _label(self, example: str) -> tuple[str, ...] | None:
        """The names of an example's classes in the run, sorted; None where it has no label."""
        run_state = self.session.run_state
        label = run_state.label_of(run_state.position[example])
        if label is None:
            return None
        class_names = run_state.task.classes
        names = [class_names[index] for index in np.flatnonzero(label).tolist()]
        return tuple(sorted(names))

    def _told_by(self, example: str) -> tuple[str, float]:
        """(annotator, time) of an example's label."""
        run_state = self.session.run_state
        position = run_state.position[example]
        annotator, time = run_state.answered_by.get(position, (None, 0.0))
        return annotator or "", time

    def _is_from_studio(self, example: str) -> bool:
        return self._told_by(example)[0].endswith(VIA_STUDIO)

    def _label_time(self, example: str) -> float:
        return self._told_by(example)[1]

    def _skips_of_earlier_sessions(self) -> set[str]:
        """Examples that are skipped in the run because they were skipped in Label Studio."""
        positions: set[int] = set()
        for event in self._answer_events():
            if isinstance(event, AnswersTold):
                positions -= {position for position, _ in event.answers}
                if (event.by or "").endswith(VIA_STUDIO):
                    positions |= set(event.skipped)
            elif isinstance(event, (AnswersWithdrawn, OfferedAgain)):
                positions -= set(event.positions)
        return {self.session.run_state.ids[position] for position in positions}

    def _answer_events(self) -> Iterator[RunEvent]:
        """The events of the run that may concern skips, those written together one by one."""
        single_kinds = (AnswersTold.kind, AnswersWithdrawn.kind, OfferedAgain.kind)
        for stored in self.session.store.events():
            if stored.kind == SeveralEvents.kind:
                yield from SeveralEvents.read(stored.body, None).events
            elif stored.kind in single_kinds:
                yield read_event(stored.kind, stored.body, None)
