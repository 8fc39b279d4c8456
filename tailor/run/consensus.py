"""Examples that several people answer: their votes, and the label that the majority gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tailor.selection.class_edits import ClassEdit
from tailor.task import MultiClass, Task


@dataclass(frozen=True)
class Vote:
    """One person's answer: class indices, or None for a skip."""

    classes: tuple[int, ...] | None
    at: float  # seconds since 1970


class Consensus:
    """Votes by position and person. A person's later vote replaces the earlier one.

    A label that was told directly settles the matter: votes that come later are kept, but change
    nothing.
    """

    def __init__(self) -> None:
        self._votes: dict[int, dict[str, Vote]] = {}
        #: how many votes were asked for
        self.asked: dict[int, int] = {}
        #: told directly: the votes count no more
        self.settled: set[int] = set()
        #: voted on, and no label counts yet; a dictionary, which keeps them in order
        self.open: dict[int, None] = {}
        #: of these, all votes are in, and there is no majority
        self.disputed: dict[int, None] = {}

    def copy(self) -> Consensus:
        twin = Consensus()
        for position, votes in self._votes.items():
            twin._votes[position] = dict(votes)
        twin.asked = dict(self.asked)
        twin.settled = set(self.settled)
        twin.open = dict(self.open)
        twin.disputed = dict(self.disputed)
        return twin

    def cast(
        self,
        position: int,
        by: str,
        vote: Vote,
        asked: int,
    ) -> None:
        """Someone votes on an example that `asked` people are asked about."""
        votes = self._votes.setdefault(position, {})
        # Taken out first, so that the latest vote stands last.
        votes.pop(by, None)
        votes[by] = vote
        self.asked[position] = asked

    def amend(
        self,
        position: int,
        by: str,
        classes: tuple[int, ...],
    ) -> None:
        """A vote that is still there was for these classes."""
        votes = self.on(position)
        if by not in votes:
            return
        time = votes[by].at
        votes[by] = Vote(classes, time)

    def decides(self, position: int) -> bool:
        """Whether votes give the example its label, or will."""
        if position in self.settled:
            return False
        return position in self.asked

    def on(self, position: int) -> dict[str, Vote]:
        """The votes on an example by person."""
        return self._votes.get(position, {})

    def all_in(self, position: int) -> bool:
        """Whether as many have voted as were asked."""
        votes = self.on(position)
        return len(votes) >= self.asked[position]

    def settle(self, position: int) -> None:
        """Someone told the label: the votes count no more."""
        if position not in self._votes:
            return
        self.settled.add(position)
        self.open.pop(position, None)
        self.disputed.pop(position, None)

    def clear(self, position: int) -> None:
        """As if nobody had voted on the example."""
        self._votes.pop(position, None)
        self.asked.pop(position, None)
        self.open.pop(position, None)
        self.disputed.pop(position, None)
        self.settled.discard(position)

    def restore(self, position: int, votes: Mapping[str, Vote], asked: int, settled: bool) -> None:
        """These are the votes on the example, and whether someone has settled it: whatever was
        there before is gone. Where nobody has settled it, RunState.decide() counts them.
        """
        self.clear(position)
        if not votes:
            return
        self._votes[position] = dict(votes)
        self.asked[position] = asked
        if settled:
            self.settled.add(position)

    def everything(self) -> list[dict[str, Vote]]:
        """The votes on each example; safe to read while others vote."""
        return [dict(votes) for votes in self._votes.values()]

    def reclass(self, change: ClassEdit) -> None:
        """The classes are others from now on."""
        for votes in self._votes.values():
            for person, vote in votes.items():
                votes[person] = reclassed_vote(vote, change)


def reclassed_vote(vote: Vote, change: ClassEdit) -> Vote:
    """The same vote in other classes."""
    # A skip is one in any class list.
    if vote.classes is None:
        return vote
    classes = change.indices(vote.classes)
    return Vote(tuple(classes), vote.at)


def majority(task: Task, votes: Iterable[Vote]) -> tuple[int, ...] | None:
    """The classes that more than half of those who did not skip have given; None: there is no
    majority.

    Multi-label: class by class, and a class with exactly half of the votes leaves all open.
    """
    answers = 0
    voted_classes: list[int] = []
    for vote in votes:
        if vote.classes is None:
            continue
        answers += 1
        voted_classes += vote.classes
    if answers == 0:
        return None
    counts = np.bincount(voted_classes, minlength=task.size)
    # Twice the counts against all answers: whole numbers, which compare exactly.
    doubled = 2 * counts
    is_tied = doubled == answers
    if is_tied.any():
        return None
    has_won = doubled > answers
    winners = np.flatnonzero(has_won).tolist()
    if winners:
        return tuple(winners)
    # That an example has none of the classes is an answer in a multi-label task alone.
    if isinstance(task, MultiClass):
        return None
    return ()
