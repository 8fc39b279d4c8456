"""The contract of a family of arms."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from tailor.errors import Exhausted, InputError
from tailor.selection.array_view import ArrayView
from tailor.selection.learner import Learner
from tailor.strategies.base import Arm, Idea, Strategy
from tailor.task import Task
from tailor.testing.arm_pulls import (
    expect,
    open_arm,
    require,
    take,
    take_all,
)
from tailor.testing.simulated_pools import SimulatedPool, make_pool, make_view
from tailor.testing.watched_annotator import WatchedAnnotator

#: examples in the pools that families are checked on
SIZE = 40


def check_strategy(strategy: Strategy, task: Task) -> None:
    """Raises AssertionError where a family of arms breaks a rule that rounds and selectors rely
    on.
    """
    for check in STRATEGY_CHECKS:
        check(strategy, task)


def names(strategy: Strategy, task: Task) -> None:
    """Arms are named after the family, with the class in brackets where there is one a class."""
    name = strategy.name
    is_trimmed = name == name.strip()
    require(bool(name) and is_trimmed, f"{strategy!r} has no name")
    require(
        task.kind in strategy.tasks,
        f"{name!r} is not for {task.kind} tasks: check it on another task",
    )
    arms = strategy.arms(task)
    arm_names = [arm.name for arm in arms]
    wanted_names = _wanted_names(strategy, task)
    require(
        arm_names == wanted_names, f"arms of {name!r} are named {arm_names}, not {wanted_names}"
    )
    # In the order of the task's classes, as contests list them.
    classes = [arm.klass for arm in arms]
    wanted_classes: list[int | None] = [None]
    if strategy.per_class:
        wanted_classes = list(range(task.size))
    require(classes == wanted_classes, f"arms of {name!r} have classes {classes}")
    for arm in arms:
        expect(
            arm.strategy is strategy and arm.family == name, arm, "does not belong to its family"
        )


def _wanted_names(strategy: Strategy, task: Task) -> list[str]:
    if not strategy.per_class:
        return [strategy.name]
    wanted_names = []
    for class_name in task.classes:
        wanted_names.append(f"{strategy.name}[{class_name}]")
    return wanted_names


def declares_its_idea(strategy: Strategy, task: Task) -> None:
    """`tailor arms` groups families by idea. A plugin may leave it out, a built-in family not."""
    family = type(strategy)
    idea = strategy.idea
    listed = ", ".join(f"Idea.{known.name}" for known in Idea)
    ways_out = f"set `idea` to one of {listed} (tailor.strategies.Idea)"
    if idea is None:
        is_builtin = family.__module__.startswith("tailor.strategies.")
        require(not is_builtin, f"{family.__name__} has no idea: {ways_out}")
        return
    require(isinstance(idea, Idea), f"{family.__name__}.idea is {idea!r}: {ways_out}")


def gives_every_free_example_once(strategy: Strategy, task: Task) -> None:
    """B picks from B free examples, all different, none labelled, pending or set aside; then
    Exhausted.
    """
    for arm in _first_and_last(strategy, task):
        view = _view(task, 1, pending=0.1, skipped=0.1)
        picks = take_all(arm, view)
        picks.sort()
        free = view.free_ids.tolist()
        expect(picks == free, arm, f"gave {picks}, free were {view.free_ids}")


def same_seed_same_picks(strategy: Strategy, task: Task) -> None:
    """Twice the same round, twice the same picks."""
    for arm in _first_and_last(strategy, task):
        view = _view(task, 2)
        first = take_all(arm, view)
        # Another view of the same round: the ledger of the first one is used up.
        same_view = _view(task, 2)
        second = take_all(arm, same_view)
        expect(first == second, arm, f"gave {first} and then, with the same seed, {second}")


def respects_other_arms(strategy: Strategy, task: Task) -> None:
    """What other arms take meanwhile is not given again."""
    for arm in _first_and_last(strategy, task):
        view = _view(task, 3, pending=0.1)
        picks = take_all(arm, view, others=0.5)
        different = set(picks)
        expect(len(picks) == len(different), arm, f"gave an example twice: {picks}")


def one_example_left(strategy: Strategy, task: Task) -> None:
    """The last free example is given, in a pool of one too."""
    for arm in _first_and_last(strategy, task):
        view = _view(task, 4, labelled=1.0)
        picks = take_all(arm, view)
        free = view.free_ids.tolist()
        expect(picks == free, arm, "did not give the last free example")
        # In a pool of one that is free, nothing is labelled.
        if _needs_labels(arm, task):
            continue
        pool_of_one = make_pool(task, 1, seed=0)
        view = make_view(pool_of_one, 4, labelled=0.0)
        picks = take_all(arm, view)
        expect(picks == [0], arm, "did not give the only example of a pool of one")


def nothing_labelled(strategy: Strategy, task: Task) -> None:
    """With no label at all an arm works, or says it is exhausted; it does not fail."""
    for arm in _first_and_last(strategy, task):
        view = _view(task, 5, labelled=0.0)
        cursor = open_arm(arm, view, pulls=3)
        try:
            index = cursor.take()
        except Exhausted:
            # Without labels an arm may have nothing to go by.
            continue
        expect(bool(view.free[index]), arm, f"gave example {index}, which was not free")


def opened_together_as_alone(strategy: Strategy, task: Task) -> None:
    """Opening a family's arms in one call gives the same picks as opening them one by one."""
    arms = strategy.arms(task)
    count = len(arms)
    view = _view(task, 6)
    pulls = [3] * count
    # A generator for each arm: what one draws must not depend on whether others are open.
    rngs = [np.random.default_rng(seed) for seed in range(count)]
    together = strategy.open(arms, view, pulls, rngs)
    require(
        len(together) == count, f"{strategy.name!r} opened {len(together)} cursors for {count} arms"
    )
    for seed, arm in enumerate(arms):
        same_view = _view(task, 6)
        same_rng = np.random.default_rng(seed)
        alone = arm.open(same_view, 3, same_rng)
        pick = take(arm, together[seed])
        pick_alone = take(arm, alone)
        expect(pick == pick_alone, arm, "gives another example when opened alone")


def pulls_are_a_hint(strategy: Strategy, task: Task) -> None:
    """An arm that inherits slots is asked more often than it was told, and goes on giving."""
    for arm in _first_and_last(strategy, task):
        view = _view(task, 7)
        ledger = view.ledger
        # Told that it will be asked once, asked for everything.
        cursor = open_arm(arm, view, pulls=1)
        for _ in range(ledger.left):
            pick = take(arm, cursor)
            ledger.take(pick)
        expect(ledger.left == 0, arm, f"stopped with {ledger.left} examples left")


def never_reads_a_hidden_label(strategy: Strategy, task: Task) -> None:
    """Pools that differ only in labels nobody has told give the same picks; no arm asks for such a
    label.
    """
    pool = _pool(task)
    # Every label moved on by one class: none stays as it was.
    other_truth = np.roll(pool.truth, 1, axis=1)
    expected = _first_batch(strategy, pool, pool.truth)
    batch = _first_batch(strategy, pool, other_truth)
    require(
        expected == batch,
        f"{strategy.name!r} took {expected}, and {batch} when labels that nobody had told were "
        "others",
    )
    _check_labels_unchanged(strategy, pool)


def _check_labels_unchanged(strategy: Strategy, pool: SimulatedPool) -> None:
    view = make_view(pool, 8, pending=0.2)
    told = view.labels.copy()
    first_arm = strategy.arms(pool.task)[0]
    take_all(first_arm, view)
    # The length first: a changed one can't be compared with what was told.
    has_right_length = len(view.labels) == len(view.labelled)
    require(
        has_right_length and bool((view.labels == told).all()),
        f"{strategy.name!r} changed view.labels: it holds exactly the labels told before the round",
    )


def _first_batch(strategy: Strategy, pool: SimulatedPool, truth: np.ndarray) -> list[int]:
    """The first of three rounds after eight labels of the pool were told. truth (N, K): what the
    annotator answers.
    """
    annotator = WatchedAnnotator(truth)
    learner = Learner(
        pool.task,
        len(pool),
        strategies=[strategy],
        selector="random-meta",
        batch=6,
    )
    labelled = np.arange(8)
    learner.tell(labelled, pool.truth[labelled])
    batches = []
    # The answers differ from the first round on, so only its picks can be compared; the later
    # rounds are there for the annotator to watch.
    for _ in range(3):
        batch = learner.ask(
            pool.probs,
            pool.features,
            finetune=pool.finetune,
            dropout=pool.dropout,
            boundary_distances=pool.boundary_distances,
        )
        picks = batch.indices.tolist()
        batches.append(picks)
        annotator.asked.update(picks)
        answers = annotator.answer(batch.indices)
        learner.tell(batch.indices, answers)
    return batches[0]


def leaves_its_inputs_alone(strategy: Strategy, task: Task) -> None:
    """The caller's arrays, and what all arms share, are as they were."""
    view = _view(task, 9, pending=0.1, skipped=0.1)
    # A deep copy: the arrays themselves would change along with the view's.
    before = deepcopy(_shared_arrays(view))
    for arm in _first_and_last(strategy, task):
        cursor = open_arm(arm, view, pulls=3)
        pulls = min(3, view.ledger.left)
        for _ in range(pulls):
            pick = take(arm, cursor)
            view.ledger.take(pick)
    after = _shared_arrays(view)
    for name, array in before.items():
        is_same = np.array_equal(array, after[name])
        require(is_same, f"{strategy.name!r} changed the {name} it was given")


def _shared_arrays(view: ArrayView) -> dict[str, np.ndarray]:
    """By name, as a message says it."""
    assert view.features is not None
    return {
        "probabilities": view.probs.numpy(),
        "features": view.features.numpy(),
        "labels": view.labels,
        "labelled": view.labelled,
        "pending": view.pending,
        "free": view.free,
    }


def needs_are_enough(strategy: Strategy, task: Task) -> None:
    """It works where only what it names in `needs` is handed in."""
    for arm in _first_and_last(strategy, task):
        view = _view(task, 10, needs=strategy.needs)
        try:
            take_all(arm, view)
        # What is missing may show as None, as a refusal of the view, or as no pick at all.
        except (AttributeError, TypeError, AssertionError, InputError) as error:
            raise AssertionError(
                f"arm {arm.name!r} fails with only its needs {set(strategy.needs)}: {error}"
            ) from error


def single_and_half_precision(strategy: Strategy, task: Task) -> None:
    """Predictions may be float32 and float16."""
    for dtype in (np.float32, np.float16):
        for arm in _first_and_last(strategy, task):
            view = _view(task, 11, dtype=dtype)
            picks = take_all(arm, view)
            picks.sort()
            free = view.free_ids.tolist()
            expect(picks == free, arm, f"fails on {np.dtype(dtype)} inputs")


STRATEGY_CHECKS: tuple[Callable[[Strategy, Task], None], ...] = (
    names,
    declares_its_idea,
    gives_every_free_example_once,
    same_seed_same_picks,
    respects_other_arms,
    one_example_left,
    nothing_labelled,
    opened_together_as_alone,
    pulls_are_a_hint,
    never_reads_a_hidden_label,
    leaves_its_inputs_alone,
    needs_are_enough,
    single_and_half_precision,
)


def _pool(task: Task) -> SimulatedPool:
    # Ties and exact copies are where arms go wrong: a grid makes many of them.
    return make_pool(
        task,
        SIZE,
        seed=0,
        grid=64,
        copies=0.2,
    )


def _view(task: Task, seed: int, **options: Any) -> ArrayView:
    """A view of the pool that all checks share. options: of make_view()."""
    return make_view(_pool(task), seed, **options)


def _first_and_last(strategy: Strategy, task: Task) -> list[Arm]:
    """Of a family's arms: one of a thousand is checked as fast as one of two."""
    arms = strategy.arms(task)
    if len(arms) <= 2:
        return arms
    return [arms[0], arms[-1]]


def _needs_labels(arm: Arm, task: Task) -> bool:
    """Whether an arm is exhausted, as it may be, where nothing is labelled."""
    view = _view(task, 5, labelled=0.0)
    try:
        cursor = open_arm(arm, view, pulls=1)
        cursor.take()
    except Exhausted:
        return True
    return False
