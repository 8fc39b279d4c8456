"""Rooms over a small pool and a quick model, and what two journals must have in common."""

from __future__ import annotations

import contextlib
import threading
import time

import numpy as np
from small import Centroids, Points, answer, settings

from tailor.live import Room
from tailor.models.base import quiet
from tailor.session import Session
from tailor.store import open_store
from tailor.store.base import StoreError

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
            store, pool, model(task, pool), chosen, stop=stop, remodel=lambda task: model(task, pool)
        )  # fmt: skip
    except BaseException:
        store.close()
        raise


def open_room(place, pool=None, *, stop=(), model=Centroids, clock=time.monotonic, room=None, **changes):
    """A room whose rounds are prepared when prepare() is called, not in a thread."""
    return Room(open_session(place, pool, stop=stop, model=model, **changes), clock=clock, **(room or {}))


def prepare(room):
    """Do all that the planner would do by now."""
    for _ in range(20):
        if not room.planner.step():
            return
    raise AssertionError("the planner never rests")


def truth(room, one):
    given = answer(room.session.pool, room.kind, one)
    return given if isinstance(given, list) else [given]


def label(room, n, who="ann"):
    """Someone answers n examples, as a page would: the next one is asked for when the last is answered. -> ids"""
    done = []
    for _ in range(n):
        handed = room.next(who)
        if not handed.items:
            prepare(room)
            handed = room.next(who)
        (item,) = handed.items
        room.answer(who, item.id, truth(room, item.id))
        done.append(item.id)
        prepare(room)
    return done


def state(journal):
    """Everything that a journal knows, as plain values."""
    books = {}
    for name, one in (("books", journal.books), ("kept", journal.kept)):
        books[name] = {
            "labels": dict(zip(one.labelled.tolist(), one.labels.tolist())),
            "counts": one.counts.tolist(),
            "answered": one.answered,
            "arrays": [a.tolist() for a in (one._skipped, one._aside, one._round, one._arm, one._chance, one._learned)],
            "predicted": {p: row.tolist() for p, row in sorted(one._predicted.items())},
        }
    return {
        "event": journal.event,
        "classes": journal.task.classes,
        "summary": journal.summary(),
        "books": books,
        "round": journal.loop.round,
        "selector": {name: value.tolist() for name, value in journal.loop.selector.state().items()},
        "stories": journal.stories,
        "waiting": set(journal.waiting),
        "predicted": {p: row.tolist() for p, row in sorted(journal.predicted.items())},
        "who": {p: by for p, (by, _) in journal.who.items()},
        "votes": [
            {p: {n: b.classes for n, b in journal.votes.on(p).items()} for p in journal.votes.asked},
            journal.votes.settled, set(journal.votes.open), set(journal.votes.disputed),
        ],
        "tally": [dict(+journal.tally.pulls), dict(+journal.tally.pulls_now), found(journal)],
        "rounds": [
            (r.number, r.size, r.slots, r.asked, r.as_of, r.event, r.labels,
             None if r.weights is None else r.weights.tolist(), None if r.chances is None else r.chances.tolist())
            for r in journal.rounds
        ],
    }  # fmt: skip


def found(journal):
    return {arm: counts.tolist() for arm, counts in sorted(journal.tally.found.items()) if counts.any()}


def counted(journal):
    """The tally, counted anew."""
    total = {}
    for position, (_, _, arm) in journal.stories.items():
        row = journal.label_of(position)
        if row is not None:
            total[arm] = total.get(arm, np.zeros(journal.task.size, int)) + row.astype(int)
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
        self.begun, self.go_on = threading.Event(), threading.Event()

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
def store_away(room, monkeypatch):
    """The store can neither be written nor read."""

    def away(*_, **__):
        raise StoreError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(room.session.store, "append", away)
        patch.setattr(room.session.store, "events", away)
        yield
