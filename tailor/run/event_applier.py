"""The one place where events change the state of a run, as they happen and when a run is opened
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from tailor.run import acts, class_merges
from tailor.run.consensus import Vote
from tailor.run.events import (
    ActUndone,
    AnswersTold,
    AnswersWithdrawn,
    ClassesChanged,
    EventLost,
    ExamplesAdded,
    ExamplesSetAside,
    ExamplesVanished,
    FilesSetAside,
    OfferedAgain,
    PoolDescribed,
    RunEvent,
    RunOpened,
    SeveralEvents,
    UnknownKind,
    VoteCast,
    read_event,
)
from tailor.run.goals import GoalsSet
from tailor.run.holdout import sample_by_id
from tailor.run.merge_memory import REMEMBERED, remember
from tailor.run.records import RoundRecord
from tailor.run.round_events import ExamplesAsked, RoundOpened
from tailor.run.state import RunState
from tailor.selection.class_edits import ClassEdit
from tailor.storage.base import Event, Store, StoreError


class EventContext(NamedTuple):
    """Where an event stands in the store."""

    number: int
    time: float  # when it was written, in seconds since 1970
    store: Store  # knows the ids of examples that joined


def apply_stored(run_state: RunState, stored: Event, store: Store) -> None:
    """Read an event of a store and apply it. Raises StoreError where it is unknown or damaged."""
    event = read_stored(stored)
    context = EventContext(stored.number, stored.time, store)
    apply(run_state, event, context)


def read_stored(stored: Event) -> RunEvent:
    """The typed event in an event of a store. Raises StoreError where it is unknown or damaged."""
    try:
        return read_event(stored.kind, stored.body, stored.data)
    except UnknownKind as error:
        raise StoreError(
            f"event {stored.number} is a {error.kind!r}, which this tailor does not know: "
            "upgrade it"
        ) from None
    except Exception as error:
        raise _damaged(stored.number, stored.kind, error) from error


def apply(run_state: RunState, event: RunEvent, context: EventContext) -> None:
    """Change the state as an event says. Raises StoreError where it can't be."""
    try:
        _apply(event, run_state, context)
    except StoreError:
        raise
    except Exception as error:
        raise _damaged(context.number, event.kind, error) from error
    run_state.event = context.number


def _damaged(number: int, kind: str, error: Exception) -> StoreError:
    # What was written once could be applied then: whatever is wrong now, it was damaged since.
    return StoreError(f"event {number} ({kind}) can't be taken in: {error!r}")


@singledispatch
def _apply(event: RunEvent, run_state: RunState, context: EventContext) -> None:
    raise TypeError(f"nothing is known of {type(event).__name__}")


@_apply.register
def _apply_several(event: SeveralEvents, run_state: RunState, context: EventContext) -> None:
    for inner in event.events:
        _apply(inner, run_state, context)


# ---------------------------------------------------------------------- the pool


@_apply.register(RunOpened)
@_apply.register(PoolDescribed)
@_apply.register(EventLost)
def _change_nothing(event: RunEvent, run_state: RunState, context: EventContext) -> None:
    """For whoever opens the run or its pool, or looks for what was lost: nothing changes."""


@_apply.register
def _add_examples(event: ExamplesAdded, run_state: RunState, context: EventContext) -> None:
    all_ids = context.store.examples()
    end = event.first + event.count
    new_ids = all_ids[event.first : end]
    settings = run_state.settings
    for_holdout = sample_by_id(new_ids, settings.holdout, settings.seed)
    run_state.add_examples(new_ids, for_holdout)


@_apply.register
def _set_vanished(event: ExamplesVanished, run_state: RunState, context: EventContext) -> None:
    run_state.vanished = event.positions
    positions = _array(event.positions)
    availability = run_state.label_table.availability
    availability.set_absent(positions)


@_apply.register
def _set_aside(event: ExamplesSetAside, run_state: RunState, context: EventContext) -> None:
    run_state.aside.update(event.reasons)
    positions = list(event.reasons)
    availability = run_state.label_table.availability
    availability.unreadable[positions] = True


@_apply.register
def _set_files_aside(event: FilesSetAside, run_state: RunState, context: EventContext) -> None:
    run_state.files = event.reasons


# ---------------------------------------------------------------------- rounds


@_apply.register
def _open_round(event: RoundOpened, run_state: RunState, context: EventContext) -> None:
    """The round was opened before, or in a copy of this state: the selector learns what it learned
    then.
    """
    if not event.seed_round:
        assert event.weights is not None
        run_state.learner.replay_round(event.weights, event.fit, event.learned)
    record = RoundRecord.opened(event, context.number)
    run_state.rounds.append(record)
    run_state.arm_statistics.new_round()
    run_state.asked_in.append([])


@_apply.register
def _enter_picks(event: ExamplesAsked, run_state: RunState, context: EventContext) -> None:
    run_state.enter_picks(event)


# ---------------------------------------------------------------------- answers


@_apply.register
def _tell(event: AnswersTold, run_state: RunState, context: EventContext) -> None:
    told: list[int] = []
    labels: list[Sequence[int]] = []
    for position, classes in event.answers:
        told.append(position)
        labels.append(classes)
    told_or_skipped = [*told, *event.skipped]
    _note_act(run_state, told_or_skipped, event.by, context)
    run_state.label(_array(told), labels)
    annotator_and_time = (event.by, context.time)
    for position in told:
        run_state.answered_by[position] = annotator_and_time
    run_state.skip(_array(event.skipped))
    class_merges.note_answers(run_state, told_or_skipped)
    for position in told_or_skipped:
        run_state.consensus.settle(position)


@_apply.register
def _vote(event: VoteCast, run_state: RunState, context: EventContext) -> None:
    position = event.position
    classes = None
    if event.classes is not None:
        classes = tuple(event.classes)
    vote = Vote(classes, context.time)
    acts.overtake(run_state, [position], context.number)
    class_merges.note_answers(run_state, [position], event.by)
    run_state.consensus.cast(
        position,
        event.by,
        vote,
        asked=event.of,
    )
    run_state.decide(position)


@_apply.register
def _withdraw(event: AnswersWithdrawn, run_state: RunState, context: EventContext) -> None:
    class_merges.note_answers(run_state, event.positions)
    _note_act(run_state, event.positions, event.by, context)
    run_state.unlabel(_array(event.positions))
    for position in event.positions:
        run_state.consensus.clear(position)


@_apply.register
def _offer_again(event: OfferedAgain, run_state: RunState, context: EventContext) -> None:
    class_merges.note_answers(run_state, event.positions)
    acts.overtake(run_state, event.positions, context.number)
    run_state.offer_again(_array(event.positions))
    for position in event.positions:
        run_state.consensus.clear(position)


@_apply.register
def _undo_act(event: ActUndone, run_state: RunState, context: EventContext) -> None:
    act = acts.find(run_state, event.act, event.of)
    class_merges.note_answers(run_state, act.positions)
    acts.undo_answers(run_state, act)
    acts.mark_undone(
        run_state,
        event.act,
        event.of,
        by=event.by,
        time=context.time,
    )


def _note_act(
    run_state: RunState,
    positions: Sequence[int],
    by: str | None,
    context: EventContext,
) -> None:
    """Before the answers are changed."""
    acts.note_answers(
        run_state,
        positions,
        event=context.number,
        time=context.time,
        by=by,
    )


def _array(positions: Sequence[int]) -> np.ndarray:
    """(n,) int64, also where there are none: an empty list would become one of floats."""
    return np.array(positions, np.int64)


# ---------------------------------------------------------------------- goals


@_apply.register
def _set_goals(event: GoalsSet, run_state: RunState, context: EventContext) -> None:
    run_state.goals = event.goals


# ---------------------------------------------------------------------- classes


@_apply.register
def _change_classes(event: ClassesChanged, run_state: RunState, context: EventContext) -> None:
    before = run_state.task
    kind_of_task = type(before)
    after = kind_of_task(event.classes)
    place = tuple(event.place)
    change = ClassEdit(before, after, place)
    if event.undoes is not None:
        class_merges.take_back(run_state, event.undoes, change)
        acts.mark_undone(
            run_state,
            event.undoes,
            None,
            by=event.by,
            time=context.time,
        )
        return
    # First: what is remembered is the state before the change.
    merge = remember(
        run_state,
        change,
        context.number,
        event.by,
    )
    acts.note_classes(
        run_state,
        change,
        event=context.number,
        time=context.time,
        by=event.by,
    )
    class_merges.reclass(run_state, change)
    if merge is not None:
        merges = [*run_state.merges, merge]
        run_state.merges = merges[-REMEMBERED:]
