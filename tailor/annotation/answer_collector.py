"""Takes annotators' answers in: checks them, has them written, and does what follows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tailor.annotation.annotators import Annotators, check_annotator
from tailor.annotation.answer_rules import AnswerRules
from tailor.annotation.assignment import Assignment
from tailor.annotation.batch_progress import BatchProgress
from tailor.annotation.group_commit import GroupCommit, QueuedAnswer
from tailor.annotation.items import Receipt
from tailor.annotation.leases import Leases
from tailor.annotation.planner import Planner
from tailor.annotation.roles import OWNER, check_role
from tailor.common.checks import check_flag, check_list, check_text, shown
from tailor.errors import InputError
from tailor.run.events import AnswersTold, RunEvent
from tailor.run.session import Session
from tailor.task import MultiClass, Task


class AnswerCollector:
    """An answer is a vote where several annotators are asked, and the label that counts otherwise.

    Safe to call from many threads: answers that come at the same time are written together.
    """

    def __init__(
        self,
        session: Session,
        *,
        leases: Leases,
        assignment: Assignment,
        batch: BatchProgress,
        annotators: Annotators,
        planner: Planner,
        wall_clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._leases = leases
        self._assignment = assignment
        self._batch = batch
        self._annotators = annotators
        self._planner = planner
        self._wall_clock = wall_clock
        self.rules = AnswerRules(session, leases, annotators)
        self._group_commit = GroupCommit(session, self._events_of, self._acknowledge)

    def collect(
        self,
        annotator: str,
        id: str,
        label: Sequence[str] | None,
        *,
        settles: bool = False,
        role: str = OWNER,
        unasked: bool = True,
        was_asked: bool = False,
    ) -> Receipt:
        """Returns when the answer is in the store. settles: it counts, whatever the votes say; for
        the others see Coordinator.answer. Raises NotAllowed or AnswerRefused (answer_rules).
        """
        check_annotator(annotator)
        answer = QueuedAnswer(
            annotator,
            check_text(id, "id"),
            label,
            settles,
            role=check_role(role),
            unasked=check_flag(unasked, "unasked"),
            was_asked=check_flag(was_asked, "was_asked"),
        )
        return self._group_commit.commit(answer)

    def _events_of(self, answer: QueuedAnswer, others: Collection[QueuedAnswer]) -> list[RunEvent]:
        """What an answer changes, checked. others: those that are written with it."""
        session = self._session
        run_state = session.run_state
        position = session.position_of(answer.id)
        label = checked_label(run_state.task, answer.id, answer.label)
        annotator = answer.annotator
        self.rules.check(answer, position)
        answer.spends_budget = self.rules.spends_budget(answer, position)
        if answer.spends_budget:
            labels = sum(other.spends_budget for other in others)
            self.rules.check_budget(labels + 1)
        if not answer.settles and self._is_vote(annotator, position):
            vote = session.vote_event(
                answer.id,
                label,
                annotator,
                self._assignment.votes_wanted(position),
            )
            return [vote]
        is_labelled = run_state.label_of(position) is not None
        if label is not None or not is_labelled:
            told = session.answers_event({answer.id: label}, annotator)
            return [told]
        # What follows is a skip of an example that has a label.
        labelled_by, _ = run_state.answered_by.get(position, (None, None))
        if not answer.settles and labelled_by != annotator:
            # A page that did not know of the label: nobody's answer is lost by another's skip.
            return []
        withdrawal = session.withdrawal_event([answer.id], annotator)
        skip = AnswersTold([], [position], annotator)
        return [withdrawal, skip]

    def _is_vote(self, annotator: str, position: int) -> bool:
        """Whether an answer is one vote among several: while the example is undecided, from those
        who have voted, and from those who were asked to vote and come late.
        """
        run_state = self._session.run_state
        consensus = run_state.consensus
        voters = consensus.on(position)
        if voters and self._leases.was_revoked(annotator, position):
            return True
        if position in consensus.settled:
            return False
        if voters:
            return position in consensus.open or annotator in voters
        if position not in run_state.waiting:
            return False
        return self._assignment.votes_wanted(position) > 1

    def _acknowledge(self, answer: QueuedAnswer) -> Receipt:
        """What follows once an answer is in the store."""
        run_state = self._session.run_state
        position = run_state.position[answer.id]
        annotator = answer.annotator
        self._leases.heartbeat(annotator)
        self._leases.end(annotator, position)
        if position not in run_state.waiting:
            self._leases.revoke(position)
        time = self._wall_clock()
        self._annotators.record_answer(annotator, position, time)
        if answer.label is None and self._planner.nothing_left:
            self._planner.rest_is_over()  # a skip costs nothing: a budget may have one left
        self._planner.wake()
        return Receipt(
            id=answer.id,
            event=run_state.event,
            counts=run_state.counts(),
            left=self._batch.unanswered(),
        )


def checked_label(task: Task, id: str, label: Sequence[str] | None) -> str | list[str] | None:
    """A label as the task encodes it: one class name in a multi-class task, else a list of them.

    id: of the example, for the message of the InputError that is raised for what is no label.
    """
    if label is None:
        return None
    try:
        class_names = check_list(
            label,
            "label",
            "class names",
            ordered=False,
        )
        names = [check_text(name, "label") for name in class_names]
    except InputError:
        raise InputError(
            f"{id!r}: {shown(label)} is no answer: give a list of class names as label, or "
            "None to skip"
        ) from None
    if not isinstance(task, MultiClass):
        return names
    if len(names) != 1:
        raise InputError(
            f"{id!r}: {names!r} has {len(names)} classes: give exactly one, or None to skip"
        )
    return names[0]
