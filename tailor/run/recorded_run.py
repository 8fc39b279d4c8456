"""A run's store and its state, kept in step."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace

from tailor.run.event_applier import EventContext, apply
from tailor.run.events import RunEvent, RunOpened, SeveralEvents
from tailor.run.replay import rebuild
from tailor.run.round_events import RoundOpened
from tailor.run.settings import Settings
from tailor.storage.base import Store, StoreError


class RecordedRun:
    """Every event is in the store before it counts; the state follows from the store.

    A store without events begins a run with these settings. One with events goes on with it: its
    settings must be the same.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        is_new = next(store.events(), None) is None
        if is_new:
            opened = RunOpened(settings.as_dict())
            store.append(opened.kind, opened.body())
        self.run_state = rebuild(settings, store)
        first_event = next(store.events())
        begun = first_event.body["settings"]
        # The classes may be edited any number of times before the run is rebuilt.
        first_classes = tuple(begun["classes"])
        self._begun = replace(settings, classes=first_classes)

    @property
    def settings(self) -> Settings:
        """The run's, with its classes of today."""
        return self.run_state.settings

    def record(self, events: Sequence[RunEvent]) -> None:
        """Write events that were checked, all or none, at the price of one; then apply them."""
        if len(events) == 1:
            self._record(events[0])
        elif events:
            self._record(SeveralEvents(events))

    def _record(self, event: RunEvent) -> None:
        number = self._append(event)
        is_next = number == self.run_state.event + 1
        if not is_next:
            # One is in the store that was thought lost.
            self._start_over()
            return
        context = EventContext(number=number, time=time.time(), store=self.store)
        apply(self.run_state, event, context)
        if isinstance(event, RoundOpened):
            # Once a round the store's file is complete by itself. The event is safe without that.
            with contextlib.suppress(StoreError):
                self.store.checkpoint()

    def _append(self, event: RunEvent) -> int:
        try:
            return self.store.append(event.kind, event.body(), event.data())
        except BaseException:
            # The store may be away; what is missing is noticed with the next event.
            with contextlib.suppress(StoreError):
                self._start_over()
            raise

    def _start_over(self) -> None:
        """Something went wrong between memory and store: the store is right."""
        self.run_state = rebuild(self._begun, self.store)
