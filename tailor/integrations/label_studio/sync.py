"""The loop between a run and Label Studio: take in what was annotated, publish the next batch in
time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from tailor.errors import InputError
from tailor.integrations.label_studio.annotation_reader import VIA_STUDIO, AnnotationReader
from tailor.integrations.label_studio.frozen_predictions import FrozenPredictions
from tailor.integrations.label_studio.label_config import LabelConfig
from tailor.integrations.label_studio.publisher import Publisher
from tailor.integrations.label_studio.task_mirror import TaskMirror
from tailor.integrations.label_studio.task_pool import TaskPool
from tailor.integrations.label_studio.transport import StudioError, StudioUnreachable
from tailor.run.session import Session

#: Seconds between two tries at the most while Label Studio is away.
LONGEST_PAUSE = 30.0
#: Refusals in a row before the loop gives up.
MOST_REFUSALS = 5
#: Seconds before the session is asked again where it had nothing to ask, unless an annotation
#: changes.
REST = 60.0


def pause(poll: float, failures: int) -> float:
    """Seconds until the next try after so many failures in a row: twice as long each time, up to
    LONGEST_PAUSE.

    >>> [pause(5.0, failures) for failures in range(5)]
    [5.0, 10.0, 20.0, 30.0, 30.0]
    """
    if not failures:
        return poll
    doublings = min(failures, 30)  # beyond, the number would not fit a float
    return min(poll * 2**doublings, max(poll, LONGEST_PAUSE))


class StudioSync:
    """Keeps a run and a Label Studio project in step. Every pass compares the two and makes up the
    difference.

    Nothing depends on having seen an event: webhooks only say that it is time for a pass. So a
    missed one, a restart of either side or a failure half-way all mend themselves with the next
    pass. Used from one thread; any thread may call `wake` and `train` and read
    `frozen_predictions`.

    task_pool  copies the project's own tasks; None where tasks are made from a pool
    ahead      as soon as no more than so many tasks wait for an annotator, the next batch is chosen
               and published
    say        called with a message for the user
    """

    def __init__(
        self,
        session: Session,
        task_mirror: TaskMirror,
        publisher: Publisher,
        task_pool: TaskPool | None,
        *,
        ahead: int,
        say: Callable[[str], None],
    ) -> None:
        self.session = session
        self.task_mirror = task_mirror
        self.publisher = publisher
        self.task_pool = task_pool
        self.ahead = ahead
        self.annotation_reader = AnnotationReader(session, task_mirror, say)
        self.frozen_predictions = FrozenPredictions.of(session)
        self._say = say
        self._unread = set(task_mirror.tasks_by_example)  # examples whose annotations may be new
        self._stop_reason: str | None = None  # why there was nothing to ask
        self._rest_until = 0.0
        self._woken = threading.Event()
        self._training_wanted = threading.Event()

    def wake(self) -> None:
        """Begin the next pass now: something happened in Label Studio."""
        self._woken.set()

    def train(self) -> None:
        """Train a model in the next pass, and begin it now."""
        self._training_wanted.set()
        self._woken.set()

    def run(self, poll: float, stop: threading.Event) -> None:
        """Pass after pass, every `poll` seconds or when woken, until `stop` is set (call `wake`
        after setting it).

        Goes on while Label Studio is away. Raises StudioError after MOST_REFUSALS refusals in a
        row.
        """
        failures = 0
        refusals = 0
        while not stop.is_set():
            self._woken.clear()
            try:
                self.step()
            except StudioError as error:
                if isinstance(error, StudioUnreachable):
                    refusals = 0
                else:
                    refusals += 1
                if refusals == MOST_REFUSALS:
                    raise
                if not failures or refusals:
                    self._say(f"{error}. Trying again.")
                failures += 1
            else:
                if failures:
                    self._say("Label Studio is back.")
                failures = 0
                refusals = 0
            self._woken.wait(pause(poll, failures))

    def step(self) -> None:
        """One pass. Raises StudioError; after one the next pass reads everything anew."""
        try:
            self._unread |= self.task_mirror.refresh()
            self._read_annotations()
            if self.task_pool is not None:
                self._copy_new_tasks(self.task_pool)
            if self._training_wanted.is_set():
                self._train_now()
            self._publish_batch()
        except StudioError:
            self.task_mirror.invalidate()
            raise

    def _read_annotations(self) -> None:
        in_run = self._unread & self.session.run_state.position.keys()
        if in_run:
            if self.annotation_reader.unknown_classes(in_run):
                self._follow_label_config()
            self.annotation_reader.read(in_run)
            self._rest_until = 0.0
        self._unread -= in_run

    def _copy_new_tasks(self, task_pool: TaskPool) -> None:
        """Copy the tasks of examples that are not in the run yet; they join with the next round."""
        tasks = [self.task_mirror.task_of(example) for example in self._unread]
        task_pool.copy(task for task in tasks if task is not None)

    def _follow_label_config(self) -> None:
        """Classes that were added to the label config join the run."""
        settings = self.task_mirror.studio.describe()
        config = LabelConfig.read(settings["label_config"])
        add_classes(self.session, config)
        self.task_mirror.config = config

    # ------------------------------------------------------------------ batches

    def _publish_batch(self) -> None:
        """Choose the next batch while some tasks are left, so that nobody waits for training, and
        publish whatever waits for an answer.
        """
        is_due = len(self.session.waiting()) <= self.ahead
        is_resting = time.monotonic() < self._rest_until
        if is_due and not is_resting:
            self._ask()
        published = self.publisher.publish(self.session.waiting())
        if not published:
            return
        run_state = self.session.run_state
        round_number = len(run_state.rounds) - 1
        labels = run_state.answered()
        accuracy = ""
        if run_state.current and run_state.current.estimate:
            estimate = run_state.current.estimate
            accuracy = f"; accuracy on the hold-out {estimate.accuracy:.3f}"
        self._say(f"Round {round_number}: {published} tasks pushed, {labels} labels{accuracy}.")

    def _ask(self) -> None:
        batch = self.session.ask()
        if batch:
            self.frozen_predictions = FrozenPredictions.of(self.session)
            self._rest_until = 0.0
        else:
            if self._stop_reason != batch.stopped:
                self._say(f"Nothing more to ask: {batch.stopped}.")
            self._rest_until = time.monotonic() + REST
        self._stop_reason = batch.stopped

    def _train_now(self) -> None:
        self._training_wanted.clear()
        if not self.session.can_train():
            return
        self.session.final_fit()
        pool_size = len(self.session.run_state.ids)
        probabilities, *_ = self.session.predict(np.arange(pool_size))
        self.frozen_predictions = FrozenPredictions.of(self.session, probabilities)


def add_classes(session: Session, config: LabelConfig) -> None:
    """Add the classes of the label config that the run does not have.

    Raises InputError where the run has one that the label config has not: labels may depend on it.
    """
    run_classes = session.run_state.task.classes
    missing = [name for name in run_classes if name not in config.classes]
    if missing:
        listed = ", ".join(map(repr, missing))
        raise InputError(
            f"the label config has no {listed} any more, but the run has: "
            "put it back in Label Studio, or merge the class into another one in the run"
        )
    for name in config.classes:
        if name not in run_classes:
            session.add_class(name, by="label config" + VIA_STUDIO)
