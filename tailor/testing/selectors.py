"""The contract of a meta-selector."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from tailor import bandits
from tailor.bandits.base import (
    Contest,
    Fit,
    Outcomes,
    Selector,
)
from tailor.task import MultiClass, Task

#: a contest -> a selector that has begun
Factory = Callable[[Contest], Selector]


def check_selector(selector: str | Selector, task: Task) -> None:
    """Raises AssertionError where a selector breaks a rule that the learner relies on.

    selector  a registered name, "name(option=value)", or a Selector. It will choose among the arms
              "random" and one "search[class]" for each class.
    """
    prototype = bandits.make_selector(selector)

    def factory(contest: Contest) -> Selector:
        # A copy: checks must not see what an earlier one has taught.
        selector = deepcopy(prototype)
        return selector.begin(contest)

    for check in SELECTOR_CHECKS:
        check(factory, task)


def make_contest(
    task: Task,
    *,
    arms: int | None = None,
    rounds: int = 5,
    slots: int = 12,
) -> Contest:
    """A contest of the arms "random" and "search[class]"; with `arms` only the first few of
    them.
    """
    names = ["random"]
    families = ["random"]
    class_indices = [-1]
    for index, class_name in enumerate(task.classes):
        names.append(f"search[{class_name}]")
        families.append("search")
        class_indices.append(index)
    return Contest(
        task,
        tuple(names[:arms]),
        tuple(families[:arms]),
        tuple(class_indices[:arms]),
        rounds,
        slots,
    )


def make_outcomes(
    contest: Contest,
    plan: np.ndarray,
    weights: np.ndarray,
    number: int,
    seed: int,
) -> Outcomes:
    """Answers to a plan (slots,): random labels, predictions and Fit.

    weights  (K,) of the classes
    number   of the round
    """
    rng = np.random.default_rng((seed, number))
    task = contest.task
    size = len(plan)
    shape = (size, task.size)
    predicted = rng.random(shape).astype(np.float32)
    labels: Any = rng.random(shape) < 0.4
    if isinstance(task, MultiClass):
        predicted /= predicted.sum(1, keepdims=True)
        classes = rng.integers(task.size, size=size)
        one_hot = np.eye(task.size)
        labels = one_hot[classes]
    fit = Fit(
        rng.random(size),
        rng.uniform(0.1, 1, size),
        rng.random(task.size),
        100,
    )
    return Outcomes(
        number,
        weights,
        plan.copy(),
        np.asarray(labels, np.float32),
        predicted,
        fit,
    )


def plans_arms(factory: Factory, task: Task) -> None:
    """A plan is (slots,) integers that name arms; any number of slots, whatever was planned at the
    start.
    """
    contest = make_contest(task)
    selector = factory(contest)
    # The contest announces 12: the last batch may be smaller, and a user may ask for more.
    for number, slots in enumerate((1, 12, 50)):
        plan = _plan(selector, slots, seed=number)
        _expect(
            _is_plan(plan, slots),
            f"{selector.name!r} planned {plan!r} for {slots} slots: give ({slots},) integers",
        )
        is_arm = (plan >= 0) & (plan < contest.size)
        _expect(
            bool(is_arm.all()),
            f"{selector.name!r} planned arm {plan.max()}, there are {contest.size}",
        )
        _learn(selector, plan, number)


def _is_plan(plan: Any, slots: int) -> bool:
    if not isinstance(plan, np.ndarray):
        return False
    if plan.shape != (slots,):
        return False
    return plan.dtype.kind == "i"


def same_seed_same_plan(factory: Factory, task: Task) -> None:
    """All randomness comes from the generator that is handed in; planning changes no state."""
    selector = _experienced(factory, task)
    before = selector.state()
    first = _plan(selector, 20, seed=7)
    second = _plan(selector, 20, seed=7)
    _expect(
        np.array_equal(first, second), f"{selector.name!r} planned {first} and, again, {second}"
    )
    _same(selector.state(), before, f"planning changed the state of {selector.name!r}")


def state_is_all_there_is(factory: Factory, task: Task) -> None:
    """A new selector that restores another's state goes on as that one does."""
    original = _experienced(factory, task)
    restored = factory(make_contest(task))
    restored.restore(original.state())
    # Over several rounds: what is missing in a state may show only after learning.
    for number in range(2, 5):
        plan = _plan(original, 20, seed=number)
        restored_plan = _plan(restored, 20, seed=number)
        _expect(
            np.array_equal(plan, restored_plan),
            f"{original.name!r} planned {plan}, restored from its state {restored_plan}",
        )
        _learn(original, plan, number)
        _learn(restored, plan, number)
        _same(
            original.state(),
            restored.state(),
            f"{original.name!r} and its restored copy drift apart",
        )


def state_is_a_copy(factory: Factory, task: Task) -> None:
    """What state() gave is not changed by what is learned later, so that a failed round can go back
    to it.
    """
    selector = _experienced(factory, task)
    state = selector.state()
    # A run writes them to its store, where Python objects can't go.
    types = [type(value) for value in state.values()]
    for value in state.values():
        is_array = isinstance(value, np.ndarray)
        _expect(
            is_array and value.dtype != object,
            f"the state of {selector.name!r} must be plain arrays, got {types}",
        )
    kept = {}
    for name, array in state.items():
        kept[name] = array.copy()
    first_arm_alone = np.zeros(6, np.int64)
    _learn(selector, first_arm_alone, 2)
    _same(state, kept, f"learning changed what {selector.name!r} had given as its state")
    selector.restore(kept)
    _same(selector.state(), kept, f"{selector.name!r} does not return to a restored state")


def chances_are_probabilities(factory: Factory, task: Task) -> None:
    """(M,) in [0, 1], and above 0 for what was planned: ALBL divides by them."""
    selector = _experienced(factory, task)
    plan = _plan(selector, 15, seed=3)
    chances = selector.chances(plan)
    arms = selector.contest.size
    # A sum of many chances may be rounded to just above 1.
    in_range = (chances >= 0) & (chances <= 1 + 1e-9)
    _expect(
        chances.shape == (arms,) and bool(in_range.all()),
        f"chances of {selector.name!r} are {chances}: ({arms},) in [0, 1] is needed",
    )
    are_positive = chances[plan] > 0
    _expect(
        bool(are_positive.all()), f"{selector.name!r} planned an arm whose chance it gives as 0"
    )


def leaves_its_inputs_alone(factory: Factory, task: Task) -> None:
    """Neither plan() nor learn() writes into the arrays that it is given."""
    selector = factory(make_contest(task))
    weights = _weights(task)
    rng = np.random.default_rng(0)
    plan = selector.plan(9, weights, rng)
    outcomes = make_outcomes(
        selector.contest,
        plan,
        weights,
        0,
        seed=5,
    )
    # Drawn anew from the same seed, with weights that plan() has not seen.
    untouched = make_outcomes(
        selector.contest,
        plan,
        _weights(task),
        0,
        seed=5,
    )
    selector.learn(outcomes)
    for name in ("weights", "arms", "labels", "predicted"):
        before = getattr(untouched, name)
        after = getattr(outcomes, name)
        _expect(np.array_equal(before, after), f"{selector.name!r} changed the {name} it was given")


def learns_from_nothing(factory: Factory, task: Task) -> None:
    """A round in which all examples were skipped is learned from too, and planning goes on."""
    selector = factory(make_contest(task))
    nothing = np.zeros(0, np.int64)
    _learn(selector, nothing, 0)
    plan = _plan(selector, 4, seed=0)
    _expect(len(plan) == 4, f"{selector.name!r} planned {plan} after a round without answers")


def one_arm(factory: Factory, task: Task) -> None:
    """With a single arm that arm is planned."""
    selector = factory(make_contest(task, arms=1))
    for number in range(2):
        plan = _plan(selector, 5, seed=number)
        _expect(not plan.any(), f"{selector.name!r} planned {plan} where arm 0 is the only one")
        _learn(selector, plan, number)


def begin_forgets(factory: Factory, task: Task) -> None:
    """begin() leaves nothing of what was learned: a learner calls it to teach everything anew."""
    selector = _experienced(factory, task)
    fresh = factory(make_contest(task)).state()
    selector.begin(make_contest(task))
    _same(selector.state(), fresh, f"{selector.name!r} still knows something: begin() must forget")


SELECTOR_CHECKS: tuple[Callable[[Factory, Task], None], ...] = (
    plans_arms,
    same_seed_same_plan,
    state_is_all_there_is,
    state_is_a_copy,
    chances_are_probabilities,
    leaves_its_inputs_alone,
    learns_from_nothing,
    begin_forgets,
    one_arm,
)


def _weights(task: Task) -> np.ndarray:
    """(K,) of the classes, all different."""
    # Equal ones would hide a selector that mixes the classes up.
    weights = np.linspace(0.3, 1.0, task.size)
    return weights / task.size


def _plan(selector: Selector, slots: int, seed: int) -> np.ndarray:
    weights = _weights(selector.contest.task)
    rng = np.random.default_rng(seed)
    return selector.plan(slots, weights, rng)


def _learn(selector: Selector, plan: np.ndarray, number: int) -> None:
    """Answers to a plan in round `number`."""
    weights = _weights(selector.contest.task)
    outcomes = make_outcomes(
        selector.contest,
        plan,
        weights,
        number,
        seed=1,
    )
    selector.learn(outcomes)


def _experienced(factory: Factory, task: Task) -> Selector:
    """A selector that has learned from two rounds."""
    selector = factory(make_contest(task))
    for number in range(2):
        plan = _plan(selector, 12, seed=number)
        _learn(selector, plan, number)
    return selector


def _same(state: dict[str, np.ndarray], expected: dict[str, np.ndarray], message: str) -> None:
    """Both states have the same names, and equal arrays under them."""
    differing = state.keys() ^ expected.keys()
    in_both = state.keys() & expected.keys()
    for name in in_both:
        are_equal = np.array_equal(state[name], expected[name])
        if not are_equal:
            differing.add(name)
    names = ", ".join(sorted(differing))
    _expect(not differing, f"{message}: {names}")


def _expect(holds: bool, message: str) -> None:
    # Not `assert`: python -O would leave the contract out.
    if not holds:
        raise AssertionError(message)
