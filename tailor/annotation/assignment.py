"""Who may get which of the examples that wait for an answer."""

from __future__ import annotations

from itertools import chain

from tailor.annotation.leases import Leases
from tailor.run.holdout import sample_by_id
from tailor.run.session import Session
from tailor.run.state import HOLDOUT, START, RunState

#: sets the draw of shared examples apart from that of the hold-out
SHARED = 0x5AFE


class Assignment:
    """An example goes to one person, or to `overlap` of them if it is one of the share that is
    chosen by its id.
    """

    def __init__(self, session: Session, leases: Leases, overlap: int, share: float) -> None:
        self._session = session
        self._leases = leases
        self._overlap = overlap
        self._share = share

    @property
    def _journal(self) -> RunState:
        return self._session.run_state

    def in_hand(self, who: str) -> list[int]:
        """What someone holds, but for what was answered meanwhile by another way."""
        for position in self._leases.of(who):
            if position not in self._journal.waiting or self._is_absent(position):
                self._leases.end_all(position)
        return self._leases.of(who)

    def find(self, who: str) -> int | None:
        """The first example that waits and may go to someone; shared ones that others have answered
        come before all.

        Both are in the order in which they were asked or voted on, so the search is short, however
        many wait.
        """
        candidates = chain(self._journal.votes.open, self._journal.waiting)
        return next((p for p in candidates if self._may_have(who, p)), None)

    def _may_have(self, who: str, position: int) -> bool:
        votes = self._journal.votes
        holders = self._leases.holders(position)
        ballots = votes.on(position)
        if who in ballots or who in holders or position in votes.disputed:
            return False
        people = len(ballots) + sum(holder not in ballots for holder in holders)
        return people < self.asked_for(position) and not self._is_absent(position)

    def asked_for(self, position: int) -> int:
        """How many people are to answer it."""
        asked = self._journal.votes.asked.get(position)
        if asked is not None:
            return asked
        seed = self._journal.settings.seed ^ SHARED
        return (
            self._overlap
            if sample_by_id([self._journal.ids[position]], self._share, seed)[0]
            else 1
        )

    def _is_absent(self, position: int) -> bool:
        """Whether nobody can look at it: it can't be read, or it is away."""
        run_state = self._journal
        holdout = run_state.pick_records.get(position, (0, 0, START))[2] == HOLDOUT
        return (run_state.holdout_table if holdout else run_state.label_table).is_absent(position)
