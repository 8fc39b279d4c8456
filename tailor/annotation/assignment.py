"""Which annotator gets which of the examples that wait for an answer."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from tailor.annotation.leases import Leases
from tailor.annotation.planner import Planner
from tailor.run.holdout import sample_by_id
from tailor.run.session import Session
from tailor.run.state import RunState

#: picks made at a time while several people label
PICKS_AHEAD = 8
#: mixed into the seed, so that shared examples are drawn independently of the hold-out
SHARED_SEED = 0x5AFE


@dataclass(frozen=True)
class Shortage:
    """Why no further example can be assigned."""

    state: str  # "preparing" or "stopped"
    reason: str | None


class Assignment:
    """Leases examples to annotators and has further ones picked when none is left.

    An example goes to one annotator, or to `overlap` of them if it belongs to the share of
    examples, drawn by their ids, that are shared. Callers hold the session's lock.
    """

    def __init__(
        self,
        session: Session,
        leases: Leases,
        planner: Planner,
        *,
        overlap: int,
        overlap_share: float,
    ) -> None:
        self._session = session
        self._leases = leases
        self._planner = planner
        self._overlap = overlap
        self._overlap_share = overlap_share

    @property
    def _run_state(self) -> RunState:
        return self._session.run_state

    def assign(self, annotator: str, n: int) -> tuple[list[int], Shortage | None]:
        """The positions of up to n examples, leased to the annotator, first those already in hand;
        and where they are fewer than n, why.
        """
        positions = self._still_held(annotator)[:n]
        shortage = None
        while len(positions) < n and shortage is None:
            position = self._first_available(annotator)
            if position is None:
                shortage = self._pick_more()
            else:
                self._leases.grant(annotator, position)
                positions.append(position)
        return positions, shortage

    def votes_wanted(self, position: int) -> int:
        """How many annotators are to answer an example."""
        wanted = self._run_state.consensus.asked.get(position)
        if wanted is not None:
            return wanted
        example_id = self._run_state.ids[position]
        seed = self._run_state.settings.seed ^ SHARED_SEED
        (is_shared,) = sample_by_id([example_id], self._overlap_share, seed)
        if not is_shared:
            return 1
        return self._overlap

    def _still_held(self, annotator: str) -> list[int]:
        # What an annotator holds may have been answered by another way since, or may be gone.
        waiting = self._run_state.waiting
        for position in self._leases.held_by(annotator):
            if position not in waiting or self._is_absent(position):
                self._leases.revoke(position)
        return self._leases.held_by(annotator)

    def _first_available(self, annotator: str) -> int | None:
        # Shared examples that others have voted on come before all. Both are in the order in which
        # they were asked or voted on, so the search is short, however many wait.
        candidates = chain(self._run_state.consensus.open, self._run_state.waiting)
        for position in candidates:
            if self._is_available(position, annotator):
                return position
        return None

    def _is_available(self, position: int, annotator: str) -> bool:
        consensus = self._run_state.consensus
        if position in consensus.disputed:
            return False
        voters = consensus.on(position).keys()
        holders = self._leases.holders(position)
        annotators = voters | holders
        if annotator in annotators:
            return False
        if len(annotators) >= self.votes_wanted(position):
            return False
        return not self._is_absent(position)

    def _is_absent(self, position: int) -> bool:
        """Whether nobody can look at it: it can't be read, or it has vanished from the pool."""
        table = self._run_state.label_table
        if table.picks.is_holdout(position):
            return not table.availability.readable(position)
        return not table.availability.for_arms(position)

    def _pick_more(self) -> Shortage | None:
        """Make further picks of the open round, or of the next one; returns why there are none."""
        session = self._session
        n = self._picks_at_once()
        if n < 1:
            spent = "the budget is spent once the waiting examples are answered"
            return Shortage("stopped", session.why_stop() or spent)
        if session.take(n):
            return None
        if session.batch_is_asked():
            reason = session.why_stop()
            if reason:
                return Shortage("stopped", reason)
            self._planner.enter_round()
        # The next round is late: people go on with picks beyond the batch.
        if session.take(n) or session.take(n, spare=True):
            return None
        if self._planner.nothing_left and session.batch_is_asked():
            return Shortage("stopped", self._planner.nothing_left)
        return Shortage("preparing", self._planner.trouble)

    def _picks_at_once(self) -> int:
        """How many picks to make now, within the budget; 0 or less where it is spent."""
        n = PICKS_AHEAD
        if self._leases.count_active() <= 1:
            # With one annotator each label reaches the arms before the next pick.
            n = 1
        budget = self._session.budget_left()
        if budget is not None:
            n = min(n, budget)
        return n
