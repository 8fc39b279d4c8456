"""Where answers are taken in. It needs the store alone: no pool, no model."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tailor.common.checks import check_list, check_whole, shown
from tailor.errors import InputError, UnknownName
from tailor.run.settings import Settings
from tailor.run.state import PickRecord, rebuild
from tailor.selection.class_edits import ClassEdit, added, merged, renamed
from tailor.storage.base import Event, Store, StoreError

#: an answer that says: this one can't be answered
SKIP = None


#: up to so many ids an unknown one is compared with all of them, to name the nearest
MOST_COMPARED = 200

#: the kind and the body of an event to come
Happening = tuple[str, dict[str, Any]]


class AnswerWriter:
    """A run as far as its answers go. Every event is in the store before it counts."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        if next(self.store.events(), None) is None:
            self.store.append("opened", {"settings": settings.as_dict()})
        self.run_state = rebuild(settings, store)
        begun = next(self.store.events()).body["settings"]
        #: as the run was begun: its classes may be edited any number of times before it is rebuilt
        self._begun = replace(settings, classes=tuple(begun["classes"]))

    @property
    def settings(self) -> Settings:
        """The run's, with its classes of today."""
        return self.run_state.settings

    # ------------------------------------------------------------------ answers

    def tell(self, answers: Mapping[str, Any], by: str | None = None) -> None:
        """Answers by id: a class name or index, a list of them (multi-label), or SKIP.

        In part, late, in any order, again or corrected: all fine. An id that was not asked counts
        as outside knowledge, credited to no arm. They are in the store when this returns; with a
        bad one among them, none is.
        """
        self.record([self.telling(answers, by)])

    def telling(self, answers: Mapping[str, Any], by: str | None = None) -> Happening:
        """What tell() records, checked."""
        _check_name(by)
        if not isinstance(answers, Mapping):
            raise InputError(
                f"answers is {shown(answers)}: answers by id are needed, for pairs dict(pairs)"
            )
        told = []
        skipped = []
        for one, answer in answers.items():
            position = self._position(one)
            if answer is not SKIP:
                told.append([position, self._classes(one, answer)])
            elif self.run_state.label_of(position) is not None:
                raise InputError(f"{one!r} has a label: it can be corrected, but not skipped")
            else:
                skipped.append(position)
        return "told", {"answers": told, "skipped": skipped, "by": by}

    def vote(self, one: str, answer: Any, by: str, of: int) -> None:
        """One person's answer to an example that `of` people are asked about.

        It counts once that many votes are in and more than half of them agree. tell() settles the
        matter at once.
        """
        self.record([self.voting(one, answer, by, of)])

    def voting(self, one: str, answer: Any, by: str, of: int) -> Happening:
        """What vote() records, checked."""
        _check_name(by)
        of = check_whole(of, "of")
        if not by:
            raise InputError(f"by is {by!r}: a vote needs the name of whoever gives it")
        classes = None if answer is SKIP else self._classes(one, answer)
        return "vote", {"position": self._position(one), "classes": classes, "by": by, "of": of}

    def withdraw(self, ids: Iterable[str], by: str | None = None) -> None:
        """These answers were deleted, as if they had never come: what was asked waits again, the
        rest is free from the next round on. One that is told again takes the place of the one
        withdrawn, in the round that learned of it.
        """
        self.record([self.withdrawing(ids, by)])

    def withdrawing(self, ids: Iterable[str], by: str | None = None) -> Happening:
        """What withdraw() records, checked."""
        _check_name(by)
        where = self._positions(ids)
        for position in where:
            run_state = self.run_state
            if run_state.label_of(position) is None and not (
                run_state.is_skipped(position) or run_state.votes.on(position)
            ):
                raise InputError(f"{run_state.ids[position]!r} has no answer: nothing to withdraw")
        return "withdrawn", {"positions": where, "by": by}

    def _classes(self, one: str, answer: Any) -> list[int]:
        try:
            return np.flatnonzero(self.run_state.task.encode([answer])[0]).tolist()
        except InputError as error:
            raise type(error)(*_arguments(error, f"{one!r}: ")) from error

    def offer_again(self, ids: Iterable[str]) -> None:
        """Skipped examples may be asked again."""
        where = self._positions(ids)
        for position, holdout in zip(
            where, self.run_state.is_holdout(np.array(where, np.int64)).tolist()
        ):
            label_table = self.run_state.holdout_table if holdout else self.run_state.label_table
            if not label_table.is_skipped(position):
                raise InputError(
                    f"{self.run_state.ids[position]!r} is not skipped: nothing to offer again"
                )
        self._record("again", {"positions": where})

    def waiting(self) -> list[PickRecord]:
        """Asked and not answered, oldest first."""
        run_state = self.run_state
        where = sorted(run_state.waiting, key=lambda p: run_state.pick_records[p][:2])
        return [s for p in where if (s := run_state.pick_record(p)) is not None]

    def _position(self, one: str) -> int:
        position = self.run_state.position.get(one) if isinstance(one, str) else None
        if position is None:
            raise self._unknown_example(str(one))
        return position

    def _positions(self, ids: Iterable[str]) -> list[int]:
        """Each once."""
        return list(
            dict.fromkeys(
                self._position(one) for one in check_list(ids, "ids", "ids", ordered=False)
            )
        )

    def _unknown_example(self, name: str) -> UnknownName:
        """At the same small price however many examples there are: whoever asks may hold
        everybody's lock.
        """
        ids = self.run_state.ids
        if len(ids) <= MOST_COMPARED:
            return UnknownName("example", name, ids)
        return UnknownName("example", name, ids[:3], others=len(ids) - 3)

    # ------------------------------------------------------------------ classes

    def add_class(self, name: str, by: str | None = None) -> None:
        """A new class, in the middle of a run. So far nothing is labelled as one."""
        self._change_classes(added(self.run_state.task, name), by)

    def rename_class(self, old: str, new: str, by: str | None = None) -> None:
        self._change_classes(renamed(self.run_state.task, old, new), by)

    def merge_classes(self, old: str, into: str, by: str | None = None) -> None:
        """What was labelled `old` is labelled `into`, and `old` is no more."""
        self._change_classes(merged(self.run_state.task, old, into), by)

    def undo_merge(self, event: int | None = None, by: str | None = None) -> None:
        """Take the latest merge back. Labels and votes given before it are exactly what they were;
        those given since stay in the class that was left. event: its number, where only this merge
        is meant.
        """
        merge = self.run_state.last_merge(None if event is None else check_whole(event, "event"))
        self._change_classes(merge.change(self.run_state.task), by, undoes=merge.event)

    def _change_classes(self, change: ClassEdit, by: str | None, undoes: int | None = None) -> None:
        """Labels, posteriors and counts follow. Nothing is changed where arms, selector or reward
        can't.

        undoes: the event of the merge that is taken back
        """
        _check_name(by)
        trial = self.run_state.copy()
        body = {"classes": list(change.after.classes), "place": list(change.place), "by": by}
        if undoes is None:
            trial.reclass(change)
        else:
            trial.unmerge(undoes, change)
            body["undoes"] = undoes
        trial.learner.try_out()
        self._record("classes", body)

    # ------------------------------------------------------------------ store

    def _append(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> Event:
        try:
            number = self.store.append(kind, body, data)
        except BaseException:
            with contextlib.suppress(
                StoreError
            ):  # it may be away; what is missing is noticed with the next event
                self._start_over()
            raise
        return Event(number, time.time(), kind, body, data)

    def _start_over(self) -> None:
        """Something went wrong between memory and store: the store is right."""
        self.run_state = rebuild(self._begun, self.store)

    def record(self, happened: Sequence[Happening]) -> None:
        """What was checked, all or none, at the price of one event."""
        if len(happened) == 1:
            self._record(*happened[0])
        elif happened:
            self._record("several", {"events": [list(one) for one in happened]})

    def _record(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> None:
        """Write an event, then take it in."""
        event = self._append(kind, body, data)
        if event.number == self.run_state.event + 1:
            self.run_state.apply(event, self.store)
        else:  # one is in the store that was thought lost
            self._start_over()


def _check_name(by: str | None) -> None:
    if by is not None and not isinstance(by, str):
        raise InputError(f"by is {shown(by)}: it must be a name")


def _arguments(error: InputError, where: str) -> tuple[Any, ...]:
    if isinstance(error, UnknownName):
        return (f"class for {where}", error.name, error.known)
    return (where + str(error),)
