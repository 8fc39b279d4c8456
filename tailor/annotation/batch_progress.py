"""How much of the current batch is still to be picked, to be handed out and to be answered."""

from __future__ import annotations

from tailor.annotation.leases import Leases
from tailor.run.session import Session
from tailor.selection.label_table import count_askable


class BatchProgress:
    """Counts over the current batch. Callers hold the session's lock."""

    def __init__(self, session: Session, leases: Leases) -> None:
        self._session = session
        self._leases = leases

    def unpicked(self) -> int:
        """Picks that are still to be made."""
        current = self._session.run_state.current
        if current is None:
            return 0
        session_round = self._session.session_round
        next_slot = session_round.slot if session_round else 0
        return max(0, current.size - max(current.asked, next_slot))

    def unanswered(self) -> int:
        """Examples without an answer. Shared ones that wait for another annotator's vote don't
        count, and picks count only as far as the pool has examples for them.
        """
        run_state = self._session.run_state
        pickable = count_askable(run_state.label_table, self.unpicked())
        return pickable + len(run_state.waiting) - len(run_state.consensus.open)

    def unassigned(self) -> int:
        """Examples that nobody has in hand yet."""
        run_state = self._session.run_state
        waiting = run_state.waiting
        open_votes = run_state.consensus.open
        voted_on = sum(position in waiting for position in open_votes)
        in_hand = sum(
            position in waiting and position not in open_votes
            for position in self._leases.held_positions
        )
        return self.unpicked() + len(waiting) - voted_on - in_hand
