"""The contract of a meta-selector."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from tailor import bandits
from tailor.bandits.base import Contest, Fit, Outcomes, Selector
from tailor.task import MultiClass, Task

Factory = Callable[[Contest], Selector]  # gives a selector that has begun


def check_selector(given: str | Selector, task: Task) -> None:
    """Raises AssertionError where a selector breaks a rule that the learner relies on.

    given  a registered name, "name(option=value)", or a Selector. It will choose among the arms
           "random" and one "search[class]" for each class.
    """
    selector = bandits.make_selector(given)

    def factory(contest: Contest) -> Selector:
        return deepcopy(selector).begin(contest)

    for check in SELECTOR_CHECKS:
        check(factory, task)


def make_contest(
    task: Task, *, arms: int | None = None, rounds: int = 5, slots: int = 12
) -> Contest:
    """Arms "random" and "search[class]"; with `arms` only the first few of them."""
    names = ["random", *(f"search[{c}]" for c in task.classes)][:arms]
    families = ["random", *["search"] * task.size][:arms]
    return Contest(
        task, tuple(names), tuple(families), tuple(range(-1, len(names) - 1)), rounds, slots
    )


def make_outcomes(
    contest: Contest, plan: np.ndarray, weights: np.ndarray, number: int, seed: int
) -> Outcomes:
    """Answers to a plan: random labels, predictions and Fit."""
    rng = np.random.default_rng((seed, number))
    task = contest.task
    n = len(plan)
    predicted = rng.random((n, task.size)).astype(np.float32)
    labels: Any = rng.random((n, task.size)) < 0.4
    if isinstance(task, MultiClass):
        predicted /= predicted.sum(1, keepdims=True)
        labels = np.eye(task.size)[rng.integers(task.size, size=n)]
    fit = Fit(rng.random(n), rng.uniform(0.1, 1, n), rng.random(task.size), 100)
    return Outcomes(number, weights, plan.copy(), np.asarray(labels, np.float32), predicted, fit)


def plans_arms(factory: Factory, task: Task) -> None:
    """A plan is (slots,) integers that name arms; any number of slots, whatever was planned at the
    start.
    """
    selector = factory(contest := make_contest(task))
    for number, slots in enumerate((1, 12, 50)):
        plan = selector.plan(slots, _weights(task), np.random.default_rng(number))
        _says(
            isinstance(plan, np.ndarray) and plan.shape == (slots,) and plan.dtype.kind == "i",
            f"{selector.name!r} planned {plan!r} for {slots} slots: give ({slots},) integers",
        )
        _says(
            bool(((plan >= 0) & (plan < contest.size)).all()),
            f"{selector.name!r} planned arm {plan.max()}, there are {contest.size}",
        )
        _learn(selector, plan, number)


def same_seed_same_plan(factory: Factory, task: Task) -> None:
    """All randomness comes from the generator that is handed in; planning changes no state."""
    selector = _experienced(factory, task)
    before = selector.state()
    plans = [selector.plan(20, _weights(task), np.random.default_rng(7)) for _ in range(2)]
    _says(
        bool((plans[0] == plans[1]).all()),
        f"{selector.name!r} planned {plans[0]} and, again, {plans[1]}",
    )
    _same(selector.state(), before, f"planning changed the state of {selector.name!r}")


def state_is_all_there_is(factory: Factory, task: Task) -> None:
    """A new selector that restores another's state goes on as that one does."""
    first = _experienced(factory, task)
    second = factory(make_contest(task))
    second.restore(first.state())
    for number in range(2, 5):
        plans = [s.plan(20, _weights(task), np.random.default_rng(number)) for s in (first, second)]
        _says(
            bool((plans[0] == plans[1]).all()),
            f"{first.name!r} planned {plans[0]}, restored from its state {plans[1]}",
        )
        for selector in (first, second):
            _learn(selector, plans[0], number)
        _same(first.state(), second.state(), f"{first.name!r} and its restored copy drift apart")


def state_is_a_copy(factory: Factory, task: Task) -> None:
    """What state() gave is not changed by what is learned later, so that a failed round can go back
    to it.
    """
    selector = _experienced(factory, task)
    state = selector.state()
    _says(
        all(isinstance(v, np.ndarray) and v.dtype != object for v in state.values()),
        f"the state of {selector.name!r} must be plain arrays, got "
        f"{list(map(type, state.values()))}",
    )
    kept = {name: array.copy() for name, array in state.items()}
    _learn(selector, np.zeros(6, np.int64), 2)
    _same(state, kept, f"learning changed what {selector.name!r} had given as its state")
    selector.restore(kept)
    _same(selector.state(), kept, f"{selector.name!r} does not return to a restored state")


def chances_are_probabilities(factory: Factory, task: Task) -> None:
    """(M,) in [0, 1], and above 0 for what was planned: ALBL divides by them."""
    selector = _experienced(factory, task)
    plan = selector.plan(15, _weights(task), np.random.default_rng(3))
    chances = selector.chances(plan)
    _says(
        chances.shape == (selector.contest.size,)
        and bool(((chances >= 0) & (chances <= 1 + 1e-9)).all()),
        f"chances of {selector.name!r} are {chances}: ({selector.contest.size},) in [0, 1] is "
        "needed",
    )
    _says(
        bool((chances[plan] > 0).all()),
        f"{selector.name!r} planned an arm whose chance it gives as 0",
    )


def leaves_its_inputs_alone(factory: Factory, task: Task) -> None:
    selector = factory(make_contest(task))
    weights = _weights(task)
    plan = selector.plan(9, weights, np.random.default_rng(0))
    outcomes = make_outcomes(selector.contest, plan, weights, 0, seed=5)
    twin = make_outcomes(selector.contest, plan, _weights(task), 0, seed=5)
    selector.learn(outcomes)
    for name in ("weights", "arms", "labels", "predicted"):
        same = np.array_equal(getattr(outcomes, name), getattr(twin, name))
        _says(same, f"{selector.name!r} changed the {name} it was given")


def learns_from_nothing(factory: Factory, task: Task) -> None:
    """A round in which all examples were skipped is learned from too, and planning goes on."""
    selector = factory(make_contest(task))
    _learn(selector, np.zeros(0, np.int64), 0)
    plan = selector.plan(4, _weights(task), np.random.default_rng(0))
    _says(len(plan) == 4, f"{selector.name!r} planned {plan} after a round without answers")


def one_arm(factory: Factory, task: Task) -> None:
    """With a single arm that arm is planned."""
    selector = factory(make_contest(task, arms=1))
    for number in range(2):
        plan = selector.plan(5, _weights(task), np.random.default_rng(number))
        _says(not plan.any(), f"{selector.name!r} planned {plan} where arm 0 is the only one")
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
    return np.linspace(0.3, 1.0, task.size) / task.size


def _learn(selector: Selector, plan: np.ndarray, number: int) -> None:
    selector.learn(
        make_outcomes(selector.contest, plan, _weights(selector.contest.task), number, seed=1)
    )


def _experienced(factory: Factory, task: Task) -> Selector:
    selector = factory(make_contest(task))
    for number in range(2):
        _learn(selector, selector.plan(12, _weights(task), np.random.default_rng(number)), number)
    return selector


def _same(one: dict[str, np.ndarray], other: dict[str, np.ndarray], message: str) -> None:
    differ = [
        k
        for k in {*one, *other}
        if k not in one or k not in other or not np.array_equal(one[k], other[k])
    ]
    _says(not differ, f"{message}: {', '.join(sorted(differ))}")


def _says(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
