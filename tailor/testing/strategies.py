"""The contract of a family of arms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tailor.errors import Exhausted, InputError
from tailor.selection.learner import Learner
from tailor.selection.pool_view import PoolView
from tailor.strategies.base import Arm, Cursor, Strategy
from tailor.task import Task
from tailor.testing.simulated_pools import SimulatedPool, make_pool, make_view

SIZE = 40


def check_strategy(strategy: Strategy, task: Task) -> None:
    """Raises AssertionError where a family of arms breaks a rule that rounds and selectors rely
    on.
    """
    for check in STRATEGY_CHECKS:
        check(strategy, task)


def take_all(arm: Arm, view: PoolView, seed: int = 0, others: float = 0.0) -> list[int]:
    """Take from one arm until nothing is left, entering each in the ledger; its own picks in order.

    others  how often another arm takes a random example in between
    """
    cursor = arm.open(view, max(1, view.ledger.left), np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    mine = []
    while view.ledger.left:
        if rng.random() < others:
            view.ledger.take(int(rng.choice(np.flatnonzero(view.ledger.free))))
            continue
        index = _take(arm, cursor)
        _expect(
            0 <= index < view.size, arm, f"gave position {index}, the pool has {view.size} examples"
        )
        _expect(
            bool(view.ledger.free[index]),
            arm,
            f"gave example {index}, which is labelled, taken or set aside",
        )
        view.ledger.take(index)
        mine.append(index)
    try:
        extra = cursor.take()
    except Exhausted:
        return mine
    raise AssertionError(
        f"arm {arm.name!r} gave example {extra} when none was free: it must raise Exhausted"
    )


def names(strategy: Strategy, task: Task) -> None:
    """Arms are named after the family, with the class in brackets where there is one a class."""
    _says(
        bool(strategy.name) and strategy.name == strategy.name.strip(), f"{strategy!r} has no name"
    )
    _says(
        task.kind in strategy.tasks,
        f"{strategy.name!r} is not for {task.kind} tasks: check it on another task",
    )
    arms = strategy.arms(task)
    found = [arm.name for arm in arms]
    one_each = [f"{strategy.name}[{c}]" for c in task.classes]
    wanted = one_each if strategy.per_class else [strategy.name]
    _says(found == wanted, f"arms of {strategy.name!r} are named {found}, not {wanted}")
    classes = [arm.klass for arm in arms]
    _says(
        classes == (list(range(task.size)) if strategy.per_class else [None]),
        f"arms of {strategy.name!r} have classes {classes}",
    )
    for arm in arms:
        _expect(
            arm.strategy is strategy and arm.family == strategy.name,
            arm,
            "does not belong to its family",
        )


def gives_every_free_example_once(strategy: Strategy, task: Task) -> None:
    """B picks from B free examples, all different, none labelled, pending or set aside; then
    Exhausted.
    """
    for arm in _some(strategy, task):
        view = make_view(_pool(task), 1, pending=0.1, skipped=0.1)
        taken = take_all(arm, view)
        _expect(
            sorted(taken) == view.free_ids.tolist(),
            arm,
            f"gave {sorted(taken)}, free were {view.free_ids}",
        )


def same_seed_same_picks(strategy: Strategy, task: Task) -> None:
    for arm in _some(strategy, task):
        first, second = (take_all(arm, make_view(_pool(task), 2)) for _ in range(2))
        _expect(first == second, arm, f"gave {first} and then, with the same seed, {second}")


def respects_other_arms(strategy: Strategy, task: Task) -> None:
    """What other arms take meanwhile is not given again."""
    for arm in _some(strategy, task):
        taken = take_all(arm, make_view(_pool(task), 3, pending=0.1), others=0.5)
        _expect(len(taken) == len(set(taken)), arm, f"gave an example twice: {taken}")


def one_example_left(strategy: Strategy, task: Task) -> None:
    """The last free example is given, in a pool of one too."""
    for arm in _some(strategy, task):
        view = make_view(_pool(task), 4, labelled=1.0)
        _expect(
            take_all(arm, view) == view.free_ids.tolist(), arm, "did not give the last free example"
        )
        if not _needs_labels(arm, task):
            alone = make_view(make_pool(task, 1, seed=0), 4, labelled=0.0)
            _expect(
                take_all(arm, alone) == [0], arm, "did not give the only example of a pool of one"
            )


def nothing_labelled(strategy: Strategy, task: Task) -> None:
    """With no label at all an arm works, or says it is exhausted; it does not fail."""
    for arm in _some(strategy, task):
        view = make_view(_pool(task), 5, labelled=0.0)
        cursor = arm.open(view, 3, np.random.default_rng(0))
        try:
            index = cursor.take()
        except Exhausted:
            continue
        _expect(bool(view.free[index]), arm, f"gave example {index}, which was not free")


def opened_together_as_alone(strategy: Strategy, task: Task) -> None:
    """Opening a family's arms in one call gives the same picks as opening them one by one."""
    arms = strategy.arms(task)
    view = make_view(_pool(task), 6)
    pulls = [3] * len(arms)
    seeds = range(len(arms))
    together = strategy.open(arms, view, pulls, [np.random.default_rng(s) for s in seeds])
    _says(
        len(together) == len(arms),
        f"{strategy.name!r} opened {len(together)} cursors for {len(arms)} arms",
    )
    for arm, cursor, seed in zip(arms, together, seeds):
        alone = arm.open(make_view(_pool(task), 6), 3, np.random.default_rng(seed))
        _expect(
            _take(arm, cursor) == _take(arm, alone), arm, "gives another example when opened alone"
        )


def pulls_are_a_hint(strategy: Strategy, task: Task) -> None:
    """An arm that inherits slots is asked more often than it was told, and goes on giving."""
    for arm in _some(strategy, task):
        view = make_view(_pool(task), 7)
        cursor = arm.open(view, 1, np.random.default_rng(0))
        wanted = view.ledger.left
        for _ in range(wanted):
            view.ledger.take(_take(arm, cursor))
        _expect(view.ledger.left == 0, arm, f"stopped with {view.ledger.left} examples left")


def never_reads_a_hidden_label(strategy: Strategy, task: Task) -> None:
    """Pools that differ only in labels nobody has told give the same picks; no arm asks for such a
    label.
    """
    pool = _pool(task)
    hidden = SimulatedPool(task, pool.probs, pool.features, np.roll(pool.truth, 1, axis=1))
    known = np.arange(8)
    batches = []
    for truth in (pool.truth, hidden.truth):
        annotator = Annotator(truth)
        learner = Learner(task, len(pool), strategies=[strategy], selector="random-meta", batch=6)
        learner.tell(known, pool.truth[known])
        for number in range(3):
            batch = learner.ask(
                pool.probs, pool.features, finetune=pool.finetune, dropout=pool.dropout
            )
            if number == 0:
                batches.append(batch.indices.tolist())
            annotator.asked.update(batch.indices.tolist())
            learner.tell(batch.indices, annotator.answer(batch.indices))
    _says(
        batches[0] == batches[1],
        f"{strategy.name!r} took {batches[0]}, and {batches[1]} when labels that nobody had told "
        "were others",
    )
    view = make_view(pool, 8, pending=0.2)
    told = view.labels.copy()
    take_all(strategy.arms(task)[0], view)
    _says(
        len(view.labels) == len(view.labelled) and bool((view.labels == told).all()),
        f"{strategy.name!r} changed view.labels: it holds exactly the labels told before the round",
    )


def leaves_its_inputs_alone(strategy: Strategy, task: Task) -> None:
    """The caller's arrays, and what all arms share, are as they were."""
    pool = _pool(task)
    view = make_view(pool, 9, pending=0.1, skipped=0.1)
    assert view.features is not None
    shared = {
        "probabilities": view.probs.numpy(),
        "features": view.features.numpy(),
        "labels": view.labels,
        "labelled": view.labelled,
        "pending": view.pending,
        "free": view.free,
    }
    before = {name: array.copy() for name, array in shared.items()}
    for arm in _some(strategy, task):
        cursor = arm.open(view, 3, np.random.default_rng(0))
        for _ in range(min(3, view.ledger.left)):
            view.ledger.take(_take(arm, cursor))
    for name, array in shared.items():
        _says(
            np.array_equal(array, before[name]),
            f"{strategy.name!r} changed the {name} it was given",
        )


def needs_are_enough(strategy: Strategy, task: Task) -> None:
    """It works where only what it names in `needs` is handed in."""
    for arm in _some(strategy, task):
        view = make_view(_pool(task), 10, needs=strategy.needs)
        try:
            take_all(arm, view)
        except (AttributeError, TypeError, AssertionError, InputError) as error:
            raise AssertionError(
                f"arm {arm.name!r} fails with only its needs {set(strategy.needs)}: {error}"
            ) from error


def single_and_half_precision(strategy: Strategy, task: Task) -> None:
    for dtype in (np.float32, np.float16):
        for arm in _some(strategy, task):
            view = make_view(_pool(task), 11, dtype=dtype)
            taken = take_all(arm, view)
            _expect(
                sorted(taken) == view.free_ids.tolist(), arm, f"fails on {np.dtype(dtype)} inputs"
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


class Annotator:
    """Knows all labels, and raises if one is wanted that was not asked for."""

    def __init__(self, truth: np.ndarray) -> None:
        self._truth = truth
        self.asked = set[int]()

    def answer(self, positions: np.ndarray) -> np.ndarray:
        early = [i for i in positions.tolist() if i not in self.asked]
        _says(not early, f"the label of example {early[:1]} was read before it was asked")
        return self._truth[positions]


def _pool(task: Task) -> SimulatedPool:
    return make_pool(task, SIZE, seed=0, grid=64, copies=0.2)


def _some(strategy: Strategy, task: Task) -> list[Arm]:
    """The first and the last arm: a family of a thousand is checked as fast as one of two."""
    arms = strategy.arms(task)
    return arms if len(arms) <= 2 else [arms[0], arms[-1]]


def _needs_labels(arm: Arm, task: Task) -> bool:
    """Whether an arm is exhausted, as it may be, where nothing is labelled."""
    view = make_view(_pool(task), 5, labelled=0.0)
    try:
        arm.open(view, 1, np.random.default_rng(0)).take()
    except Exhausted:
        return True
    return False


def _take(arm: Arm, cursor: Cursor) -> int:
    try:
        index = cursor.take()
    except Exhausted as error:
        raise AssertionError(
            f"arm {arm.name!r} is exhausted while examples are free: {error}"
        ) from error
    _expect(isinstance(index, (int, np.integer)), arm, f"gave {index!r}, not a position")
    return int(index)


def _expect(holds: bool, arm: Arm, message: str) -> None:
    _says(holds, f"arm {arm.name!r} {message}")


def _says(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
