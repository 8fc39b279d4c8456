"""One round of a session: the arms' picks with the reserve's mixed in, or a random start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tailor.errors import Exhausted
from tailor.journal import RESERVE, START, Journal, RoundRecord
from tailor.loop import LoopRound
from tailor.reserve import Estimate

if TYPE_CHECKING:
    from tailor.session import Session

#: position, slot, arm
Taken = tuple[int, int, int]


@dataclass
class Walk:
    """The picks of a round. What chance decides is drawn when it is opened and recorded with it, so that a round that
    was open when its process ended can be gone through again."""

    number: int
    journal: Journal
    reserve_slots: np.ndarray  # (size,) bool: which slots are the reserve's
    reserve: list[int]  # positions for those slots, in order
    start: list[int]  # positions of a random start, for the other slots
    arms: LoopRound | None = None  # None: a random start
    probs: np.ndarray | None = None  # (N, K) what the model said, None at a random start
    estimate: Estimate | None = None
    slot: int = 0

    @property
    def size(self) -> int:
        return len(self.reserve_slots)

    @classmethod
    def open(cls, session: Session, number: int, size: int) -> Walk:
        """A new round: draw what is random, train and predict."""
        journal, holdout = session.journal, session.settings.holdout
        rng = np.random.default_rng((session.settings.seed, number, 1))
        free = np.flatnonzero(journal.books.free)
        candidates = np.flatnonzero(journal.reserved & journal.kept.free & journal.books.untouched)
        wanted = int(rng.binomial(size, holdout)) if holdout else 0
        for_reserve = min(max(wanted, size - len(free)), len(candidates), size)
        for_arms = min(size - for_reserve, len(free))
        slots = rng.permutation(np.arange(for_reserve + for_arms) < for_reserve)
        reserve = rng.choice(candidates, for_reserve, replace=False).tolist()
        walk = cls(number, journal, slots, reserve, [])
        if not session.can_train():
            walk.start = rng.choice(free, for_arms, replace=False).tolist()
        elif for_arms:
            walk._consult(session, for_arms)
        return walk

    @classmethod
    def again(cls, session: Session, journal: Journal, record: RoundRecord) -> Walk:
        """A round as it was opened before, with the journal as it stood then."""
        start = record.start.tolist()
        walk = cls(record.number, journal, record.reserve_slots, record.reserve.tolist(), start)
        if not record.seed_round:
            walk._consult(session, int((~record.reserve_slots).sum()))
        return walk

    def _consult(self, session: Session, picks: int) -> None:
        """Train, predict, and let the selector plan."""
        bridge, settings, journal = session.bridge, session.settings, self.journal
        self.estimate = session.train(self.number, journal)
        self.probs, features = bridge.predict(journal.task, np.arange(len(journal.ids)))
        passes, seed = settings.dropout_passes, settings.seed
        self.arms = journal.loop.open_round(
            self.probs,
            features,
            picks,
            finetune=bridge.finetune(journal, seed) if bridge.can("finetune") else None,
            dropout=bridge.dropout(journal, passes, seed) if bridge.can("dropout") else None,
            model=session.model,
        )

    def take(self, n: int | None = None) -> list[Taken]:
        """The picks of up to n slots. Examples that were told or skipped from outside meanwhile are passed over."""
        picks: list[Taken] = []
        while self.slot < self.size and (n is None or len(picks) < n):
            found = self._next()
            if found is not None:
                picks.append(found)
            self.slot += 1
        return picks

    def _next(self) -> Taken | None:
        books = self.journal.books
        listed = self.reserve if self.reserve_slots[self.slot] else self.start if self.arms is None else None
        if listed is not None:
            while listed and not (books.untouched[listed[0]] and self.journal.kept.untouched[listed[0]]):
                listed.pop(0)
            arm = RESERVE if listed is self.reserve else START
            return (listed.pop(0), self.slot, arm) if listed else None
        assert self.arms is not None
        try:
            pick = self.arms.pick()
        except Exhausted:
            return None
        return pick.index, self.slot, pick.arm

    def retake(self, positions: list[int], slots: list[int]) -> None:
        """Go through picks again that were made before, whatever would be picked today."""
        for position, slot in zip(positions, slots):
            self.slot = slot
            if self.reserve_slots[slot]:
                self.reserve.remove(position)
            elif self.arms is None:
                self.start.remove(position)
            else:
                self.arms.repick(position)
            self.slot += 1
