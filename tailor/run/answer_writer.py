"""Where answers and goals are checked and recorded, and what people decided is taken back. It needs
the store alone: no pool, no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tailor.common.checks import check_instance, check_list, check_text, check_whole, shown
from tailor.errors import InputError, UnknownName
from tailor.run import acts
from tailor.run.class_writer import ClassWriter, check_annotator
from tailor.run.events import (
    ActUndone,
    AnswersTold,
    AnswersWithdrawn,
    OfferedAgain,
    VoteCast,
)
from tailor.run.goals import Goals, GoalsSet
from tailor.run.records import PickRecord

#: an answer that says: this one can't be answered
SKIP = None

#: up to so many ids an unknown one is compared with all of them, to name the nearest
MOST_COMPARED = 200


class AnswerWriter(ClassWriter):
    """A run as far as its answers and classes go. Every event is in the store before it counts."""

    # ------------------------------------------------------------------ answers

    def tell(self, answers: Mapping[str, Any], by: str | None = None) -> None:
        """Answers by id: a class name or index, a list of them (multi-label), or SKIP.

        In part, late, in any order, again or corrected: all fine. An id that was not asked counts
        as outside knowledge, credited to no arm. They are in the store when this returns; with a
        bad one among them, none is.
        """
        event = self.answers_event(answers, by)
        self._record(event)

    def answers_event(self, answers: Mapping[str, Any], by: str | None = None) -> AnswersTold:
        """What tell() records, checked."""
        check_annotator(by)
        if not isinstance(answers, Mapping):
            raise InputError(
                f"answers is {shown(answers)}: answers by id are needed, for pairs dict(pairs)"
            )
        told = []
        skipped = []
        for example_id, answer in answers.items():
            position = self.position_of(example_id)
            if answer is SKIP:
                self._check_can_skip(position)
                skipped.append(position)
            else:
                classes = self._classes(example_id, answer)
                told.append((position, classes))
        return AnswersTold(told, skipped, by)

    def _check_can_skip(self, position: int) -> None:
        run_state = self.run_state
        if not run_state.label_table.has_label(position):
            return
        example_id = run_state.ids[position]
        raise InputError(f"{example_id!r} has a label: it can be corrected, but not skipped")

    def vote(
        self,
        id: str,
        answer: Any,
        by: str,
        of: int,
    ) -> None:
        """One person's answer to an example that `of` people are asked about.

        It counts once that many votes are in and more than half of them agree. tell() settles the
        matter at once.
        """
        event = self.vote_event(
            id,
            answer,
            by,
            of,
        )
        self._record(event)

    def vote_event(
        self,
        id: str,
        answer: Any,
        by: str,
        of: int,
    ) -> VoteCast:
        """What vote() records, checked."""
        check_annotator(by)
        of = check_whole(of, "of")
        if not by:
            raise InputError(f"by is {by!r}: a vote needs the name of whoever gives it")
        classes = None
        if answer is not SKIP:
            classes = self._classes(id, answer)
        position = self.position_of(id)
        # Of an example that has a label, too: votes are kept, whether they count or not.
        return VoteCast(
            position,
            classes,
            by,
            of,
        )

    def withdraw(self, ids: Iterable[str], by: str | None = None) -> None:
        """These answers were deleted, as if they had never come: what was asked waits again, the
        rest is free from the next round on. One that is told again takes the place of the one
        withdrawn, in the round that learned of it.
        """
        event = self.withdrawal_event(ids, by)
        self._record(event)

    def withdrawal_event(self, ids: Iterable[str], by: str | None = None) -> AnswersWithdrawn:
        """What withdraw() records, checked."""
        check_annotator(by)
        positions = self._positions_of(ids)
        for position in positions:
            if self._has_answer(position):
                continue
            example_id = self.run_state.ids[position]
            raise InputError(f"{example_id!r} has no answer: nothing to withdraw")
        return AnswersWithdrawn(positions, by)

    def _has_answer(self, position: int) -> bool:
        """Whether there is a label, a skip or a vote."""
        run_state = self.run_state
        if run_state.label_table.has_label(position):
            return True
        if run_state.is_skipped(position):
            return True
        votes = run_state.consensus.on(position)
        return len(votes) > 0

    def offer_again(self, ids: Iterable[str]) -> None:
        """Skipped examples may be asked again."""
        positions = self._positions_of(ids)
        run_state = self.run_state
        for position in positions:
            if run_state.is_skipped(position):
                continue
            example_id = run_state.ids[position]
            raise InputError(f"{example_id!r} is not skipped: nothing to offer again")
        self._record(OfferedAgain(positions))

    def waiting(self) -> list[PickRecord]:
        """Asked and not answered, by round and slot."""
        run_state = self.run_state
        picks = run_state.label_table.picks

        def round_and_slot(position: int) -> tuple[int, int]:
            return picks.round[position], picks.slot[position]

        records = []
        for position in sorted(run_state.waiting, key=round_and_slot):
            record = run_state.pick_record(position)
            if record is not None:
                records.append(record)
        return records

    def _classes(self, example_id: str, answer: Any) -> list[int]:
        """The indices of the classes that an answer names."""
        try:
            rows = self.run_state.task.encode([answer])
        except UnknownName as error:
            kind = f"class for {example_id!r}: "
            raise UnknownName(kind, error.name, error.right_names) from error
        except InputError as error:
            raise InputError(f"{example_id!r}: {error}") from error
        return np.flatnonzero(rows[0]).tolist()

    def position_of(self, id: str) -> int:
        """The position of an example in the run. Raises UnknownName where there is none."""
        position = None
        if isinstance(id, str):
            position = self.run_state.position.get(id)
        if position is None:
            raise self._unknown_example(id)
        return position

    def _unknown_example(self, id: Any) -> UnknownName:
        # At the same small price however many examples there are: whoever asks may hold
        # everybody's lock.
        ids = self.run_state.ids
        if len(ids) <= MOST_COMPARED:
            return UnknownName("example", str(id), ids)
        return UnknownName(
            "example",
            str(id),
            ids[:3],
            others=len(ids) - 3,
        )

    def _positions_of(self, ids: Iterable[str]) -> list[int]:
        """The position of each id, each once."""
        listed = check_list(ids, "ids", "ids", ordered=False)
        # The keys of a dictionary: each once, in the order in which they came.
        positions = dict.fromkeys(map(self.position_of, listed))
        return list(positions)

    # ------------------------------------------------------------------ goals

    def set_goals(self, goals: Goals, by: str | None = None) -> None:
        """What the run is to reach from now on: each goal takes the place of the stopping rule of
        its kind, and one that is None gives it back.
        """
        check_annotator(by)
        check_instance(goals, Goals, "goals", "a Goals object (tailor.run.goals)")
        self._record(GoalsSet(goals, by))

    # ------------------------------------------------------------------ taking back

    def undo(self, event: int, of: str, by: str | None = None) -> None:
        """Take back what `of` has decided in the event with this number: labels settled,
        overwritten or told unasked are what they were before, a class that was added, renamed or
        merged too. Raises InputError where it can't be, since others have come to depend on it.
        """
        check_annotator(by)
        event = check_whole(event, "event")
        check_text(of, "of")
        act = acts.find(self.run_state, event, of)
        if act.before:
            self._record(ActUndone(event, of, by))
        elif act.kind == "merged":
            self.undo_merge(event, by)
        else:
            change = acts.class_edit_back(self.run_state, act)
            self._change_classes(change, by, undoes=event)
