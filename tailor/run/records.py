"""What is known of rounds and picks: enough to say later why an example was asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailor.run.holdout import HoldoutEstimate
from tailor.run.round_events import RoundOpened
from tailor.selection.class_edits import ClassEdit
from tailor.selection.pick_columns import COVERAGE, HOLDOUT, START
from tailor.selection.slot_filling import NOBODY

#: what takes the place of an arm's name where no arm has picked
NO_ARM_NAMES = {
    COVERAGE: "coverage start",
    HOLDOUT: "hold-out",
    START: "random start",
    NOBODY: "(nobody)",
}


@dataclass(frozen=True)
class PickRecord:
    """Why an example was asked for."""

    id: str
    round: int
    slot: int
    arm: str  # the name of an arm, one of NO_ARM_NAMES
    chance: float  # the probability with which the arm was drawn for a slot
    mean: np.ndarray | None  # (K,) what the arm's posterior expected to find, if it has one
    weights: np.ndarray | None  # (K,) v
    predicted: np.ndarray | None  # (K,) what the model said


@dataclass
class RoundRecord:
    """What was fixed when a round was opened, in the classes of today, and how much of it is asked.

    `size` falls to `asked` where the rest of a round is dropped.
    """

    number: int
    size: int  # picks that make the batch
    seed_round: bool
    weights: np.ndarray | None  # (K,) v
    chances: np.ndarray | None  # (M,)
    pulled: np.ndarray  # arms in the plan, ascending
    beliefs: np.ndarray | None  # (len(pulled), K)
    estimate: HoldoutEstimate | None
    holdout_slots: np.ndarray  # (slots,) bool: beyond `size` there may be picks to spare
    holdout: np.ndarray  # positions for those slots
    start: np.ndarray  # positions of a start without a model
    coverage: np.ndarray  # those of them that were chosen to cover the pool
    event: int  # its number in the store
    as_of: int  # the last event that the round's model and plan knew of
    labels: int | None  # how many answers there were then
    asked: int = 0

    @classmethod
    def opened(cls, event: RoundOpened, number: int) -> RoundRecord:
        """The record of a round that event `number` opened."""
        pulled = event.pulled
        if pulled is None:
            pulled = np.empty(0, np.int64)
        # Version 0.1.0 wrote no as_of: its rounds were opened with all that was known.
        as_of = event.as_of
        if as_of is None:
            as_of = number - 1
        return cls(
            number=event.number,
            size=event.size,
            seed_round=event.seed_round,
            weights=event.weights,
            chances=event.chances,
            pulled=pulled,
            beliefs=event.beliefs,
            estimate=event.estimate,
            holdout_slots=event.holdout_slots,
            holdout=event.holdout,
            start=event.start,
            coverage=event.coverage,
            event=number,
            as_of=as_of,
            labels=event.labels,
        )

    @property
    def slots(self) -> int:
        return len(self.holdout_slots)

    def chance(self, arm: int) -> float:
        """The probability with which the arm was drawn for a slot."""
        if arm < 0 or self.chances is None:
            return 1.0
        return float(self.chances[arm])

    def chances_of(self, arms: np.ndarray) -> np.ndarray:
        """(n,) float64: as chance(), for each of the arms."""
        chances = np.ones(len(arms))
        if self.chances is None:
            return chances
        is_arm = arms >= 0
        chances[is_arm] = self.chances[arms[is_arm]]
        return chances

    def belief(self, arm: int) -> np.ndarray | None:
        """(K,) what the arm's posterior expected; None for selectors that have none."""
        if arm < 0 or self.beliefs is None:
            return None
        # Beliefs are kept of the arms in the plan alone, which stand in ascending order.
        row = int(np.searchsorted(self.pulled, arm))
        belief: np.ndarray = self.beliefs[row]
        return belief.astype(np.float32)

    def drop_rest(self) -> None:
        """What was asked of it waits, the rest is not asked any more."""
        self.size = min(self.size, self.asked)

    def reclass(
        self,
        change: ClassEdit,
        arms: np.ndarray,
        size: int,
    ) -> None:
        """The classes are others from now on. arms (M,): what each arm has become, among `size`."""
        if self.weights is not None:
            self.weights = change.weights(self.weights)
        if self.chances is not None:
            # Arms that have become one are drawn as often as they were together.
            is_there = arms != NOBODY
            chances = self.chances[is_there]
            self.chances = np.bincount(arms[is_there], weights=chances, minlength=size)
        pulled_arms = arms[self.pulled]
        pulled, first = np.unique(pulled_arms, return_index=True)
        # Arms of a class that is gone are nobody's.
        is_arm = pulled != NOBODY
        self.pulled = pulled[is_arm]
        if self.beliefs is not None:
            beliefs = self.beliefs.astype(np.float32)
            self.beliefs = change.shares(beliefs)[first[is_arm]]
