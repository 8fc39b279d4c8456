"""Examples that several people answer: their votes, and the label that the majority gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tailor.selection.class_edits import ClassEdit
from tailor.task import MultiClass, Task


@dataclass(frozen=True)
class Ballot:
    """One person's answer: class indices, or None for a skip."""

    classes: tuple[int, ...] | None
    at: float  # seconds since 1970


class Consensus:
    """Votes by position and person. A person's later vote replaces the earlier one.

    A label that was told directly settles the matter: votes that come later are kept, but change
    nothing.
    """

    def __init__(self) -> None:
        self._ballots: dict[int, dict[str, Ballot]] = {}
        self.asked: dict[int, int] = {}  # how many votes were asked for
        self.settled: set[int] = set()
        self.open: dict[int, None] = {}  # voted on, and no label counts yet
        self.disputed: dict[int, None] = {}  # of these, all votes are in, and there is no majority

    def copy(self) -> Consensus:
        twin = Consensus()
        twin._ballots = {position: dict(ballots) for position, ballots in self._ballots.items()}
        twin.asked = dict(self.asked)
        twin.settled = set(self.settled)
        twin.open = dict(self.open)
        twin.disputed = dict(self.disputed)
        return twin

    def cast(self, position: int, by: str, ballot: Ballot, asked: int) -> None:
        """Someone votes on an example that `asked` people are asked about."""
        ballots = self._ballots.setdefault(position, {})
        ballots.pop(by, None)  # the latest vote stands last
        ballots[by] = ballot
        self.asked[position] = asked

    def amend(self, position: int, by: str, classes: tuple[int, ...]) -> None:
        """A vote that is still there was for these classes."""
        ballots = self.on(position)
        if by in ballots:
            ballots[by] = Ballot(classes, ballots[by].at)

    def decides(self, position: int) -> bool:
        """Whether votes give the example its label, or will."""
        return position in self.asked and position not in self.settled

    def on(self, position: int) -> dict[str, Ballot]:
        """The votes on an example by person."""
        return self._ballots.get(position, {})

    def all_in(self, position: int) -> bool:
        """Whether as many have voted as were asked."""
        return len(self.on(position)) >= self.asked[position]

    def settle(self, position: int) -> None:
        """Someone told the label: the votes count no more."""
        if position in self._ballots:
            self.settled.add(position)
            self.open.pop(position, None)
            self.disputed.pop(position, None)

    def clear(self, position: int) -> None:
        """As if nobody had voted on the example."""
        self._ballots.pop(position, None)
        self.asked.pop(position, None)
        self.open.pop(position, None)
        self.disputed.pop(position, None)
        self.settled.discard(position)

    def everything(self) -> list[dict[str, Ballot]]:
        """The ballots on each example; safe to read while others vote."""
        return [dict(ballots) for ballots in self._ballots.values()]

    def reclass(self, change: ClassEdit) -> None:
        """The classes are others from now on."""
        for ballots in self._ballots.values():
            for person, ballot in ballots.items():
                if ballot.classes is not None:
                    classes = tuple(change.indices(ballot.classes))
                    ballots[person] = Ballot(classes, ballot.at)


def majority(task: Task, ballots: Iterable[Ballot]) -> tuple[int, ...] | None:
    """The classes that more than half of those who did not skip have given; None: there is no
    majority.

    Multi-label: class by class, and a class with exactly half of the votes leaves all open.
    """
    votes = [ballot.classes for ballot in ballots if ballot.classes is not None]
    if not votes:
        return None
    voted_classes = [k for classes in votes for k in classes]
    counts = np.bincount(voted_classes, minlength=task.size)
    if (2 * counts == len(votes)).any():
        return None
    winners = tuple(np.flatnonzero(2 * counts > len(votes)).tolist())
    if isinstance(task, MultiClass) and not winners:
        return None
    return winners
