"""Walking a plan: the arms with slots are opened, and each gives the next example for its slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from tailor.errors import Exhausted
from tailor.selection.pool_view import PoolView
from tailor.strategies.base import Arm, Cursor

#: the arm of a pick that no arm would give
NOBODY = -1
#: (arms of one family, view, pulls of each, a generator for each) -> their cursors
OpenFamily = Callable[
    [Sequence[Arm], PoolView, Sequence[int], Sequence[np.random.Generator]],
    list[Cursor],
]


def open_family(
    arms: Sequence[Arm],
    view: PoolView,
    pulls: Sequence[int],
    rngs: Sequence[np.random.Generator],
) -> list[Cursor]:
    """Open the pulled arms of one family together."""
    strategy = arms[0].strategy
    return strategy.open(
        arms,
        view,
        pulls,
        rngs,
    )


def families_of(arms: Sequence[Arm], numbers: Sequence[int]) -> list[list[int]]:
    """Arms by their numbers -> those of one family together, so that they share a pass over the
    pool when they are opened.
    """
    families: dict[int, list[int]] = {}
    for number in numbers:
        strategy = arms[number].strategy
        members = families.setdefault(id(strategy), [])
        members.append(number)
    return list(families.values())


def generators(seed: int, numbers: Sequence[int]) -> list[np.random.Generator]:
    """A generator an arm: what it draws does not depend on which others are opened."""
    return [np.random.default_rng((seed, number)) for number in numbers]


def random_stand_in(view: PoolView, seed: int, arms: int, slot: int) -> int:
    """A free example for a slot that no arm fills."""
    # Seeded by the slot: a round that is gone through again draws the same stand-ins.
    rng = np.random.default_rng((seed, arms, slot))
    free_positions = np.flatnonzero(view.ledger.free)
    drawn = rng.integers(len(free_positions))
    return int(free_positions[drawn])


class PlanWalk:
    """Each slot's arm gives the next example.

    An arm that runs dry hands its slot on: to the arm of the next slot in the plan, going round,
    that still has something to give, so that the slot stays with those the selector wanted. Where
    every planned arm is dry the slot gets a random free example, credited to nobody.
    """

    def __init__(
        self,
        view: PoolView,
        arms: Sequence[Arm],
        plan: np.ndarray,
        seed: int,
        open_family: OpenFamily = open_family,
    ) -> None:
        self._view = view
        self._arms = arms
        self._plan = plan
        self._seed = seed
        self._dry: set[int] = set()
        #: by the arm's number
        self.cursors: dict[int, Cursor] = {}
        pulls = np.bincount(plan, minlength=len(arms))
        pulled = np.flatnonzero(pulls).tolist()
        for members in families_of(arms, pulled):
            opened = open_family(
                [arms[number] for number in members],
                view,
                pulls[members].tolist(),
                generators(seed, members),
            )
            self.cursors.update(zip(members, opened, strict=True))

    def take(self, slot: int) -> tuple[int, int]:
        """(arm, position): the next example of the planned arm, or of the one that inherits its
        slot.
        """
        for arm in self._arms_in_turn(slot):
            try:
                position = self.cursors[arm].take()
            except Exhausted:
                self._dry.add(arm)
            else:
                return arm, position
        stand_in = random_stand_in(
            self._view,
            self._seed,
            len(self._arms),
            slot,
        )
        return NOBODY, stand_in

    def _arms_in_turn(self, slot: int) -> Iterator[int]:
        """The planned arm, then those of the slots after it, going round; without those that are
        dry.
        """
        planned = int(self._plan[slot])
        if planned not in self._dry:
            yield planned
        later_slots = self._plan[slot + 1 :]
        earlier_slots = self._plan[:slot]
        for slot_arm in chain(later_slots, earlier_slots):
            # Every arm may have run dry on the way: the rest of a long plan is not gone through.
            if len(self._dry) == len(self.cursors):
                return
            arm = int(slot_arm)
            if arm not in self._dry:
                yield arm
