"""Coordinators over a small pool and a quick model; a run's state as plain values."""

from __future__ import annotations

import contextlib
import threading
import time

import numpy as np
from small import Centroids, Points, answer, settings

from tailor.annotation import Coordinator
from tailor.models.base import quiet
from tailor.run.session import Session
from tailor.storage import open_store
from tailor.storage.base import StoreError

TIMEOUT = 120  # seconds, for slow machines; nothing waits this long where all is well


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def open_session(place, pool=None, *, stop=(), model=Centroids, **changes):
    pool = pool or Points()
    chosen = settings(**changes)
    store = open_store(place)
    try:
        edits = list(store.find("classes"))
        task = type(chosen.task)(edits[-1].body["classes"]) if edits else chosen.task
        return Session(
            store,
            pool,
            model(task, pool),
            chosen,
            stop=stop,
            remodel=lambda task: model(task, pool),
        )
    except BaseException:
        store.close()
        raise


def open_coordinator(
    place, pool=None, *, stop=(), model=Centroids, clock=time.monotonic, coordinator=None, **changes
):
    """A coordinator whose rounds are prepared when prepare() is called, not in a thread."""
    return Coordinator(
        open_session(place, pool, stop=stop, model=model, **changes),
        clock=clock,
        **(coordinator or {}),
    )


def prepare(coordinator):
    """Do all that the planner would do by now."""
    for _ in range(20):
        if not coordinator.planner.step():
            return
    raise AssertionError("the planner never rests")


def truth(coordinator, one):
    given = answer(coordinator.session.pool, coordinator.kind, one)
    return given if isinstance(given, list) else [given]


def label(coordinator, n, who="ann"):
    """Someone answers n examples, as a page would: the next one is asked for when the last is
    answered. -> ids
    """
    done = []
    for _ in range(n):
        handed = coordinator.next(who)
        if not handed.items:
            prepare(coordinator)
            handed = coordinator.next(who)
        (item,) = handed.items
        coordinator.answer(who, item.id, truth(coordinator, item.id))
        done.append(item.id)
        prepare(coordinator)
    return done


def state(run_state):
    """Everything that a run's state holds, as plain values."""
    table = run_state.label_table
    labelled = table.answers.labels.positions
    predicted = table.picks.predictions.positions
    columns = vars(table.answers) | vars(table.picks) | vars(table.availability)
    label_table = {
        "labels": dict(zip(labelled.tolist(), table.labels_of(labelled).tolist())),
        "counts": [table.counts.tolist(), table.total.by_class.tolist()],
        "answered": [table.answered, table.total.examples],
        "predicted": table.picks.predictions.get(predicted).tolist(),
    }
    for name, column in columns.items():
        if isinstance(column, np.ndarray):
            label_table[name] = column.tolist()
    return {
        "event": run_state.event,
        "classes": run_state.task.classes,
        "summary": run_state.summary(),
        "label table": label_table,
        "round": run_state.learner.round,
        "selector": {
            name: value.tolist() for name, value in run_state.learner.selector.state().items()
        },
        "waiting": set(run_state.waiting),
        "answered by": {p: by for p, (by, _) in run_state.answered_by.items()},
        "votes": [
            {
                p: {n: b.classes for n, b in run_state.consensus.on(p).items()}
                for p in run_state.consensus.asked
            },
            run_state.consensus.settled,
            set(run_state.consensus.open),
            set(run_state.consensus.disputed),
        ],
        "arm_statistics": [
            dict(+run_state.arm_statistics.pulls),
            dict(+run_state.arm_statistics.pulls_now),
            found(run_state),
        ],
        "rounds": [
            (
                r.number,
                r.size,
                r.slots,
                r.asked,
                r.as_of,
                r.event,
                r.labels,
                None if r.weights is None else r.weights.tolist(),
                None if r.chances is None else r.chances.tolist(),
            )
            for r in run_state.rounds
        ],
    }


def found(run_state):
    return {
        arm: counts.tolist()
        for arm, counts in sorted(run_state.arm_statistics.found.items())
        if counts.any()
    }


def counted(run_state):
    """The labels that each arm found, counted anew."""
    total = {}
    picks = run_state.label_table.picks
    for position in picks.positions.tolist():
        arm = picks.get(position).arm
        row = run_state.label_of(position)
        if row is not None:
            total[arm] = total.get(arm, np.zeros(run_state.task.size, int)) + row.astype(int)
    return {arm: row.tolist() for arm, row in sorted(total.items()) if row.any()}


class Repeating(Centroids):
    """Sure of every label that it has learned, right or wrong, as a large network is."""

    def fit(self, positions, labels, *, seed, progress=quiet):
        super().fit(positions, labels, seed=seed, progress=progress)
        self.learned = dict(zip(positions.tolist(), labels))

    def predict(self, positions, progress=quiet):
        found = super().predict(positions, progress)
        for row, position in enumerate(positions.tolist()):
            if position in self.learned:
                found.probs[row] = self.learned[position]
        return found


class Gated(Centroids):
    """Its training waits until the test lets it go on."""

    def __init__(self, task, pool):
        super().__init__(task, pool)
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def fit(self, positions, labels, *, seed, progress=None):
        self.begun.set()
        while not self.go_on.wait(0.01):
            progress(0, 1, "training")
        self.seen_labels = len(positions)
        super().fit(positions, labels, seed=seed)


def until(condition):
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.002)


@contextlib.contextmanager
def store_away(coordinator, monkeypatch):
    """The store can neither be written nor read."""

    def away(*_, **__):
        raise StoreError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(coordinator.session.store, "append", away)
        patch.setattr(coordinator.session.store, "events", away)
        yield
