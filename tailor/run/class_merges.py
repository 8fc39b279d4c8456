"""Changes of the class list in a run's state: classes are added, renamed and merged, and merges are
taken back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tailor.errors import InputError
from tailor.run import acts
from tailor.run.merge_memory import Merge
from tailor.run.merge_restoring import restore
from tailor.run.state import RunState
from tailor.selection.class_edits import ClassEdit


def reclass(run_state: RunState, change: ClassEdit) -> None:
    """From now on the classes are others: all that is known is told in them, as if they had been
    there at first.

    What waits goes on waiting. The rest of an open round is dropped, for its plan was made for
    other classes.
    """
    learner = run_state.learner
    after = change.after
    # The learner first: it knows what each arm has become, which all others follow.
    arms_after = learner.reclass(change)
    arm_count = len(learner.arms)
    run_state.task = after
    run_state.settings = replace(run_state.settings, classes=after.classes)
    for record in run_state.rounds:
        record.reclass(change, arms_after, arm_count)
    current = run_state.current
    if current is not None and not change.only_names:
        current.drop_rest()
    run_state.consensus.reclass(change)
    run_state.arm_statistics.reclass(arms_after, after.size)
    acts.reclass(run_state, change)
    _count_anew(run_state)


def _count_anew(run_state: RunState) -> None:
    """What the arms found, and what the votes say, in the classes of now."""
    run_state.arm_statistics.found.clear()
    picks = run_state.label_table.picks
    run_state.count_found(picks.positions, 1)
    voted_on = list(run_state.consensus.asked)
    for position in voted_on:
        run_state.decide(position)


def note_answers(run_state: RunState, positions: Iterable[int], by: str | None = None) -> None:
    """These are answered now: they stay as they are when a merge before is taken back."""
    if not run_state.merges:
        return
    answers = [(position, by) for position in positions]
    for merge in run_state.merges:
        merge.since.update(answers)


def last_merge(run_state: RunState, event: int | None = None) -> Merge:
    """The merge that can be taken back; event: it must be this one. Raises InputError if not."""
    if not run_state.merges:
        raise InputError("there is no merge of classes to take back")
    latest = run_state.merges[-1]
    if event is None:
        return latest
    if latest.event == event:
        return latest
    raise InputError(
        "another merge came later or this one is taken back already: the latest is "
        f"{latest.old!r} into {latest.into!r}"
    )


def take_back(run_state: RunState, event: int, change: ClassEdit) -> None:
    """Take back what an event has done to the classes: a merge, which parts what was one, or what
    needs nothing but the change, a new name or a new class.
    """
    parts_classes = change.after.size > change.before.size
    if parts_classes:
        undo(run_state, event, change)
    else:
        reclass(run_state, change)


def undo(run_state: RunState, event: int, change: ClassEdit) -> None:
    """Take the latest merge back: labels, votes, predictions and picks are what they were; what
    came since stays in the class that was left. Later picks of the open round are dropped, as with
    any change.
    """
    merge = last_merge(run_state, event)
    # First the classes, so that what is remembered has a place to go back to.
    reclass(run_state, change)
    restore(run_state, merge)
    run_state.merges = run_state.merges[:-1]
    _count_anew(run_state)
