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
        picked = current.asked
        # After a restart there is no round in memory until the next pick.
        if session_round:
            picked = max(picked, session_round.slot)
        # Spare picks go beyond the batch.
        return max(0, current.size - picked)

    def unanswered(self) -> int:
        """Examples without an answer. Shared ones that wait for another annotator's vote don't
        count, and picks count only as far as the pool has examples for them.
        """
        run_state = self._session.run_state
        pickable = count_askable(run_state.label_table, self.unpicked())
        waiting = len(run_state.waiting)
        waiting_for_others = len(run_state.consensus.open)
        return pickable + waiting - waiting_for_others

    def unassigned(self) -> int:
        """Examples that nobody has in hand yet."""
        run_state = self._session.run_state
        waiting = run_state.waiting
        open_votes = run_state.consensus.open
        unassigned = self.unpicked() + len(waiting)
        for position in open_votes:
            if position in waiting:
                unassigned -= 1
        for position in self._leases.held_positions:
            # Those voted on are left out already.
            if position in waiting and position not in open_votes:
                unassigned -= 1
        return unassigned
