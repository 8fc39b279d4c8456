"""What is known of every example as a pick: who asked for it, when, how likely that was, and what
the model said then.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from tailor.selection.class_edits import ClassEdit
from tailor.selection.columns import extended
from tailor.selection.slot_filling import NOBODY
from tailor.selection.sparse_rows import SparseRows

#: arms below 0: a pick of a start that covers the pool, a pick for the hold-out, a pick of a random
#: start (and NOBODY, -1)
COVERAGE = -4
HOLDOUT = -3
START = -2

#: round and slot of an example that nobody has asked for
NEVER = -1


class PickFacts(NamedTuple):
    """The round in which an example was asked, its slot there, and the arm (below 0: none)."""

    round: int
    slot: int
    arm: int


class PickColumns:
    """The columns of a label table that are about picks, by position. enter() writes them.

    A pick *stands* until its example is offered again. After that it is still known who asked, but
    no arm is credited with the answer. A pick for the hold-out remains one.
    """

    def __init__(self, classes: int) -> None:
        self.round = np.empty(0, np.int32)
        self.slot = np.empty(0, np.int32)
        self.arm = np.empty(0, np.int64)
        self.chance = np.empty(0)  # with which probability the arm was drawn for a slot
        self.stands = np.empty(0, bool)
        self.learned = np.empty(0, bool)  # whether the selector has heard the answer
        self.predictions = SparseRows(classes, np.float32)

    def grow(self, count: int) -> None:
        """Add `count` examples that nobody has asked for."""
        self.round = extended(self.round, count, NEVER)
        self.slot = extended(self.slot, count, NEVER)
        self.arm = extended(self.arm, count, NOBODY)
        self.chance = extended(self.chance, count, 1)
        self.stands = extended(self.stands, count, False)
        self.learned = extended(self.learned, count, False)
        self.predictions.grow(count)

    def copy(self) -> PickColumns:
        twin = copy(self)
        twin.round = self.round.copy()
        twin.slot = self.slot.copy()
        twin.arm = self.arm.copy()
        twin.chance = self.chance.copy()
        twin.stands = self.stands.copy()
        twin.learned = self.learned.copy()
        twin.predictions = self.predictions.copy()
        return twin

    def enter(
        self,
        positions: np.ndarray,
        number: int,
        arms: np.ndarray,
        chances: np.ndarray,
        predicted: np.ndarray | None,
        slots: np.ndarray | None = None,
    ) -> None:
        """Enter picks (n,) of round `number`: their arms, how likely each was, what the model said
        (n, K), None where there was no model, and their slots where these are known.
        """
        self.round[positions] = number
        if slots is None:
            self.slot[positions] = NEVER
        else:
            self.slot[positions] = slots
        self.arm[positions] = arms
        self.chance[positions] = chances
        self.stands[positions] = True
        # An earlier round's prediction stays where this one has none.
        if predicted is not None:
            self.predictions.set(positions, predicted)

    def revoke(self, positions: np.ndarray) -> None:
        """These are offered again: no arm is credited with them, and none has learned from them."""
        self.stands[positions] = False
        # Offered again, it may be learned again.
        self.learned[positions] = False

    def reclass(self, change: ClassEdit, arms: np.ndarray) -> None:
        """The classes are others from now on. arms (M,): what each arm has become."""
        self.predictions.convert(change.shares)
        # Below 0 are picks of no arm, which stay what they are.
        of_arms = self.arm >= 0
        arms_before = self.arm[of_arms]
        self.arm[of_arms] = arms[arms_before]

    @property
    def positions(self) -> np.ndarray:
        """(n,) all that were ever asked for, ascending."""
        was_asked = self.round != NEVER
        return np.flatnonzero(was_asked)

    @property
    def holdout(self) -> np.ndarray:
        """(N,) bool: asked to measure the model, so that nothing may learn from the label."""
        return self.arm == HOLDOUT

    def is_holdout(self, positions: np.ndarray | int) -> np.ndarray:
        """bool for each: as `holdout`."""
        arms = self.arm[positions]
        in_holdout: np.ndarray = arms == HOLDOUT
        return in_holdout

    def without_holdout(self, positions: np.ndarray) -> np.ndarray:
        """Those of the positions that were not asked for the hold-out."""
        arms = self.arm[positions]
        not_holdout = arms != HOLDOUT
        return positions[not_holdout]

    def get(self, position: int) -> PickFacts | None:
        """The latest pick of an example; None where nobody asked for it."""
        number = int(self.round[position])
        if number == NEVER:
            return None
        slot = int(self.slot[position])
        arm = int(self.arm[position])
        return PickFacts(number, slot, arm)

    def credited(self, among: np.ndarray) -> np.ndarray:
        """(m,) those of the positions `among` that are standing picks of an arm."""
        arms = self.arm[among]
        of_arms = arms >= 0
        stands = self.stands[among]
        is_credited = of_arms & stands
        return among[is_credited]

    def unlearned(self, among: np.ndarray) -> np.ndarray:
        """(m,) as credited(), without those that the selector has heard of."""
        credited = self.credited(among)
        is_learned = self.learned[credited]
        return credited[~is_learned]

    def prediction_of(self, position: int) -> np.ndarray | None:
        """(K,) what the model said when the example was asked; None where it said nothing."""
        if not self.predictions.has(position):
            return None
        positions = np.array([position])
        rows = self.predictions.get(positions)
        return rows[0]
