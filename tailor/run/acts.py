"""What people have decided over others or changed for everybody, with what was there before: so it
can be shown with its author, and taken back.

Like what a merge loses (tailor.run.merge_memory), nothing of this is stored: the state remembers it
when the event is applied, and has it again after the events were gone through once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tailor.errors import InputError
from tailor.run.consensus import Vote, reclassed_vote
from tailor.run.state import RunState
from tailor.selection.class_edits import ClassEdit, removed, renamed

#: acts that are remembered, the latest first
REMEMBERED = 1000
#: answers of one person in one event that are remembered: a file that is told is no act
MOST_ANSWERS = 1000

AnswerAct = Literal["settled", "overwrote", "told unasked"]
ClassAct = Literal["added", "renamed", "merged"]


@dataclass(frozen=True)
class AnswerBefore:
    """What was known of an example before an act."""

    position: int
    classes: tuple[int, ...] | None  # of its label; None: it had none
    skipped: bool
    answered: tuple[str | None, float] | None  # (annotator, time) of the label
    votes: dict[str, Vote]
    asked: int  # how many votes were asked for; 0 where nobody has voted
    settled: bool
    #: (event, by) of the act that had given it the answer that it had; None: no act had
    latest_act: tuple[int, str] | None = None

    def reclassed(self, change: ClassEdit) -> AnswerBefore:
        """The same in other classes."""
        classes = self.classes
        if classes is not None:
            classes = tuple(change.indices(classes))
        votes = {}
        for name, vote in self.votes.items():
            votes[name] = reclassed_vote(vote, change)
        return replace(self, classes=classes, votes=votes)


@dataclass(frozen=True)
class Act:
    """A decision of one person: about the classes, or about answers.

    event        its number; with `by` it names the act
    by           "" where the classes were changed by nobody known
    names        of the classes that it is about, as they were called then
    before       of each example that it is about
    overtaken    positions whose answers have changed since
    undone_by    who has taken it back, and when
    """

    event: int
    time: float
    by: str
    kind: AnswerAct | ClassAct
    names: tuple[str, ...] = ()
    before: tuple[AnswerBefore, ...] = ()
    overtaken: frozenset[int] = frozenset()
    undone_by: str | None = None
    undone_at: float | None = None

    @property
    def is_undone(self) -> bool:
        return self.undone_at is not None

    @property
    def positions(self) -> list[int]:
        return [before.position for before in self.before]


# ---------------------------------------------------------------------- remembering


def note_answers(
    run_state: RunState,
    positions: Sequence[int],
    *,
    event: int,
    time: float,
    by: str | None,
) -> None:
    """Someone is about to tell, skip or withdraw the answers of these examples: what is decided
    over others, or was not asked for, is an act.
    """
    if by is None or len(positions) > MOST_ANSWERS:
        overtake(run_state, positions, event)
        return
    of_kind: dict[AnswerAct, list[AnswerBefore]] = {}
    for position in positions:
        kind = _kind_of_answer(run_state, position, by)
        if kind is not None:
            befores = of_kind.setdefault(kind, [])
            before = _answer_before(run_state, position)
            befores.append(before)
    acts = []
    for kind, befores in of_kind.items():
        act = Act(event, time, by, kind, before=tuple(befores))
        acts.append(act)
    overtake(run_state, positions, event)
    for act in acts:
        _remember(run_state, act)


def overtake(run_state: RunState, positions: Iterable[int], event: int) -> None:
    """These examples have other answers from now on: no act before can be taken back for them."""
    changed = run_state.acted_on.intersection(positions)
    if not changed:
        return
    for index, act in enumerate(run_state.acts):
        if act.event == event:
            continue
        overtaken = changed.intersection(act.positions)
        if overtaken:
            run_state.acts[index] = replace(act, overtaken=act.overtaken | overtaken)


def note_classes(
    run_state: RunState,
    change: ClassEdit,
    *,
    event: int,
    time: float,
    by: str | None,
) -> None:
    """The classes are about to be changed."""
    before = change.before.classes
    after = change.after.classes
    if before == after:
        return  # a class that was given the name it has
    gone = _without(before, after)
    new = _without(after, before)
    kind: ClassAct = "renamed"
    names = gone + new
    if len(after) > len(before):
        kind = "added"
    elif len(after) < len(before):
        kind = "merged"
        place = change.place[before.index(gone[0])]
        names = (*gone, after[place])
    act = Act(event, time, by or "", kind, names)
    _remember(run_state, act)


def _without(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Those of the names that are not among the others."""
    left = []
    for name in names:
        if name not in others:
            left.append(name)
    return tuple(left)


def _remember(run_state: RunState, act: Act) -> None:
    acts = run_state.acts
    run_state.acted_on.update(act.positions)
    for index, other in enumerate(acts):
        is_same = other.event == act.event and other.by == act.by
        if is_same:
            # Answers that one person gave at the same moment are taken back together.
            acts[index] = replace(other, before=other.before + act.before)
            return
    acts.append(act)
    del acts[:-REMEMBERED]


def _kind_of_answer(run_state: RunState, position: int, by: str) -> AnswerAct | None:
    """What an answer of this person is beyond an answer to what was asked; None: nothing."""
    consensus = run_state.consensus
    if consensus.on(position) and position not in consensus.settled:
        return "settled"
    labelled_by, _ = run_state.answered_by.get(position, (None, None))
    has_label = run_state.label_table.has_label(position)
    if has_label and labelled_by != by:
        return "overwrote"
    if position in consensus.settled and not has_label:
        return "overwrote"
    was_asked = bool(run_state.label_table.picks.stands[position])
    if not was_asked and not has_label:
        return "told unasked"
    return None


def _answer_before(run_state: RunState, position: int) -> AnswerBefore:
    classes = None
    label = run_state.label_of(position)
    if label is not None:
        classes = tuple(np.flatnonzero(label).tolist())
    consensus = run_state.consensus
    return AnswerBefore(
        position=position,
        classes=classes,
        skipped=run_state.is_skipped(position),
        answered=run_state.answered_by.get(position),
        votes=dict(consensus.on(position)),
        asked=consensus.asked.get(position, 0),
        settled=position in consensus.settled,
        latest_act=_latest_act(run_state, position),
    )


def _latest_act(run_state: RunState, position: int) -> tuple[int, str] | None:
    if position not in run_state.acted_on:
        return None
    for act in reversed(run_state.acts):
        is_latest = position in act.positions and position not in act.overtaken
        if is_latest and not act.is_undone:
            return act.event, act.by
    return None


def reclass(run_state: RunState, change: ClassEdit) -> None:
    """The classes are others from now on."""
    run_state.acts = [_reclassed(act, change) for act in run_state.acts]


def _reclassed(act: Act, change: ClassEdit) -> Act:
    befores = [before.reclassed(change) for before in act.before]
    return replace(act, before=tuple(befores))


def part_again(run_state: RunState, remembered: Sequence[Act], later: ClassEdit) -> None:
    """A merge is taken back: what was before each act is told in the classes of before the merge.

    remembered: the acts as they stood then; later: from the classes of then to those of now
    """
    parted = {}
    for act in remembered:
        reclassed = _reclassed(act, later)
        parted[act.event, act.by] = reclassed.before
    for index, act in enumerate(run_state.acts):
        before = parted.get((act.event, act.by))
        if before is not None:
            run_state.acts[index] = replace(act, before=before)


# ---------------------------------------------------------------------- taking back


def find(run_state: RunState, event: int, of: str) -> Act:
    """The act of this person in this event. Raises InputError where none is remembered, or where it
    can't be taken back any more.
    """
    for act in run_state.acts:
        if (act.event, act.by) == (event, of):
            _check_can_undo(run_state, act)
            return act
    raise InputError(
        f"nothing of {of!r} in event {event} can be taken back: the last {REMEMBERED} acts are "
        "remembered, answers to what was asked are corrected instead"
    )


def _check_can_undo(run_state: RunState, act: Act) -> None:
    if act.is_undone:
        raise InputError(f"{act.undone_by or 'someone'} has taken this back already")
    if act.overtaken:
        example_id = run_state.ids[min(act.overtaken)]
        raise InputError(
            f"{example_id!r} was answered again since: take that back first, or correct it"
        )


def class_edit_back(run_state: RunState, act: Act) -> ClassEdit:
    """The change that takes an added or renamed class back. Raises InputError where others have
    come to depend on it.
    """
    task = run_state.task
    if act.kind == "renamed":
        old, new = act.names
        if new not in task.classes:
            raise InputError(f"{new!r} is no class any more: take back what came since first")
        return renamed(task, new, old)
    (name,) = act.names
    if name not in task.classes:
        raise InputError(f"{name!r} is no class any more: take back what came since first")
    labels = run_state.counts()[name]
    if labels or _is_voted_for(run_state, task.index(name)):
        raise InputError(
            f"{name!r} has {labels} labels, or votes: merge it into another class instead"
        )
    if any(merge.event > act.event for merge in run_state.merges):
        raise InputError("classes were merged since: undo the merge first")
    return removed(task, name)


def _is_voted_for(run_state: RunState, klass: int) -> bool:
    for votes in run_state.consensus.everything():
        for vote in votes.values():
            if vote.classes is not None and klass in vote.classes:
                return True
    return False


def undo_answers(run_state: RunState, act: Act) -> None:
    """The answers that an act has changed are what they were."""
    for before in reversed(act.before):
        _restore(run_state, before)
        if before.latest_act is not None:
            _free(run_state, before.latest_act, before.position)


def _free(run_state: RunState, key: tuple[int, str], position: int) -> None:
    """The act is the latest on this example again, and can be taken back."""
    for index, act in enumerate(run_state.acts):
        if (act.event, act.by) == key:
            overtaken = act.overtaken - {position}
            run_state.acts[index] = replace(act, overtaken=overtaken)


def _restore(run_state: RunState, before: AnswerBefore) -> None:
    position = before.position
    positions = np.array([position])
    run_state.unlabel(positions)
    run_state.consensus.restore(position, before.votes, before.asked, before.settled)
    votes_decide = bool(before.votes) and not before.settled
    if votes_decide:
        run_state.decide(position)
        return
    if before.classes is not None:
        run_state.label(positions, [before.classes])
    elif before.skipped:
        run_state.skip(positions)
    if before.answered is not None:
        run_state.answered_by[position] = before.answered


def mark_undone(
    run_state: RunState,
    event: int,
    of: str | None,
    *,
    by: str | None,
    time: float,
) -> None:
    """of None: whoever's act the event is, as with a change of the classes."""
    for index, act in enumerate(run_state.acts):
        if act.event == event and of in (None, act.by):
            run_state.acts[index] = replace(act, undone_by=by, undone_at=time)
