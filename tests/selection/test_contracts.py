"""Every registered family and selector keeps the contracts, found by name: a new one needs no edit
here.
"""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import tailor.registry
from tailor import InputError, Learner, MultiClass, MultiLabel
from tailor.bandits import RandomMeta, make_selector
from tailor.bandits import registry as selectors
from tailor.strategies import Cursor, ScoreStrategy, Strategy
from tailor.strategies import registry as families
from tailor.testing import (
    SELECTOR_CHECKS,
    STRATEGY_CHECKS,
    check_selector,
    check_strategy,
    make_contest,
    make_pool,
)

TASKS = [MultiClass(["cat", "dog", "fox", "owl"]), MultiLabel(["red", "green", "blue"])]
PAIRS = [
    (name, task) for name in families for task in TASKS if task.kind in families.find(name).tasks
]


def ids(value):
    return getattr(value, "kind", None) or getattr(value, "__name__", None)


def spelled(name, arm="random"):
    """A selector's name with the options that have no default."""
    needed = [o for o, p in selectors.options(name).items() if p.default is inspect.Parameter.empty]
    assert set(needed) <= {"arm"}
    return f"{name}(arm={arm})" if needed else name


@pytest.mark.parametrize("check", STRATEGY_CHECKS, ids=ids)
@pytest.mark.parametrize(("name", "task"), PAIRS, ids=ids)
def test_family(name, task, check):
    check(families.make(name), task)


@pytest.mark.parametrize("mode", ["split", "predicted", "revealed"])
def test_galaxy_in_all_modes(mode):
    for task in TASKS:
        check_strategy(families.make("galaxy", pending=mode), task)


@pytest.mark.parametrize("name", ["margin", "galaxy(pending=revealed)", "herding", "submodular"])
def test_seals_around_other_families(name):
    for task in TASKS:
        strategy = families.make("seals", family=name, neighbours=2)
        if task.kind in strategy.tasks:
            check_strategy(strategy, task)


@pytest.mark.parametrize("name", list(families))
def test_family_says_no_to_the_other_task(name):
    for task in TASKS:
        if task.kind not in families.find(name).tasks:
            with pytest.raises(InputError, match=f"'{name}' is for .* this one is {task.kind}"):
                families.make(name).arms(task)


@pytest.mark.parametrize("check", SELECTOR_CHECKS, ids=ids)
@pytest.mark.parametrize("task", TASKS, ids=ids)
@pytest.mark.parametrize("name", list(selectors))
def test_selector(name, task, check):
    check(lambda contest: make_selector(spelled(name)).begin(contest), task)


def run_rounds(task, selector, names, rounds=3, size=90, batch=10):
    pool = make_pool(task, size, seed=5)
    learner = Learner(
        task, size, strategies=names, selector=selector, rounds=rounds, batch=batch, seed=3
    )
    learner.tell(np.arange(batch), pool.truth[:batch])
    seen = set(range(batch))
    for number in range(rounds):
        asked = learner.ask(pool.probs, pool.features, finetune=pool.finetune, dropout=pool.dropout)
        assert len(asked) == batch
        assert not seen & set(asked.indices.tolist())
        assert not asked.short
        seen.update(asked.indices.tolist())
        learner.tell(asked.indices, pool.truth[asked.indices])
        assert learner.round == number + 1
    assert len(seen) == batch * (rounds + 1)
    assert learner.label_table.labelled.tolist() == sorted(seen)
    return learner


@pytest.mark.parametrize("task", TASKS, ids=ids)
@pytest.mark.parametrize("name", list(selectors))
def test_every_selector_with_every_family(name, task):
    names = [family for family, t in PAIRS if t is task]
    learner = run_rounds(task, spelled(name, arm=names[-1]), names)
    # A wrapper is named after the family within it.
    assert {arm.family for arm in learner.arms} == {families.make(name).name for name in names}


class Darkest(ScoreStrategy):
    """A third party's arm: smallest first feature."""

    name = "darkest"

    def score(self, view):
        return view.rows(slice(None))[:, 0]


class Alternating(RandomMeta):
    """A third party's selector: the arms in turn."""

    name = "alternating"

    def plan(self, slots, weights, rng):
        return np.arange(slots) % self.contest.size


@pytest.fixture
def plugins(monkeypatch):
    found = {
        "tailor.strategies": [EntryPoint("darkest", "darkest_plugin:Darkest", "tailor.strategies")],
        "tailor.selectors": [
            EntryPoint("alternating", "darkest_plugin:Alternating", "tailor.selectors")
        ],
    }
    monkeypatch.setitem(
        __import__("sys").modules,
        "darkest_plugin",
        __import__("types").SimpleNamespace(Darkest=Darkest, Alternating=Alternating),
    )
    monkeypatch.setattr(tailor.registry, "entry_points", lambda group: found.get(group, []))


@pytest.mark.usefixtures("plugins")
def test_third_parties_add_an_arm_and_a_selector():
    assert "darkest" in families.names()
    assert "alternating" in selectors.names()
    for task in TASKS:
        check_strategy(families.make("darkest"), task)
        check_selector("alternating", task)
        learner = run_rounds(task, "alternating", ["random", "darkest"])
        assert [arm.name for arm in learner.arms] == ["random", "darkest"]


@pytest.mark.usefixtures("plugins")
def test_a_plugin_name_can_not_replace_a_builtin(monkeypatch):
    mine = [EntryPoint("galaxy", "darkest_plugin:Darkest", "tailor.strategies")]
    monkeypatch.setattr(tailor.registry, "entry_points", lambda group: mine)
    assert families.find("galaxy").__module__ == "tailor.strategies.galaxy.galaxy"
    assert families.names().count("galaxy") == 1


class Broken(Strategy):
    """Breaks one rule at a time."""

    name = "broken"

    def __init__(self, how):
        self.how = how

    def arms(self, task):
        arms = super().arms(task)
        return arms * 2 if self.how == "names" else arms

    def open(self, arms, view, pulls, rngs):
        return [BrokenCursor(view, self.how) for _ in arms]


class BrokenCursor(Cursor):
    count = 0

    def __init__(self, view, how):
        super().__init__(view)
        self.how = how
        self.given = 0
        if how == "needs":
            len(view.features)
        if how == "changes":
            view.probs[0] = view.probs[0].flip(0)

    def take(self):
        free = np.flatnonzero(self.ledger.free)
        self.given += 1
        BrokenCursor.count += 1
        if self.how == "labelled":
            return int(self.view.labelled[0])
        if self.how == "own":
            return (
                int(self.view.free_ids[self.given - 1])
                if self.given <= len(self.view.free_ids)
                else self.none()
            )
        if self.how == "stops" and self.given > 2:
            free = free[:0]
        if self.how == "seed":
            return int(free[BrokenCursor.count % len(free)]) if len(free) else self.none()
        return int(free[0]) if len(free) else self.none()

    def none(self):
        raise tailor.Exhausted("nothing")


def test_a_sound_strategy_passes():
    check_strategy(Broken("not at all"), TASKS[0])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("names", "are named"),
        ("labelled", "labelled, taken or set aside"),
        ("own", "labelled, taken or set aside"),
        ("stops", "exhausted while examples are free"),
        ("seed", "same seed"),
        ("needs", "fails with only its needs"),
        ("changes", "changed the probabilities"),
    ],
)
def test_a_broken_strategy_is_found(how, message):
    with pytest.raises(AssertionError, match=message):
        check_strategy(Broken(how), TASKS[0])


def test_a_built_in_family_without_an_idea_is_found(monkeypatch):
    with monkeypatch.context() as changed:
        changed.setattr(Broken, "__module__", "tailor.strategies.broken")
        with pytest.raises(
            AssertionError, match=r"Broken has no idea: set `idea` to one of Idea\."
        ):
            check_strategy(Broken("not at all"), TASKS[0])
    monkeypatch.setattr(Broken, "idea", "uncertain")
    with pytest.raises(AssertionError, match="idea is 'uncertain': set `idea` to one of"):
        check_strategy(Broken("not at all"), TASKS[0])


class BrokenSelector(RandomMeta):
    how = ""

    def __init__(self):
        self.heard = np.zeros(1)

    def reset(self):
        if self.how != "remembers":
            self.heard = np.zeros(1)

    def plan(self, slots, weights, rng):
        if self.how == "range":
            return np.full(slots, self.contest.size)
        if self.how == "shape":
            return np.zeros(slots + 1, np.int64)
        if self.how == "global":
            BrokenSelector.drift = (getattr(BrokenSelector, "drift", 0) + 1) % self.contest.size
            return np.full(slots, BrokenSelector.drift)
        return super().plan(slots, weights, rng)

    def learn(self, outcomes):
        self.heard += len(outcomes.arms)
        if self.how == "changes":
            outcomes.labels[:] = 0

    def state(self):
        return {"heard": self.heard if self.how == "alias" else self.heard.copy()}

    def restore(self, state):
        self.heard = state["heard"].copy() if self.how != "forgets" else np.zeros(1)


def test_a_sound_selector_passes():
    check_selector(BrokenSelector(), TASKS[0])
    assert make_contest(TASKS[0], arms=2).arms == ("random", "search[cat]")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("range", "planned arm 5"),
        ("shape", "slots"),
        ("global", "and, again"),
        ("changes", "changed the labels"),
        ("alias", "had given as its state"),
        ("forgets", "restored"),
        ("remembers", "begin.. must forget"),
    ],
)
def test_a_broken_selector_is_found(how, message, monkeypatch):
    monkeypatch.setattr(BrokenSelector, "how", how)
    with pytest.raises(AssertionError, match=message):
        check_selector(BrokenSelector(), TASKS[0])
