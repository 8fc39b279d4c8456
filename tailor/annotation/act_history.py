"""What people have decided over others or for everybody: shown with its author, and taken back."""

from __future__ import annotations

from dataclasses import dataclass

from tailor.annotation.annotators import check_annotator
from tailor.annotation.answer_rules import AnswerRules
from tailor.annotation.planner import Planner
from tailor.annotation.roles import OWNER, RIGHT_OF_ACT, check_may, may
from tailor.common.checks import check_text, check_whole
from tailor.errors import InputError
from tailor.run import acts
from tailor.run.acts import Act
from tailor.run.session import Session
from tailor.run.state import RunState

#: ids that are named of an act about many examples
MOST_IDS = 5


@dataclass(frozen=True)
class ActItem:
    """An act as a page shows it."""

    event: int
    time: float
    by: str  # "" where it is not known
    kind: str  # a key of RIGHT_OF_ACT
    classes: tuple[str, ...]  # concerned, as they were called then
    ids: tuple[str, ...]  # of the first examples concerned
    examples: int  # how many there are
    before: tuple[str, ...] | None  # of the first example: its label before, None: it had none
    undone_by: str | None
    undone_at: float | None
    can_undo: bool  # by whoever asks


class ActHistory:
    """The latest acts of a run (tailor.run.acts). Safe to call from many threads."""

    def __init__(self, session: Session, planner: Planner, rules: AnswerRules) -> None:
        self._session = session
        self._planner = planner
        self._rules = rules

    def latest(self, n: int = 100, *, role: str = OWNER) -> list[ActItem]:
        """Up to n acts, newest first. role: of whoever asks, for what may be taken back."""
        n = check_whole(n, "n")
        with self._session.lock:
            run_state = self._session.run_state
            newest_first = run_state.acts[: -n - 1 : -1]
            return [_act_item(run_state, act, role) for act in newest_first]

    def undo(
        self,
        event: int,
        of: str,
        by: str,
        *,
        role: str = OWNER,
    ) -> None:
        """Take back what `of` has decided in an event. Raises NotAllowed where the role may not do
        such a thing itself, InputError where others have come to depend on it, AnswerRefused where
        the labels that come back exceed the budget.
        """
        event = check_whole(event, "event")
        check_text(of, "of")
        check_annotator(by)
        with self._session.lock:
            act = acts.find(self._session.run_state, event, of)
            check_may(role, RIGHT_OF_ACT[act.kind])
            self._check_budget(act)
            self._session.undo(event, of, by=by)
        if act.before:
            self._planner.wake()
        else:
            self._planner.forget()  # a round that is ready was planned for the classes before

    def _check_budget(self, act: Act) -> None:
        """Labels that come back to examples that do not wait were never asked for, or were skipped
        since.
        """
        run_state = self._session.run_state
        labels = 0
        for before in act.before:
            position = before.position
            has_label = run_state.label_of(position) is not None
            is_spent = has_label or position in run_state.waiting
            if before.classes is not None and not is_spent:
                labels += 1
        if labels:
            self._rules.check_budget(labels)


def _act_item(run_state: RunState, act: Act, role: str) -> ActItem:
    # The keys of a dictionary: each once, in the order in which they came.
    positions = list(dict.fromkeys(act.positions))
    ids = [run_state.ids[position] for position in positions[:MOST_IDS]]
    return ActItem(
        event=act.event,
        time=act.time,
        by=act.by,
        kind=act.kind,
        classes=act.names,
        ids=tuple(ids),
        examples=len(positions),
        before=_label_before(run_state, act),
        undone_by=act.undone_by,
        undone_at=act.undone_at,
        can_undo=may(role, RIGHT_OF_ACT[act.kind]) and _is_possible(run_state, act),
    )


def _label_before(run_state: RunState, act: Act) -> tuple[str, ...] | None:
    """The classes that the first example of an act had before it; None where it had no label."""
    if not act.before:
        return None
    classes = act.before[0].classes
    if classes is None:
        return None
    names = [run_state.task.classes[k] for k in classes]
    return tuple(names)


def _is_possible(run_state: RunState, act: Act) -> bool:
    try:
        acts.find(run_state, act.event, act.by)
        if act.kind == "merged":
            if not run_state.merges:
                return False
            latest_merge = run_state.merges[-1]
            return latest_merge.event == act.event
        if not act.before:
            acts.class_edit_back(run_state, act)
    except InputError:
        return False
    return True
