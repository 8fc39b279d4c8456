"""Filling the slots of a plan: the arms that have slots are opened, and each gives examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
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
    [
        Sequence[Arm],
        PoolView,
        Sequence[int],
        Sequence[np.random.Generator],
    ],
    list[Cursor],
]


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


class SlotFiller(ABC):
    """How the slots of a plan get their examples.

    plan         (b,) the number of each slot's arm
    open_family  opens the arms of a family; called here and not kept
    cursors      the opened arms, by number
    """

    def __init__(
        self,
        view: PoolView,
        arms: Sequence[Arm],
        plan: np.ndarray,
        seed: int,
        open_family: OpenFamily,
    ) -> None:
        self._view = view
        self._arms = arms
        self._plan = plan
        self._seed = seed
        self._pulls = np.bincount(plan, minlength=len(arms))  # (M,) the slots of each arm
        self.cursors: dict[int, Cursor] = {}
        pulled = np.flatnonzero(self._pulls)
        families = families_of(arms, pulled.tolist())
        self._open_all(families, open_family)

    @abstractmethod
    def _open_all(self, families: list[list[int]], open_family: OpenFamily) -> None:
        """Open the arms that have slots. families: their numbers."""

    @abstractmethod
    def take(self, slot: int) -> tuple[int, int]:
        """(arm, position): the example of a slot, and the arm that is credited with it."""

    def _open(
        self,
        members: list[int],
        view: PoolView,
        pulls: np.ndarray,
        open_family: OpenFamily,
    ) -> dict[int, Cursor]:
        """The cursors of a family's members, by number. pulls (m,): how often each is asked."""
        arms = [self._arms[number] for number in members]
        rngs = generators(self._seed, members)
        opened = open_family(
            arms,
            view,
            pulls.tolist(),
            rngs,
        )
        cursors = dict(zip(members, opened, strict=True))
        self.cursors.update(cursors)
        return cursors

    def _stand_in(self, slot: int) -> tuple[int, int]:
        """A random free example for a slot that no arm fills, credited to nobody."""
        # Seeded by the slot: a round that is gone through again draws the same stand-ins.
        seeds = (self._seed, len(self._arms), slot)
        rng = np.random.default_rng(seeds)
        free_positions = np.flatnonzero(self._view.ledger.free)
        drawn = rng.integers(len(free_positions))
        return NOBODY, int(free_positions[drawn])


class PlannedArms(SlotFiller):
    """Each slot's arm gives the next example.

    An arm that runs dry hands its slot on: to the arm of the next slot in the plan, going round,
    that still has something to give, so that the slot stays with those the selector wanted. Where
    every planned arm is dry the slot gets a random free example, credited to nobody.
    """

    def _open_all(self, families: list[list[int]], open_family: OpenFamily) -> None:
        self._dry: set[int] = set()
        for members in families:
            self._open(
                members,
                self._view,
                self._pulls[members],
                open_family,
            )

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
        return self._stand_in(slot)

    def _arms_in_turn(self, slot: int) -> Iterator[int]:
        """The planned arm, then those of the slots after it, going round; without those that are
        dry.
        """
        # Only as far as it is wanted: most slots are filled by their own arm.
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
