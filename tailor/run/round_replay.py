"""An open round gone through again from the store, after its process has ended."""

from __future__ import annotations

from collections.abc import Callable

from tailor.run.event_applier import EventContext, apply, read_stored
from tailor.run.events import RunEvent
from tailor.run.model_runner import ModelRunner
from tailor.run.records import RoundRecord
from tailor.run.replay import rebuild
from tailor.run.round_events import ExamplesAsked, RoundOpened
from tailor.run.session_round import SessionRound
from tailor.run.settings import Settings
from tailor.run.state import RunState
from tailor.storage.base import Event, Store


class RoundReplay:
    """Opens a round as it was opened before, and goes on to where it stood when its process ended.

    run_state      the run after the events that were gone through
    session_round  the round, once the event that opened it was gone through

    The arguments: the run's settings when it was begun, its store, what leads to the pool and the
    model, the record of the round, and who hears what is being done.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        model_runner: ModelRunner,
        record: RoundRecord,
        stage: Callable[[str], None],
    ) -> None:
        self._store = store
        self._model_runner = model_runner
        self._record = record
        self._stage = stage
        # Two states: the round is opened in the one that it knew, the other goes on until today.
        self._before = rebuild(settings, store, until=record.as_of)
        self.run_state: RunState = self._before.copy()
        self.session_round: SessionRound | None = None

    def catch_up(self) -> None:
        """Go through what has come into the store since the last call. Long the first time, when
        the round is opened on the way.
        """
        for stored in self._store.events(after=self.run_state.event):
            event = read_stored(stored)
            if stored.number == self._record.event:
                self.session_round = self._open_again(stored, event)
            self._relive(stored, event)

    def _open_again(self, stored: Event, event: RunEvent) -> SessionRound:
        """The round that an event opened, with the state as it stood before."""
        assert isinstance(event, RoundOpened)
        record = RoundRecord.opened(event, stored.number)
        return SessionRound.again(
            self._before,
            self._model_runner,
            record,
            stage=self._stage,
        )

    def _relive(self, stored: Event, event: RunEvent) -> None:
        """Apply an event to the state, and to the round."""
        session_round = self.session_round
        if session_round is not None and isinstance(event, ExamplesAsked):
            positions = event.positions.tolist()
            slots = event.slots.tolist()
            session_round.retake(positions, slots)
        context = EventContext(stored.number, stored.time, self._store)
        apply(self.run_state, event, context)
        if session_round is not None and isinstance(event, RoundOpened):
            session_round.join(self.run_state)
