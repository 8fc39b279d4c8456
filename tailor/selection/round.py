"""One round: open the pulled arms, fill the slots of the plan, hand out picks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tailor.common.checks import (
    check_array,
    check_flag,
    check_instance,
    check_list,
    check_whole,
    shown,
)
from tailor.errors import Exhausted, InputError
from tailor.selection.covered_proposals import CoveredProposals, check_can_cover
from tailor.selection.pool_view import PoolView
from tailor.selection.slot_filling import NOBODY, PlannedArms, SlotFiller
from tailor.strategies.base import Arm, Cursor


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
        names = []
        for arm in self.arms:
            name = "(nobody)"
            if arm != NOBODY:
                name = self.names[arm]
            names.append(name)
        return names


class Round:
    """Goes through a plan. Only the arms in it are opened, each told how often it will be asked.

    A SlotFiller gives each slot its example: from the slot's arm (PlannedArms), or, with `cover`,
    from what all arms proposed (CoveredProposals).
    """

    def __init__(
        self,
        view: PoolView,
        arms: Sequence[Arm],
        plan: np.ndarray,
        seed: int,
        *,
        cover: bool = False,
    ) -> None:
        check_instance(
            view,
            PoolView,
            "view",
            "a PoolView",
        )
        for arm in check_list(arms, "arms", "arms"):
            check_instance(
                arm,
                Arm,
                "arms",
                "a list of Arm objects",
            )
        plan = _check_plan(plan, len(arms))
        # Arms without a slot are not opened: what they would read may be missing.
        planned_numbers = np.unique(plan).tolist()
        planned_arms = [arms[number] for number in planned_numbers]
        check_needs(view, planned_arms)
        self.view = view
        self.arms = arms
        self.plan = plan
        self._seed = check_whole(seed, "seed", 0)
        self._slot = 0
        # Picks that were made and could not be handed out, since a later one failed.
        self._undelivered: list[Pick] = []
        started = time.perf_counter()
        self._slot_filler = self._make_slot_filler(check_flag(cover, "cover"))
        self.open_seconds = time.perf_counter() - started
        self.take_seconds = 0.0

    def _make_slot_filler(self, cover: bool) -> SlotFiller:
        """Opens the arms that have slots."""
        kind: type[SlotFiller] = PlannedArms
        if cover:
            check_can_cover(self.view)
            kind = CoveredProposals
        return kind(
            self.view,
            self.arms,
            self.plan,
            self._seed,
            self._open_family,
        )

    def _open_family(
        self,
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

    @property
    def opened(self) -> list[int]:
        """The arms that were opened."""
        return list(self._slot_filler.cursors)

    @property
    def over(self) -> bool:
        return not self._undelivered and self._all_picked

    @property
    def _all_picked(self) -> bool:
        if self._slot == len(self.plan):
            return True
        return self.view.ledger.left == 0

    def next(self) -> Pick:
        """The pick for the next slot; Exhausted when the plan is done or nothing is left."""
        if self._undelivered:
            return self._undelivered.pop(0)
        return self.pick()

    def pick(self) -> Pick:
        """As next(), entered in the ledger alone."""
        if self._all_picked:
            raise Exhausted("the round is over")
        planned = int(self.plan[self._slot])
        arm, index = self._slot_filler.take(self._slot)
        self.view.ledger.take(index)
        pick = Pick(
            index,
            self._slot,
            arm,
            planned,
        )
        self._slot += 1
        return pick

    def repick(self, index: int) -> None:
        """Go through a slot again whose pick is known: the arms move on as they did then."""
        index = self._check_index(index)
        self._slot_filler.take(self._slot)
        self.view.ledger.take(index)
        self._slot += 1

    def __iter__(self) -> Iterator[Pick]:
        while not self.over:
            yield self.next()

    def reveal(self, index: int, label: np.ndarray) -> None:
        """The label (K,) of an example of this round has come: arms that can use it mid-round
        do.
        """
        index = self._check_index(index)
        row = check_array(label, "label")
        view = self.view
        (checked_label,) = view.task.check_labels(row[None])
        view.ledger.reveal(index, checked_label)

    def _check_index(self, index: int) -> int:
        last = self.view.size - 1
        return check_whole(
            index,
            "index",
            0,
            last,
        )

    def batch(self) -> Batch:
        """Fill the rest of the plan."""
        batch = self._pick_rest()
        self._undelivered.clear()
        return batch

    def _pick_rest(self) -> Batch:
        """All picks that are left.

        They are kept in `_undelivered` until they are handed out: where a later one fails, those
        before it come with the next call.
        """
        started = time.perf_counter()
        slots_left = len(self.plan) - self._slot
        requested = len(self._undelivered) + slots_left
        while not self._all_picked:
            pick = Round.pick(self)
            self._undelivered.append(pick)
        self.take_seconds += time.perf_counter() - started
        indices = []
        arms = []
        planned = []
        for pick in self._undelivered:
            indices.append(pick.index)
            arms.append(pick.arm)
            planned.append(pick.planned)
        names = tuple(arm.name for arm in self.arms)
        return Batch(
            indices=np.array(indices, np.int64),
            arms=np.array(arms, np.int64),
            planned=np.array(planned, np.int64),
            names=names,
            requested=requested,
        )


def _check_plan(plan: np.ndarray, arms: int) -> np.ndarray:
    """(slots,) indices of arms."""
    array = check_array(plan, "plan")
    last = arms - 1
    has_integers = array.dtype.kind in "iu"
    is_valid = has_integers and array.ndim == 1
    # An empty plan has no smallest arm.
    if is_valid and array.size:
        lowest = array.min()
        highest = array.max()
        is_valid = bool(lowest >= 0 and highest <= last)
    if not is_valid:
        raise InputError(f"plan is {shown(plan)}: indices of arms, 0 to {last}, are needed")
    return array


def check_needs(view: PoolView, arms: Sequence[Arm]) -> None:
    """Every arm must find what it reads."""
    # Arms of one family read the same: one of each is looked at.
    arm_of_family = {id(arm.strategy): arm for arm in arms}
    for arm in arm_of_family.values():
        for need in arm.strategy.needs:
            if not view.has(need):
                way_out = arm.strategy.ways_out.get(need, "")
                raise InputError(
                    f"arm {arm.name!r} needs {need.value}: hand it in, {way_out}or leave "
                    f"{arm.family!r} out"
                )
