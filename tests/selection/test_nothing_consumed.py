"""An ask that fails leaves everything as it was, and the next one gives what it would have
given.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from toys import credited, same, snapshot

from tailor import Learner, MultiClass, MultiLabel
from tailor.strategies import Cursor, Strategy
from tailor.strategies.base import random_free
from tailor.testing import make_pool

SIZE = 60
TASKS = {"multi-class": MultiClass(3), "multi-label": MultiLabel(3)}


class Broken(Exception):
    """What a model or a plugin of someone else's raises."""


class Fragile(Strategy):
    """A family of random picks that can be told where to break."""

    name = "fragile"

    def __init__(self):
        self.breaks_at = None  # "open", or the number of a pick

    def open(self, arms, view, pulls, rngs):
        if self.breaks_at == "open":
            raise Broken
        return [FragileCursor(view, self, rng) for rng in rngs]


class FragileCursor(Cursor):
    def __init__(self, view, family, rng):
        super().__init__(view)
        self.family = family
        self.rng = rng
        self.picks = 0

    def take(self):
        if self.picks == self.family.breaks_at:
            raise Broken
        self.picks += 1
        return random_free(self.ledger.free, self.view.free_ids, self.rng)


def raises(*args):
    raise Broken


def late(pool):
    yield pool.probs
    raise Broken


def with_nan(array):
    return np.where(np.arange(SIZE)[:, None] == 7, np.nan, array)


#: what fails -> (families, arguments of ask that differ)
BAD = {
    "probabilities with NaN": (["random"], lambda p: {"probs": with_nan(p.probs)}),
    "probabilities with Inf": (
        ["random"],
        lambda p: {"probs": np.where(p.probs > 0.9, np.inf, p.probs)},
    ),
    "probabilities of fewer rows": (["random"], lambda p: {"probs": p.probs[:-1]}),
    "probabilities of fewer classes": (["random"], lambda p: {"probs": p.probs[:, :-1]}),
    "probabilities as ragged lists": (["random"], lambda p: {"probs": [[0.5], [0.5, 0.5]]}),
    "features with NaN": (["badge"], lambda p: {"features": with_nan(p.features)}),
    "features with Inf": (
        ["coreset"],
        lambda p: {"features": np.where(p.features > 1, np.inf, p.features)},
    ),
    "features of fewer rows": (["badge"], lambda p: {"features": p.features[:-1]}),
    "features as a vector": (["badge"], lambda p: {"features": p.features[:, 0]}),
    "no features": (["badge"], lambda p: {"features": None}),
    "dropout raises": (["bald"], lambda p: {"dropout": raises}),
    "dropout raises after a pass": (["bald"], lambda p: {"dropout": lambda: late(p)}),
    "dropout of a wrong shape": (["bald"], lambda p: {"dropout": lambda: [p.probs[:-1]]}),
    "fine-tuning raises": (["weak-supervision"], lambda p: {"finetune": raises}),
    "fine-tuning gives NaN": (
        ["weak-supervision"],
        lambda p: {"finetune": lambda t, e: with_nan(p.probs)},
    ),
    "too many": (["random"], lambda p: {"size": SIZE + 1}),
    "half an example": (["random"], lambda p: {"size": 2.5}),
}


def begin(families, kind, selector="tailor"):
    pool = make_pool(TASKS[kind], SIZE, seed=2)
    other = "confidence" if kind == "multi-class" else "emal"
    learner = Learner(
        TASKS[kind], SIZE, strategies=[*families, other], selector=selector, batch=8, seed=5
    )
    learner.tell(np.arange(6), pool.truth[:6])
    good = {
        "probs": pool.probs,
        "features": pool.features,
        "finetune": pool.finetune,
        "dropout": pool.dropout,
    }
    batch = learner.ask(**good)
    learner.tell(batch.indices[:6], pool.truth[batch.indices[:6]])
    learner.skip(batch.indices[6:7])
    return learner, pool, good


def goes_on_alike(calm, troubled, pool, good):
    """Two more rounds are the same in both."""
    for _ in range(2):
        expected = calm.ask(**good)
        found = troubled.ask(**good)
        assert found.indices.tolist() == expected.indices.tolist()
        assert found.arm_names == expected.arm_names
        for learner in (calm, troubled):
            learner.tell(found.indices, pool.truth[found.indices])
    ours = calm.selector.state()
    theirs = troubled.selector.state()
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("selector", ["tailor", "albl"])
@pytest.mark.parametrize("what", list(BAD))
def test_an_ask_that_fails(what, selector):
    families, bad = BAD[what]
    kind = "multi-label" if families == ["weak-supervision"] else "multi-class"
    calm, _, _ = begin(families, kind, selector)
    troubled, pool, good = begin(families, kind, selector)
    before = snapshot(troubled)
    for ask in (troubled.ask, troubled.open_round):
        with pytest.raises((ValueError, Broken)):
            ask(**(good | bad(pool)))
        assert same(before, snapshot(troubled))
    goes_on_alike(calm, troubled, pool, good)


@pytest.mark.parametrize("at", ["open", 0, 1, 3])
def test_a_plugin_that_raises(at):
    def with_plugin():
        family = Fragile()
        learner, pool, good = begin([family], "multi-class")
        return family, learner, pool, good

    _, calm, pool, good = with_plugin()
    family, troubled, _, _ = with_plugin()
    family.breaks_at = at
    before = snapshot(troubled)
    with pytest.raises(Broken):
        troubled.ask(**good)
    assert same(before, snapshot(troubled))
    family.breaks_at = None
    goes_on_alike(calm, troubled, pool, good)


def test_a_pick_that_fails_in_an_open_round_comes_again():
    """Those before it are not lost, however the rest is asked for."""
    expected = None
    for breaks, rest in ((None, "batch"), (2, "batch"), (2, "next")):
        family = Fragile()
        learner, _, good = begin([family], "multi-class")
        round = learner.open_round(**good)
        family.breaks_at = breaks
        if breaks is not None:
            with pytest.raises(Broken):
                round.batch()
            assert len(learner.label_table.pending) == 1  # of the round before
        family.breaks_at = None
        found = (
            round.batch().indices.tolist() if rest == "batch" else [pick.index for pick in round]
        )
        expected = expected or found
        assert found == expected
        assert len(learner.label_table.pending) == 9


def test_a_pick_that_waits_and_is_told_from_outside_is_not_asked():
    family = Fragile()
    learner, pool, good = begin([family], "multi-class")
    round = learner.open_round(**good)
    family.breaks_at = 2
    with pytest.raises(Broken):
        round.batch()
    waits = [pick.index for pick in round._undelivered]
    assert waits
    learner.tell(waits, pool.truth[waits])
    family.breaks_at = None
    assert not set(round.batch().indices.tolist()) & set(waits)
    assert not set(credited(learner).tolist()) & set(waits)


@pytest.mark.parametrize("family", ["random", "badge", "galaxy", "coreset", "bald", "confidence"])
def test_tensors_that_require_grad(family):
    """What a network gives without no_grad is taken as it is."""
    plain, pool, good = begin([family] if family != "confidence" else [], "multi-class")
    hanging, _, _ = begin([family] if family != "confidence" else [], "multi-class")

    def hang(array):
        return torch.from_numpy(np.asarray(array)).requires_grad_() * 1

    tensors = good | {
        "probs": hang(pool.probs),
        "features": hang(pool.features),
        "dropout": lambda: [hang(one) for one in pool.dropout()],
    }
    for _ in range(2):
        assert hanging.ask(**tensors).indices.tolist() == plain.ask(**good).indices.tolist()


def test_fine_tuning_that_gives_tensors_with_grad():
    learner, pool, good = begin(["weak-supervision"], "multi-label")

    def tune(targets, epochs):
        return torch.from_numpy(np.asarray(pool.finetune(targets, epochs))).requires_grad_() * 1

    expected, _, _ = begin(["weak-supervision"], "multi-label")
    assert (
        learner.ask(**good | {"finetune": tune}).indices.tolist()
        == expected.ask(**good).indices.tolist()
    )
