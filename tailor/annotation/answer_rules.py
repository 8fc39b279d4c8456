"""Which answers count: what was asked of that person, or what one who may says all the same; and
never more than the budget allows.
"""

from __future__ import annotations

from tailor.annotation.annotators import Annotators
from tailor.annotation.group_commit import QueuedAnswer
from tailor.annotation.leases import Leases
from tailor.annotation.roles import Right, check_may, may
from tailor.errors import InputError
from tailor.run.session import Session
from tailor.run.state import RunState


class AnswerRefused(InputError):
    """An answer that does not count: it was not asked of this person, another's answer stands, or
    the budget is spent. Nothing was changed.
    """


class AnswerRules:
    """Checks answers before they are written. Callers hold the session's lock."""

    def __init__(self, session: Session, leases: Leases, annotators: Annotators) -> None:
        self._session = session
        self._leases = leases
        self._annotators = annotators

    @property
    def _run_state(self) -> RunState:
        return self._session.run_state

    def check(self, answer: QueuedAnswer, position: int) -> None:
        """Raises NotAllowed or AnswerRefused where this person may not say this."""
        if answer.settles:
            check_may(answer.role, Right.SETTLE)
            return
        other = self._whose_answer_stands(answer.annotator, position)
        if other is not None:
            if may(answer.role, Right.OVERWRITE):
                return
            raise AnswerRefused(
                f"{other} has answered {answer.id!r} meanwhile, and that counts: a reviewer or an "
                "owner can change it"
            )
        if self._was_asked(answer, position):
            return
        if answer.unasked and may(answer.role, Right.TELL_UNASKED):
            return
        raise AnswerRefused(
            f"{answer.id!r} was not asked of {answer.annotator}: reload the page for examples to "
            "label; a label from elsewhere is marked as unasked, by a reviewer or an owner"
        )

    def _whose_answer_stands(self, annotator: str, position: int) -> str | None:
        """The name of another person whose answer would be replaced; None: nobody's would."""
        consensus = self._run_state.consensus
        votes = consensus.on(position)
        is_settled = position in consensus.settled
        labelled_by, _ = self._run_state.answered_by.get(position, (None, None))
        if self._run_state.label_of(position) is None:
            # A skip that someone settled a disagreement with stands, too.
            if is_settled:
                return "someone else"
            return None
        if labelled_by == annotator:
            return None
        if annotator in votes and not is_settled:
            return None
        if votes and not is_settled and self._leases.was_revoked(annotator, position):
            return None  # a late vote, which replaces nobody's
        return labelled_by or "someone else"

    def _was_asked(self, answer: QueuedAnswer, position: int) -> bool:
        annotator = answer.annotator
        if answer.was_asked or annotator in self._leases.holders(position):
            return True
        if self._leases.was_revoked(annotator, position):
            return True
        # Whoever has answered was asked: corrections, also of a skip.
        return self._annotators.has_answered(annotator, position)

    def spends_budget(self, answer: QueuedAnswer, position: int) -> bool:
        """Whether a label is given that the budget does not hold yet: what waits is spent when it
        is asked for.
        """
        if answer.label is None or position in self._run_state.waiting:
            return False
        return self._run_state.label_of(position) is None

    def check_budget(self, labels: int) -> None:
        """Raises AnswerRefused where so many labels beside those that wait exceed the budget."""
        left = self._session.budget_left()
        if left is None or labels <= left:
            return
        raise AnswerRefused(
            f"{max(0, left)} labels are left in the budget beside those that wait for an answer: "
            "raise it under [stop] in tailor.toml, or skip what waits"
        )
