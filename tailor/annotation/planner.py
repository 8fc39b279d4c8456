"""Rounds are prepared here, in a thread of their own, while people label."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tailor.annotation.model_watch import ModelWatch
from tailor.errors import without_paths
from tailor.run.session import GivenUp, Session
from tailor.run.session_round import SessionRound
from tailor.storage.base import StoreError, StoreUnreachable

log = logging.getLogger(__name__)

#: spare picks of a random start
START_SPARE = 5000
#: spare picks of any other round, at least and at most, in batches
LEAST_SPARE = 1
MOST_SPARE = 10
#: seconds before preparing is tried again after a failure
PATIENCE = 10.0
#: and where there was nothing left to ask
LONG_PATIENCE = 60.0
#: seconds that closing waits for training that does not look up
GRACE = 5.0
#: what annotators get to know; where the database is, and who may use it, is for the log
NO_DATABASE = "the database can't be reached"


class Planner:
    """Keeps a round ready for when the current batch has been asked for.

    Preparing begins when a quarter of the batch is left, or sooner: when what is left will be
    labelled, at the pace of the last minutes, in less than twice the time that preparing took the
    last time. So the model knows as many answers as it can, and is ready in time. Before that time
    is known, half of the batch is the mark. If it is late all the same, people go on with spare
    picks, which the round has beyond its batch.

    trouble       why the last attempt failed, in words; None where it did not
    nothing_left  why there is no further round; None as long as there may be one
    """

    def __init__(
        self,
        session: Session,
        pace: Callable[[], float],
        unassigned: Callable[[], int],
        *,
        folders: Sequence[Path] = (),
        model_watch: ModelWatch | None = None,
    ) -> None:
        """pace() in answers a second; unassigned(): examples of the batch that nobody has in hand
        yet; folders: where the run's files lie, which annotators need not know; model_watch:
        measures each round's model once nothing else is to be done.
        """
        self._session = session
        self._pace = pace
        self._unassigned = unassigned
        self._folders = folders
        self._model_watch = model_watch
        self._wake = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._ready: SessionRound | None = None
        self._preparation_time: float | None = None  # seconds that it took the last time
        self._answers_known = -1  # that the last round was prepared with
        self._pool_is_read = False
        self._dropped: int | None = None  # event of the round whose rest was dropped
        self._resting_until = 0.0
        self.trouble: str | None = None
        self.nothing_left: str | None = None

    # ------------------------------------------------------------------ thread

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tailor-planner", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Give up what is being prepared. Where that hangs (a download, a long fit) it is left
        behind: the store is closed to it.
        """
        self._closed = True
        self._session.stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(GRACE)

    def wake(self) -> None:
        """Something has changed: there may be work."""
        self._wake.set()

    def _run(self) -> None:
        while not self._closed:
            self._wake.clear()
            if not self.step():
                self._wake.wait(PATIENCE)

    def step(self) -> bool:
        """Do what is to be done, if anything; returns whether there was. Never raises: people go
        on labelling.
        """
        task = self._session.run_state.task
        try:
            job = self._next_job()
            if job is None:
                return False
            job()
            self._session.enter_stage("idle")
            self.trouble = None
        except GivenUp:
            return False
        except Exception as error:
            if self._closed:
                return False
            if self._session.run_state.task != task:
                # the classes were changed meanwhile: it was to fail, or would have been of no use
                return True
            self._report(error)
            self._resting_until = time.monotonic() + PATIENCE
            self._session.enter_stage("idle")
        return True

    def _report(self, error: Exception) -> None:
        is_away = isinstance(error, StoreUnreachable)
        log.error("the next round could not be prepared: %s", error, exc_info=not is_away)
        if is_away:
            reason = NO_DATABASE
        else:
            reason = without_paths(error, self._folders)
        self.trouble = f"the next round could not be prepared: {reason}"

    # ------------------------------------------------------------------ work

    def _next_job(self) -> Callable[[], None] | None:
        session = self._session
        with session.lock:
            if time.monotonic() < self._resting_until:
                return None
            if session.session_round is None and self._has_interrupted_round():
                return self._resume_round
            if self._ready is None and self._is_due():
                return self._prepare_round
            if not self._pool_is_read:
                return self._read_pool
            return self._measuring_job()

    def _measuring_job(self) -> Callable[[], None] | None:
        """Measure the latest model, if that was not done yet: of the round that is ready, or else
        of the open one.
        """
        session_round = self._ready or self._session.session_round
        watch = self._model_watch
        if watch is None or session_round is None or not watch.is_due(session_round):
            return None
        return lambda: watch.measure(session_round)

    def _has_interrupted_round(self) -> bool:
        """Whether more can be asked of the round that was open when the last process ended. A
        random start has spare picks beyond its batch, and going through it again takes no training.
        """
        if not self._session.batch_is_asked():
            return True
        current = self._session.run_state.current
        if current is None or not current.seed_round:
            return False
        return current.event != self._dropped

    def _resume_round(self) -> None:
        """Go through the interrupted round again. Where that fails, a new one takes its place."""
        try:
            self._session.resume_round()
        except (GivenUp, StoreError):  # a store that is away comes back, and the round with it
            raise
        except Exception:
            log.exception(
                "the round that was open can't be gone through again: its rest is dropped"
            )
            current = self._session.run_state.current
            if current is None:
                self._dropped = None
            else:
                self._dropped = current.event
            self._session.drop_rest()

    def _is_due(self) -> bool:
        session = self._session
        current = session.run_state.current
        if session.why_stop():
            return False
        if current is None:
            return True
        left = self._unassigned()
        answers = session.run_state.answered()
        if left > 0 and answers == self._answers_known:
            return False  # nothing to learn yet
        if self._preparation_time is None:
            return left <= current.size // 2
        answers_meanwhile = self._pace() * self._preparation_time
        # Twice as many, as the pace may rise.
        mark = max(current.size // 4, 2 * answers_meanwhile)
        return left <= mark

    def _prepare_round(self) -> None:
        session = self._session
        started = time.monotonic()
        with session.lock:
            answers_known = session.run_state.answered()
            is_start = not session.can_train()
            task = session.run_state.task
            if is_start:
                spare = START_SPARE
            else:
                spare = self._spare_picks()
        session_round = session.draft(spare, quick=True)
        with session.lock:
            if session.run_state.task != task:
                return  # the classes were changed meanwhile: another one is due at once
            if isinstance(session_round, str):
                self.nothing_left = session_round
                self._resting_until = time.monotonic() + LONG_PATIENCE
                return
            self.nothing_left = None
            self._answers_known = answers_known
            if not is_start:
                self._preparation_time = time.monotonic() - started
                self._pool_is_read = True
            self._ready = session_round
            self.enter_round()

    def _spare_picks(self) -> int:
        """As many as will be answered in twice the time that preparing takes, within bounds."""
        batch = self._session.settings.batch
        seconds = 2 * (self._preparation_time or 0)
        wanted = int(seconds * self._pace())
        at_least = LEAST_SPARE * batch
        at_most = MOST_SPARE * batch
        return min(max(wanted, at_least), at_most)

    def enter_round(self) -> None:
        """The round that is ready becomes the current one, if the batch before it has been asked
        for.
        """
        session = self._session
        with session.lock:
            if self._ready is None:
                return
            if not session.batch_is_asked() or session.why_stop():
                return
            # False where it was entered before the connection to the store was lost
            session.enter(self._ready)
            self._ready = None
            self.wake()

    def _read_pool(self) -> None:
        """While the random start is being labelled: whatever the model needs of every example."""
        self._session.enter_stage("reading")
        self._session.read_pool()
        self._pool_is_read = True

    def rest_is_over(self) -> None:
        """Try again at once: something has happened that may mend what was wrong."""
        self._resting_until = 0.0
        self.nothing_left = None
        self.wake()

    def forget(self) -> None:
        """The classes are others now: what is ready is of no use."""
        with self._session.lock:  # nobody is about to enter it
            self._ready = None
            self._pool_is_read = False
            self._answers_known = -1
            self.rest_is_over()
