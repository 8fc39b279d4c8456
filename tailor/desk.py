"""Where answers are taken in. It needs the store alone: no pool, no model."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tailor.errors import InputError, UnknownName
from tailor.journal import Journal, Story
from tailor.settings import Settings
from tailor.store.base import Event, Store

#: an answer that says: this one can't be answered
SKIP = None


class Desk:
    """A run as far as its answers go. Every event is in the store before it counts."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store, self.settings = store, settings
        first = next(self.store.events(), None)
        if first is None:
            self.store.append("opened", {"settings": settings.as_dict()})
        else:
            settings.check_same(first.body["settings"])
        self.journal = self._replay()

    def tell(self, answers: Mapping[str, Any], by: str | None = None) -> None:
        """Answers by id: a class name or index, a list of them (multi-label), or SKIP.

        In part, late, in any order, again or corrected: all fine. An id that was not asked counts as outside
        knowledge, credited to no arm. They are in the store when this returns; with a bad one among them, none is.
        """
        if by is not None and not isinstance(by, str):
            raise InputError(f"by is {by!r}: it must be a name")
        told, skipped = [], []
        for one, answer in answers.items():
            position = self._position(one)
            if answer is not SKIP:
                told.append([position, self._classes(one, answer)])
            elif self._is_labelled(position):
                raise InputError(f"{one!r} has a label: it can be corrected, but not skipped")
            else:
                skipped.append(position)
        self._record("told", {"answers": told, "skipped": skipped, "by": by})

    def _classes(self, one: str, answer: Any) -> list[int]:
        try:
            return np.flatnonzero(self.journal.task.encode([answer])[0]).tolist()
        except InputError as error:
            raise type(error)(*_arguments(error, f"{one!r}: ")) from error

    def offer_again(self, ids: Sequence[str]) -> None:
        """Skipped examples may be asked again."""
        where = list(dict.fromkeys(self._position(one) for one in ids))
        for position, reserve in zip(where, self.journal.is_reserve(np.array(where, np.int64)).tolist()):
            books = self.journal.kept if reserve else self.journal.books
            if position not in books.skipped:
                raise InputError(f"{self.journal.ids[position]!r} is not skipped: nothing to offer again")
        self._record("again", {"positions": where})

    def waiting(self) -> list[Story]:
        """Asked and not answered, oldest first."""
        journal = self.journal
        where = np.concatenate([journal.books.pending, journal.kept.pending]).tolist()
        where.sort(key=lambda p: journal.stories[p][:2])
        return [s for p in where if (s := journal.story(p)) is not None]

    def _is_labelled(self, position: int) -> bool:
        return not (self.journal.books.unlabelled[position] and self.journal.kept.unlabelled[position])

    def _position(self, one: str) -> int:
        if one not in self.journal.position:
            near = [i for i in self.journal.ids if i[:3] == str(one)[:3]][:1000] or self.journal.ids[:1000]
            raise UnknownName("example", str(one), near)
        return self.journal.position[one]

    # ------------------------------------------------------------------ store

    def _replay(self) -> Journal:
        journal = Journal(self.settings)
        for event in self.store.events():
            journal.apply(event, self.store)
        return journal

    def _append(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> Event:
        try:
            number = self.store.append(kind, body, data)
        except BaseException:
            self._start_over()
            raise
        return Event(number, time.time(), kind, body, data)

    def _start_over(self) -> None:
        """Something went wrong between memory and store: the store is right."""
        self.journal = self._replay()

    def _record(self, kind: str, body: dict[str, Any], data: bytes | None = None) -> None:
        """Write an event, then take it in."""
        self.journal.apply(self._append(kind, body, data), self.store)


def _arguments(error: InputError, where: str) -> tuple[Any, ...]:
    if isinstance(error, UnknownName):
        return (f"class for {where}", error.name, error.known)
    return (where + str(error),)
