"""The loop between a run and Label Studio: take in what was annotated, put the next batch there in
time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from tailor.errors import InputError
from tailor.integrations.label_studio.annotation_reader import VIA, AnnotationReader
from tailor.integrations.label_studio.client import StudioError, Unreachable
from tailor.integrations.label_studio.frozen_predictions import FrozenPredictions
from tailor.integrations.label_studio.label_config import LabelConfig
from tailor.integrations.label_studio.publisher import Publisher
from tailor.integrations.label_studio.task_mirror import TaskMirror
from tailor.integrations.label_studio.task_pool import TaskPool
from tailor.run.session import Session

#: seconds between two tries at the most while Label Studio is away; refusals in a row before we
#: give up
LONGEST_WAIT, REFUSALS = 30.0, 5
#: seconds before we ask again where there was nothing to ask, unless an annotation changes
REST = 60.0


def pause(poll: float, failures: int) -> float:
    """Seconds until the next try after so many failures in a row: twice as long each time, within
    bounds.
    """
    return min(poll * 2 ** min(failures, 30), max(poll, LONGEST_WAIT)) if failures else poll


class StudioSync:
    """Every pass compares what is in Label Studio with what is in the run and makes up the
    difference.

    Nothing depends on having seen an event: webhooks only say that it is time for a pass. So a
    missed one, a restart of either side or a failure half-way all mend themselves with the next
    pass. Used from one thread; `wake` and `train` may be called from any, and `forecast` read.

    ahead: as soon as no more than so many tasks wait for an annotator, the next batch is chosen and
    pushed.
    """

    def __init__(
        self,
        session: Session,
        task_mirror: TaskMirror,
        publisher: Publisher,
        copies: TaskPool | None,
        *,
        ahead: int,
        say: Callable[[str], None],
    ) -> None:
        self.session = session
        self.task_mirror = task_mirror
        self.publisher = publisher
        self.copies = copies
        self.ahead = ahead
        self._say = say
        self._open = set(task_mirror.shown)  # examples to look at
        self.annotation_reader = AnnotationReader(session, task_mirror, say)
        self._reason: str | None = None  # why there was nothing to ask
        self._rest_until = 0.0
        self._wake = threading.Event()
        self._train = threading.Event()
        self.forecast = FrozenPredictions.of(session)

    def wake(self) -> None:
        """Something happened in Label Studio."""
        self._wake.set()

    def train(self) -> None:
        """Someone wants a fresh model now."""
        self._train.set()
        self._wake.set()

    def run(self, poll: float, stop: threading.Event) -> None:
        """Pass after pass, every `poll` seconds or when woken, until stop is set (wake up after
        setting it).
        """
        failures = refusals = 0
        while not stop.is_set():
            self._wake.clear()
            try:
                self.step()
                if failures:
                    self._say("Label Studio is back.")
                failures = refusals = 0
            except StudioError as error:
                refusals = 0 if isinstance(error, Unreachable) else refusals + 1
                if refusals == REFUSALS:
                    raise
                if not failures or refusals:
                    self._say(f"{error}. Trying again.")
                failures += 1
            self._wake.wait(pause(poll, failures))

    def step(self) -> None:
        """One pass. After a failure half-way the next one reads everything anew."""
        try:
            self._open |= self.task_mirror.look()
            known = self._open & self.session.run_state.position.keys()
            if known:
                if self.annotation_reader.unknown_classes(known):
                    self._follow_config()
                self.annotation_reader.take(known)
                self._rest_until = 0.0
            self._open -= known
            if self.copies is not None:  # the others join with the next round
                self.copies.copy(
                    t for one in self._open if (t := self.task_mirror.task_of(one)) is not None
                )
            if self._train.is_set():
                self._fit()
            self._fill()
        except StudioError:
            self.task_mirror.forget()
            raise

    def _follow_config(self) -> None:
        """Classes that were added to the label config join the run."""
        config = LabelConfig.read(self.task_mirror.studio.describe()["label_config"])
        add_classes(self.session, config)
        self.task_mirror.config = config

    # ------------------------------------------------------------------ batches

    def _fill(self) -> None:
        """Choose the next batch while some tasks are left, so that nobody waits for training."""
        waiting = self.session.waiting()
        if len(waiting) <= self.ahead and time.monotonic() >= self._rest_until:
            asked = self.session.ask()
            if asked:
                self._publish()
                waiting = self.session.waiting()
            elif self._reason != asked.stopped:
                self._say(f"Nothing more to ask: {asked.stopped}.")
            self._reason = asked.stopped
            self._rest_until = time.monotonic() + REST if not asked else 0.0
        pushed = self.publisher.push(waiting)
        if pushed:
            run_state = self.session.run_state
            estimate = run_state.current.estimate if run_state.current else None
            accuracy = f"; accuracy on the hold-out {estimate.accuracy:.3f}" if estimate else ""
            self._say(
                f"Round {len(run_state.rounds) - 1}: {pushed} tasks pushed, "
                f"{run_state.answered()} labels{accuracy}."
            )

    def _fit(self) -> None:
        self._train.clear()
        if self.session.can_train():
            self.session.final_fit()
            everything = np.arange(len(self.session.run_state.ids))
            self._publish(self.session.predict(everything)[0])

    def _publish(self, probs: np.ndarray | None = None) -> None:
        self.forecast = FrozenPredictions.of(self.session, probs)


def add_classes(session: Session, config: LabelConfig) -> None:
    """What the label config has and the run has not. The other way round is an error: labels may
    hang on it.
    """
    known = session.run_state.task.classes
    missing = [name for name in known if name not in config.classes]
    if missing:
        raise InputError(
            f"the label config has no {', '.join(map(repr, missing))} any more, but the run has: "
            "put it back in Label "
            "Studio, or merge the class into another one in the run"
        )
    for name in config.classes:
        if name not in known:
            session.add_class(name, by="label config" + VIA)
