"""One round: open the pulled arms, walk the plan, hand out picks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from tailor.common.checks import check_array, check_instance, check_list, check_whole, shown
from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import PoolView
from tailor.strategies.base import Arm, Cursor

#: the arm of a pick that no arm would give
NOBODY = -1


@dataclass(frozen=True)
class Pick:
    """One example to label. `arm` gave it; `planned` had the slot, and differs where it had run
    dry.
    """

    index: int
    slot: int
    arm: int
    planned: int


@dataclass(frozen=True)
class Batch:
    """The examples to label in a round, in slot order, each once."""

    indices: np.ndarray  # (b,) int64
    arms: np.ndarray  # (b,) int64: who gave each, NOBODY (-1) for a random stand-in
    planned: np.ndarray  # (b,) int64: whose slot it was
    names: tuple[str, ...] = field(repr=False)  # (M,) the arms
    requested: int  # how many were asked for

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def short(self) -> bool:
        """True where fewer examples were left than asked for: the batch is all of them."""
        return len(self) < self.requested

    @property
    def arm_names(self) -> list[str]:
        """The name of the arm behind each pick."""
        return [self.names[a] if a != NOBODY else "(nobody)" for a in self.arms]


class Round:
    """Walks a plan. Only the arms in it are opened, each told how often it will be asked.

    An arm that runs dry hands its slot on: to the arm of the next slot in the plan, going round,
    that still has something to give, so that the slot stays with those the selector wanted. Where
    every planned arm is dry the slot gets a random free example, credited to nobody.
    """

    def __init__(self, view: PoolView, arms: Sequence[Arm], plan: np.ndarray, seed: int) -> None:
        check_instance(view, PoolView, "view", "a PoolView")
        for arm in check_list(arms, "arms", "arms"):
            check_instance(arm, Arm, "arms", "a list of Arm objects")
        plan = _check_plan(plan, len(arms))
        check_needs(view, [arms[int(i)] for i in np.unique(plan)])
        self.view = view
        self.arms = arms
        self.plan = plan
        self._seed = check_whole(seed, "seed", 0)
        self._slot = 0
        self._dry: set[int] = set()
        # Picks that were made and could not be handed out, since a later one failed.
        self._undelivered: list[Pick] = []
        started = time.perf_counter()
        self._cursors = self._open()
        self.open_seconds = time.perf_counter() - started
        self.take_seconds = 0.0

    def _open(self) -> dict[int, Cursor]:
        pulls = np.bincount(self.plan, minlength=len(self.arms))
        # Arms of one family are opened together, so that they can share a pass over the pool.
        families: dict[int, list[int]] = {}
        for i in np.flatnonzero(pulls).tolist():
            families.setdefault(id(self.arms[i].strategy), []).append(i)
        cursors: dict[int, Cursor] = {}
        for members in families.values():
            opened = self._open_family(
                [self.arms[i] for i in members],
                [int(pulls[i]) for i in members],
                [np.random.default_rng((self._seed, i)) for i in members],
            )
            cursors.update(zip(members, opened, strict=True))
        return cursors

    def _open_family(
        self,
        arms: Sequence[Arm],
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        """Open the pulled arms of one family together."""
        return arms[0].strategy.open(arms, self.view, pulls, rngs)

    @property
    def opened(self) -> list[int]:
        """The arms that were opened."""
        return list(self._cursors)

    @property
    def over(self) -> bool:
        return not self._undelivered and self._all_picked

    @property
    def _all_picked(self) -> bool:
        return self._slot == len(self.plan) or self.view.ledger.left == 0

    def next(self) -> Pick:
        """The pick for the next slot; Exhausted when the plan is done or nothing is left."""
        return self._undelivered.pop(0) if self._undelivered else self.pick()

    def pick(self) -> Pick:
        """As next(), entered in the ledger alone."""
        if self._all_picked:
            raise Exhausted("the round is over")
        planned = int(self.plan[self._slot])
        arm, index = self._take(planned)
        self.view.ledger.take(index)
        pick = Pick(index, self._slot, arm, planned)
        self._slot += 1
        return pick

    def repick(self, index: int) -> None:
        """Go through a slot again whose pick is known: the arms move on as they did then."""
        index = check_whole(index, "index", 0, self.view.size - 1)
        self._take(int(self.plan[self._slot]))
        self.view.ledger.take(index)
        self._slot += 1

    def _take(self, planned: int) -> tuple[int, int]:
        """(arm, position): the next example of the planned arm, or of the one that inherits its
        slot.
        """
        for arm in self._arms_in_turn(planned):
            try:
                return arm, self._cursors[arm].take()
            except Exhausted:
                self._dry.add(arm)
        free = np.flatnonzero(self.view.ledger.free)
        rng = np.random.default_rng((self._seed, len(self.arms), self._slot))
        return NOBODY, int(free[rng.integers(len(free))])

    def _arms_in_turn(self, planned: int) -> Iterator[int]:
        """The planned arm, then those of the slots after it, going round; without those that are
        dry.
        """
        if planned not in self._dry:
            yield planned
        for arm in chain(self.plan[self._slot + 1 :], self.plan[: self._slot]):
            if len(self._dry) == len(self._cursors):
                return
            if int(arm) not in self._dry:
                yield int(arm)

    def __iter__(self) -> Iterator[Pick]:
        while not self.over:
            yield self.next()

    def reveal(self, index: int, label: np.ndarray) -> None:
        """The label (K,) of an example of this round has come: arms that can use it mid-round
        do.
        """
        index = check_whole(index, "index", 0, self.view.size - 1)
        labels = self.view.task.check_labels(check_array(label, "label")[None])
        self.view.ledger.reveal(index, labels[0])

    def batch(self) -> Batch:
        """Walk the rest of the plan."""
        batch = self._pick_rest()
        self._undelivered.clear()
        return batch

    def _pick_rest(self) -> Batch:
        """All picks that are left.

        They are kept in `_undelivered` until they are handed out: where a later one fails, those
        before it come with the next call.
        """
        started = time.perf_counter()
        requested = len(self._undelivered) + len(self.plan) - self._slot
        while not self._all_picked:
            self._undelivered.append(Round.pick(self))
        self.take_seconds += time.perf_counter() - started
        picks = self._undelivered
        return Batch(
            indices=np.array([pick.index for pick in picks], np.int64),
            arms=np.array([pick.arm for pick in picks], np.int64),
            planned=np.array([pick.planned for pick in picks], np.int64),
            names=tuple(arm.name for arm in self.arms),
            requested=requested,
        )


def _check_plan(plan: np.ndarray, arms: int) -> np.ndarray:
    """(slots,) indices of arms."""
    array = check_array(plan, "plan")
    is_list_of_integers = array.ndim == 1 and array.dtype.kind in "iu"
    if not is_list_of_integers or (array.size and not 0 <= array.min() <= array.max() < arms):
        raise InputError(f"plan is {shown(plan)}: indices of arms, 0 to {arms - 1}, are needed")
    return array


def check_needs(view: PoolView, arms: Sequence[Arm]) -> None:
    """Every arm must find what it reads."""
    for arm in {id(a.strategy): a for a in arms}.values():
        for need in arm.strategy.needs:
            if not view.has(need):
                raise InputError(
                    f"arm {arm.name!r} needs {need.value}: hand it in, or leave {arm.family!r} out"
                )
