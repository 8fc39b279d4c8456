"""One round of a session: the arms' picks with the reserve's mixed in, or a random start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tailor.errors import Exhausted
from tailor.journal import RESERVE, START
from tailor.loop import LoopRound
from tailor.reserve import Estimate

if TYPE_CHECKING:
    from tailor.session import Session


@dataclass
class Walk:
    """The picks of a round, in an order that depends on the seed, the labels at its opening and, where an arm uses
    labels as they come, on those; so that a walk can be gone through again."""

    number: int
    reserve_slots: np.ndarray  # (size,) bool: which slots are the reserve's
    reserve: list[int]  # positions for those slots, in order
    arms: LoopRound | None  # None: a random start
    start: list[int]  # positions of a random start
    probs: np.ndarray | None  # (N, K) what the model said, None at a random start
    estimate: Estimate | None
    slot: int = 0

    @property
    def size(self) -> int:
        return len(self.reserve_slots)

    @classmethod
    def open(cls, session: Session, number: int, size: int) -> Walk:
        journal, settings = session.journal, session.settings
        rng = np.random.default_rng((settings.seed, number, 1))
        free = np.flatnonzero(journal.books.free)
        candidates = np.flatnonzero(journal.reserved & journal.kept.free)
        for_reserve = min(int(rng.binomial(size, settings.holdout)) if settings.holdout else 0, len(candidates))
        for_arms = min(size - for_reserve, len(free))
        for_reserve = min(size - for_arms, len(candidates)) if for_arms < size - for_reserve else for_reserve
        slots = rng.permutation(np.arange(for_reserve + for_arms) < for_reserve)
        reserve = rng.choice(candidates, for_reserve, replace=False).tolist()
        if for_arms == 0:
            return cls(number, slots, reserve, None, [], None, None)
        if len(journal.books.labelled) == 0:
            return cls(number, slots, reserve, None, rng.choice(free, for_arms, replace=False).tolist(), None, None)
        estimate = session.train(number)
        probs, features = session.predict(np.arange(len(journal.ids)))
        model = session.model
        arms = journal.loop.open_round(
            probs,
            features,
            for_arms,
            finetune=session.finetune if _can(model, "finetune") else None,
            dropout=session.dropout if _can(model, "dropout") else None,
            model=model,
        )
        return cls(number, slots, reserve, arms, [], probs, estimate)

    def take(self, n: int | None = None) -> list[tuple[int, int, int]]:
        """(position, slot, arm) of up to n slots."""
        picks: list[tuple[int, int, int]] = []
        while self.slot < self.size and (n is None or len(picks) < n):
            if self.reserve_slots[self.slot]:
                picks.append((self.reserve.pop(0), self.slot, RESERVE))
            elif self.arms is None:
                picks.append((self.start.pop(0), self.slot, START))
            else:
                try:
                    pick = self.arms.pick()
                except Exhausted:  # examples were told or skipped from outside meanwhile
                    self.reserve_slots = self.reserve_slots[: self.slot]
                    break
                picks.append((pick.index, self.slot, pick.arm))
            self.slot += 1
        return picks


def _can(model: object, method: str) -> bool:
    from tailor.models.base import Model

    return getattr(type(model), method) is not getattr(Model, method)
