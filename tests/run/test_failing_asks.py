"""An ask that fails begins no round and asks nothing; the next one gives what it would have
given.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small import Centroids, Points, answer, settings
from test_session import play

from tailor.errors import InputError
from tailor.models.base import Prediction
from tailor.run.session import Session
from tailor.storage import SqliteStore
from tailor.strategies import random as random_arm


class Broken(Exception):
    """What a model or a plugin of someone else's raises."""


class Fragile(Centroids):
    """A model that can be told where to break."""

    breaks = ""

    def fit(self, *args, **more):
        if self.breaks == "fit":
            raise Broken
        super().fit(*args, **more)

    def predict(self, positions, *more):
        found = super().predict(positions, *more)
        probs = found.probs
        features = found.features
        match self.breaks:
            case "predict":
                raise Broken
            case "NaN in probabilities":
                probs = probs * np.nan
            case "too few classes":
                probs = probs[:, :-1]
            case "too few rows":
                probs = probs[:-1]
                features = features[:-1]
            case "Inf in features":
                features = features * np.inf
            case "too few rows of features":
                features = features[:-1]
            case "probabilities as a vector":
                probs = probs[:, 0]
        return Prediction(probs, features)

    def dropout(self, passes, *, seed):
        for number, found in enumerate(super().dropout(passes, seed=seed)):
            if self.breaks == "dropout" and number == 1:
                raise Broken
            yield found * np.nan if self.breaks == "NaN in dropout" else found

    def finetune(self, targets, epochs, *, seed):
        if self.breaks == "finetune":
            raise Broken
        return super().finetune(targets, epochs, seed=seed)


PLACES = (
    "fit",
    "predict",
    "NaN in probabilities",
    "too few classes",
    "too few rows",
    "Inf in features",
    "too few rows of features",
    "probabilities as a vector",
    "dropout",
    "NaN in dropout",
    "finetune",
)
FAMILIES = {
    "multi-class": ("bald", "random", "coreset"),
    "multi-label": ("weak-supervision", "random"),
}


def begin(path, kind="multi-class", model=Fragile, **changes):
    pool = Points()
    chosen = settings(kind=kind, **({"strategies": FAMILIES[kind]} | changes))
    return Session(SqliteStore(path), pool, model(chosen.task, pool), chosen)


def rounds(session):
    return [event.kind for event in session.store.events() if event.kind in ("round", "asked")]


def pick_records(session, n=None):
    return [(s.id, s.round, s.slot, s.arm) for s in session.ask(n)]


def goes_on_alike(calm, troubled, n=None):
    for size in (n, None, None):
        expected = pick_records(calm, size)
        found = pick_records(troubled, size)
        assert found == expected
        for session in (calm, troubled):
            session.tell(
                {one: answer(session.pool, session.settings.kind, one) for one, *_ in found}
            )


@pytest.mark.parametrize("selector", ["tailor", "albl"])
@pytest.mark.parametrize("place", PLACES)
def test_a_model_that_fails(tmp_path, place, selector):
    kind = "multi-label" if place == "finetune" else "multi-class"
    calm, troubled = (begin(tmp_path / name, kind, selector=selector) for name in ("a.db", "b.db"))
    for session in (calm, troubled):
        play(session, 1)
    troubled.model.breaks = place
    before = rounds(troubled)
    for _ in range(2):
        with pytest.raises((InputError, Broken)):
            troubled.ask(5)
        assert rounds(troubled) == before
    troubled.model.breaks = ""
    goes_on_alike(calm, troubled, 5)


def test_a_store_that_fails_between_the_events_of_a_round(tmp_path, monkeypatch):
    """The round is written and its picks are not: the next call gives them."""
    calm, troubled = (begin(tmp_path / name) for name in ("a.db", "b.db"))
    for session in (calm, troubled):
        play(session, 1)
    append = troubled.store.append
    before = rounds(troubled)

    def fails(kind, body, data=None):
        if kind == "asked":
            raise Broken
        return append(kind, body, data)

    with monkeypatch.context() as patch:
        patch.setattr(troubled.store, "append", fails)
        with pytest.raises(Broken):
            troubled.ask(5)
    assert rounds(troubled) == [*before, "round"]
    goes_on_alike(calm, troubled, 5)


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize(("asked_before", "at"), [(0, 0), (0, 1), (3, 0), (3, 1)])
def test_an_arm_that_fails_as_it_picks(tmp_path, monkeypatch, asked_before, at, reopened):
    """At the beginning of a round, and in the middle of one."""
    mixed = {"strategies": ("random", "confidence"), "selector": "random-meta", "holdout": 0.0}
    calm = begin(tmp_path / "a.db", **mixed)
    troubled = begin(tmp_path / "b.db", **mixed)
    for session in (calm, troubled):
        play(session, 1)
        if asked_before:
            session.ask(asked_before)
    before = rounds(troubled)
    take = random_arm.RandomCursor.take
    picks = iter(range(1000))

    def fragile(cursor):
        if next(picks) >= at:
            raise Broken
        return take(cursor)

    with monkeypatch.context() as patched:
        patched.setattr(random_arm.RandomCursor, "take", fragile)
        with pytest.raises(Broken):
            troubled.ask()
    assert rounds(troubled) == before
    if reopened:
        troubled.store.close()
        troubled = begin(tmp_path / "b.db", **mixed)
    goes_on_alike(calm, troubled)


class Hanging(Centroids):
    """A network that gives tensors, still on their graph."""

    def predict(self, positions, *more):
        found = super().predict(positions, *more)
        return Prediction(
            *(torch.from_numpy(a).requires_grad_() * 1 for a in (found.probs, found.features))
        )

    def dropout(self, passes, *, seed):
        for found in super().dropout(passes, seed=seed):
            yield torch.from_numpy(found).requires_grad_() * 1

    def finetune(self, targets, epochs, *, seed):
        return torch.from_numpy(super().finetune(targets, epochs, seed=seed)).requires_grad_() * 1


@pytest.mark.parametrize("kind", list(FAMILIES))
def test_a_model_that_gives_tensors_on_their_graph(tmp_path, kind):
    plain = begin(tmp_path / "a.db", kind)
    hanging = begin(tmp_path / "b.db", kind, Hanging)
    assert play(hanging, 4) == play(plain, 4)
