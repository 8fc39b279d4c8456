"""The contract of a family of arms."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from tailor.errors import Exhausted, InputError
from tailor.selection.array_view import ArrayView
from tailor.selection.learner import Learner
from tailor.selection.pool_view import PoolView
from tailor.strategies.base import Arm, Cursor, Strategy
from tailor.task import Task
from tailor.testing.simulated_pools import SimulatedPool, make_pool, make_view

#: examples in the pools that families are checked on
SIZE = 40


def check_strategy(strategy: Strategy, task: Task) -> None:
    """Raises AssertionError where a family of arms breaks a rule that rounds and selectors rely
    on.
    """
    for check in STRATEGY_CHECKS:
        check(strategy, task)


def take_all(
    arm: Arm,
    view: PoolView,
    seed: int = 0,
    others: float = 0.0,
) -> list[int]:
    """Take from one arm until nothing is left, entering each in the ledger; its own picks in order.

    others  how often another arm takes a random example in between
    """
    ledger = view.ledger
    pulls = max(1, ledger.left)
    arm_rng = np.random.default_rng(seed)
    cursor = arm.open(view, pulls, arm_rng)
    # Its own generator: how much the arm draws must not decide what the others take.
    others_rng = np.random.default_rng(seed)
    picks = []
    while ledger.left:
        if others_rng.random() < others:
            free = np.flatnonzero(ledger.free)
            taken = others_rng.choice(free)
            ledger.take(int(taken))
            continue
        index = _take_free(arm, cursor, view)
        ledger.take(index)
        picks.append(index)
    try:
        extra = cursor.take()
    except Exhausted:
        return picks
    raise AssertionError(
        f"arm {arm.name!r} gave example {extra} when none was free: it must raise Exhausted"
    )


def _take_free(arm: Arm, cursor: Cursor, view: PoolView) -> int:
    """The arm's next pick; AssertionError where it is not a free example of the pool."""
    index = _take(arm, cursor)
    _expect(
        0 <= index < view.size,
        arm,
        f"gave position {index}, the pool has {view.size} examples",
    )
    _expect(
        bool(view.ledger.free[index]),
        arm,
        f"gave example {index}, which is labelled, taken or set aside",
    )
    return index


def names(strategy: Strategy, task: Task) -> None:
    """Arms are named after the family, with the class in brackets where there is one a class."""
    name = strategy.name
    is_trimmed = name == name.strip()
    _require(
        bool(name) and is_trimmed,
        f"{strategy!r} has no name",
    )
    _require(
        task.kind in strategy.tasks,
        f"{name!r} is not for {task.kind} tasks: check it on another task",
    )
    arms = strategy.arms(task)
    arm_names = [arm.name for arm in arms]
    classes = [arm.klass for arm in arms]
    wanted_names = [name]
    wanted_classes: list[int | None] = [None]
    if strategy.per_class:
        wanted_names = [f"{name}[{class_name}]" for class_name in task.classes]
        wanted_classes = list(range(task.size))
    _require(
        arm_names == wanted_names,
        f"arms of {name!r} are named {arm_names}, not {wanted_names}",
    )
    _require(
        classes == wanted_classes,
        f"arms of {name!r} have classes {classes}",
    )
    for arm in arms:
        _expect(
            arm.strategy is strategy and arm.family == name,
            arm,
            "does not belong to its family",
        )


def gives_every_free_example_once(strategy: Strategy, task: Task) -> None:
    """B picks from B free examples, all different, none labelled, pending or set aside; then
    Exhausted.
    """
    for arm in _first_and_last(strategy, task):
        view = _view(task, 1, pending=0.1, skipped=0.1)
        picks = take_all(arm, view)
        picks.sort()
        free = view.free_ids.tolist()
        _expect(
            picks == free,
            arm,
            f"gave {picks}, free were {view.free_ids}",
        )


def same_seed_same_picks(strategy: Strategy, task: Task) -> None:
    """Twice the same round, twice the same picks."""
    for arm in _first_and_last(strategy, task):
        view = _view(task, 2)
        first = take_all(arm, view)
        same_view = _view(task, 2)
        second = take_all(arm, same_view)
        _expect(
            first == second,
            arm,
            f"gave {first} and then, with the same seed, {second}",
        )


def respects_other_arms(strategy: Strategy, task: Task) -> None:
    """What other arms take meanwhile is not given again."""
    for arm in _first_and_last(strategy, task):
        view = _view(task, 3, pending=0.1)
        picks = take_all(arm, view, others=0.5)
        different = set(picks)
        _expect(
            len(picks) == len(different),
            arm,
            f"gave an example twice: {picks}",
        )


def one_example_left(strategy: Strategy, task: Task) -> None:
    """The last free example is given, in a pool of one too."""
    for arm in _first_and_last(strategy, task):
        view = _view(task, 4, labelled=1.0)
        picks = take_all(arm, view)
        free = view.free_ids.tolist()
        _expect(picks == free, arm, "did not give the last free example")
        if _needs_labels(arm, task):
            continue
        pool_of_one = make_pool(task, 1, seed=0)
        view = make_view(pool_of_one, 4, labelled=0.0)
        picks = take_all(arm, view)
        _expect(picks == [0], arm, "did not give the only example of a pool of one")


def nothing_labelled(strategy: Strategy, task: Task) -> None:
    """With no label at all an arm works, or says it is exhausted; it does not fail."""
    for arm in _first_and_last(strategy, task):
        view = _view(task, 5, labelled=0.0)
        cursor = _open(arm, view, pulls=3)
        try:
            index = cursor.take()
        except Exhausted:
            # Without labels an arm may have nothing to go by.
            continue
        _expect(
            bool(view.free[index]),
            arm,
            f"gave example {index}, which was not free",
        )


def opened_together_as_alone(strategy: Strategy, task: Task) -> None:
    """Opening a family's arms in one call gives the same picks as opening them one by one."""
    arms = strategy.arms(task)
    count = len(arms)
    view = _view(task, 6)
    pulls = [3] * count
    rngs = [np.random.default_rng(seed) for seed in range(count)]
    together = strategy.open(arms, view, pulls, rngs)
    _require(
        len(together) == count,
        f"{strategy.name!r} opened {len(together)} cursors for {count} arms",
    )
    for seed, arm in enumerate(arms):
        same_view = _view(task, 6)
        same_rng = np.random.default_rng(seed)
        alone = arm.open(same_view, 3, same_rng)
        pick = _take(arm, together[seed])
        pick_alone = _take(arm, alone)
        _expect(
            pick == pick_alone,
            arm,
            "gives another example when opened alone",
        )


def pulls_are_a_hint(strategy: Strategy, task: Task) -> None:
    """An arm that inherits slots is asked more often than it was told, and goes on giving."""
    for arm in _first_and_last(strategy, task):
        view = _view(task, 7)
        ledger = view.ledger
        cursor = _open(arm, view, pulls=1)
        for _ in range(ledger.left):
            pick = _take(arm, cursor)
            ledger.take(pick)
        _expect(
            ledger.left == 0,
            arm,
            f"stopped with {ledger.left} examples left",
        )


def never_reads_a_hidden_label(strategy: Strategy, task: Task) -> None:
    """Pools that differ only in labels nobody has told give the same picks; no arm asks for such a
    label.
    """
    pool = _pool(task)
    other_truth = np.roll(pool.truth, 1, axis=1)
    expected = _first_batch(strategy, pool, pool.truth)
    batch = _first_batch(strategy, pool, other_truth)
    _require(
        expected == batch,
        f"{strategy.name!r} took {expected}, and {batch} when labels that nobody had told were "
        "others",
    )
    view = make_view(pool, 8, pending=0.2)
    told = view.labels.copy()
    first_arm = strategy.arms(task)[0]
    take_all(first_arm, view)
    # The length first: a changed one can't be compared with what was told.
    has_right_length = len(view.labels) == len(view.labelled)
    _require(
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
    before = deepcopy(_shared_arrays(view))
    for arm in _first_and_last(strategy, task):
        cursor = _open(arm, view, pulls=3)
        pulls = min(3, view.ledger.left)
        for _ in range(pulls):
            pick = _take(arm, cursor)
            view.ledger.take(pick)
    after = _shared_arrays(view)
    for name, array in before.items():
        is_same = np.array_equal(array, after[name])
        _require(is_same, f"{strategy.name!r} changed the {name} it was given")


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
            _expect(
                picks == free,
                arm,
                f"fails on {np.dtype(dtype)} inputs",
            )


STRATEGY_CHECKS: tuple[Callable[[Strategy, Task], None], ...] = (
    names,
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


class WatchedAnnotator:
    """Knows all labels, and raises AssertionError if one is wanted that was not asked for.

    truth  (N, K)
    asked  positions that were asked for
    """

    def __init__(self, truth: np.ndarray) -> None:
        self._truth = truth
        self.asked = set[int]()

    def answer(self, positions: np.ndarray) -> np.ndarray:
        """(n, K) the labels of positions (n,)."""
        early = []
        for index in positions.tolist():
            if index not in self.asked:
                early.append(index)
        _require(
            not early,
            f"the label of example {early[:1]} was read before it was asked",
        )
        return self._truth[positions]


def _pool(task: Task) -> SimulatedPool:
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
        cursor = _open(arm, view, pulls=1)
        cursor.take()
    except Exhausted:
        return True
    return False


def _open(arm: Arm, view: PoolView, pulls: int) -> Cursor:
    """A cursor of the arm with a generator that is the same each time."""
    rng = np.random.default_rng(0)
    return arm.open(view, pulls, rng)


def _take(arm: Arm, cursor: Cursor) -> int:
    """The arm's next pick; AssertionError where it is exhausted or gives no position."""
    try:
        index = cursor.take()
    except Exhausted as error:
        raise AssertionError(
            f"arm {arm.name!r} is exhausted while examples are free: {error}"
        ) from error
    _expect(
        isinstance(index, (int, np.integer)),
        arm,
        f"gave {index!r}, not a position",
    )
    return int(index)


def _expect(holds: bool, arm: Arm, message: str) -> None:
    _require(holds, f"arm {arm.name!r} {message}")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
