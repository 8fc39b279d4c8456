"""One round of a session: the arms' picks with the reserve's mixed in, or a random start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from tailor.bridge import Bridge
from tailor.errors import Exhausted
from tailor.journal import RESERVE, START, Journal, RoundRecord, pack
from tailor.loop import LoopRound
from tailor.reserve import Estimate

#: position, slot, arm
Taken = tuple[int, int, int]


class AskedEvent(NamedTuple):
    """The positions that are asked, and body and data of the "asked" event."""

    positions: list[int]
    body: dict[str, Any]
    data: bytes


def _silent(stage: str) -> None:
    """Nobody wants to know."""


@dataclass
class Walk:
    """The picks of a round. What chance decides is drawn when it is opened and recorded with it, so that a round that
    was open when its process ended can be gone through again.

    It is opened in a copy of the run's journal, which may take long, and then joins the journal, which has heard of
    more answers meanwhile.
    """

    number: int
    journal: Journal
    size: int  # picks that make the batch
    reserve_slots: np.ndarray  # (slots,) bool: which slots are the reserve's. Beyond `size` they are to spare
    reserve: list[int]  # positions for those slots, in order
    start: list[int]  # positions of a random start, for the other slots
    arms: LoopRound | None = None  # None: a random start
    probs: np.ndarray | None = None  # (N, K) what the model said, None at a random start
    estimate: Estimate | None = None
    slot: int = 0

    @property
    def slots(self) -> int:
        return len(self.reserve_slots)

    @property
    def batch_taken(self) -> bool:
        """Whether only picks to spare are left, if any."""
        return self.slot >= min(self.size, self.slots)

    @classmethod
    def open(
        cls, journal: Journal, bridge: Bridge, size: int, spare: int = 0, *, stage: Callable[[str], None] = _silent
    ) -> Walk:
        """A new round of `size` picks and some to spare: draw what is random, train and predict. `journal` is a copy
        and is used up. `stage` hears what is being done."""
        settings, number, slots = journal.settings, len(journal.rounds), size + spare
        rng = np.random.default_rng((settings.seed, number, 1))
        free = np.flatnonzero(journal.books.free)
        candidates = np.flatnonzero(journal.reserved & journal.kept.free & journal.books.untouched)
        if journal.current is not None:  # what the round before may still ask for
            candidates = np.setdiff1d(candidates, journal.current.reserve)
        wanted = int(rng.binomial(slots, settings.holdout)) if settings.holdout else 0
        for_reserve = min(max(wanted, slots - len(free)), len(candidates), slots)
        for_arms = min(slots - for_reserve, len(free))
        chosen = rng.permutation(np.arange(for_reserve + for_arms) < for_reserve)
        reserve = rng.choice(candidates, for_reserve, replace=False).tolist()
        walk = cls(number, journal, min(size, len(chosen)), chosen, reserve, [])
        if not bridge.can_train(journal):
            walk.start = rng.choice(free, for_arms, replace=False).tolist()
        elif for_arms:
            walk._consult(bridge, for_arms, stage)
        return walk

    @classmethod
    def again(
        cls, journal: Journal, bridge: Bridge, record: RoundRecord, *, stage: Callable[[str], None] = _silent
    ) -> Walk:
        """A round as it was opened before, with the journal as it stood then."""
        listed = record.reserve.tolist(), record.start.tolist()
        walk = cls(record.number, journal, record.size, record.reserve_slots, *listed)
        if not record.seed_round:
            walk._consult(bridge, int((~record.reserve_slots).sum()), stage)
        return walk

    def _consult(self, bridge: Bridge, picks: int, stage: Callable[[str], None]) -> None:
        """Train, predict, and let the selector plan."""
        journal, settings = self.journal, self.journal.settings
        stage("training")
        self.estimate = bridge.train(journal, self.number)
        self.probs, features = bridge.predict_all(journal.task)
        stage("choosing")
        passes, seed = settings.dropout_passes, settings.seed
        self.arms = journal.loop.open_round(
            self.probs,
            features,
            picks,
            finetune=bridge.finetune(journal, seed) if bridge.can("finetune") else None,
            dropout=bridge.dropout(journal, passes, seed) if bridge.can("dropout") else None,
            model=bridge.model,
        )

    def event(self) -> tuple[dict[str, Any], bytes]:
        """Body and data of the "round" event."""
        journal, arms = self.journal, self.arms
        body: dict[str, Any] = {
            "number": self.number,
            "size": self.size,
            "seed_round": arms is None,
            "estimate": asdict(self.estimate) if self.estimate else None,
            "as_of": journal.event,
            "labels": journal.answered(),
        }
        arrays: dict[str, np.ndarray] = {
            "reserve_slots": self.reserve_slots,
            "reserve": np.array(self.reserve, np.int64),
            "start": np.array(self.start, np.int64),
        }
        if arms is not None:
            pulled = np.unique(arms.plan)
            arrays |= {"weights": arms.weights, "chances": arms.chances, "pulled": pulled, "learned": arms.learned}
            beliefs = journal.loop.selector.beliefs()
            if beliefs is not None:
                arrays["beliefs"] = beliefs[pulled].astype(np.float16)
            if arms.fit is not None:
                arrays |= {"correct": arms.fit.correct, "fit_chances": arms.fit.chances, "rates": arms.fit.rates}
                body |= {"pool": arms.fit.pool, "reward": arms.fit.reward}
        return body, pack(**arrays)

    def join(self, journal: Journal) -> None:
        """Go on in the journal of whose copy this round was opened: its round is this one now."""
        self.journal = journal
        if self.arms is not None:
            self.arms.join(journal.loop)

    def first_picks(self, journal: Journal, n: int | None) -> list[Taken]:
        """What take(n) will give once this round has joined the journal. It has not: the journal's round is still the
        one before."""
        if n == 0:
            return []
        drafted, self.journal = self.journal, journal
        before = self.arms.join(journal.loop) if self.arms is not None else None
        try:
            return self.take(n)
        finally:
            self.journal = drafted
            if self.arms is not None:
                self.arms.leave(before)

    def asked_event(self, picks: list[Taken]) -> AskedEvent | None:
        """Picks as they stand in the store; None where there are none."""
        if not picks:
            return None
        where = np.array([position for position, _, _ in picks], np.int64)
        arrays: dict[str, np.ndarray] = {
            "positions": where,
            "slots": np.array([slot for _, slot, _ in picks], np.int32),
            "arms": np.array([arm for _, _, arm in picks], np.int32),
        }
        if self.probs is not None:
            arrays["predicted"] = self.probs[where].astype(np.float16)
        return AskedEvent(where.tolist(), {"round": self.number}, pack(**arrays))

    def take(self, n: int | None = None, spare: bool = False) -> list[Taken]:
        """Up to n picks. Examples that were told or skipped from outside meanwhile are passed over."""
        picks: list[Taken] = []
        end = self.slots if spare else min(self.size, self.slots)
        while self.slot < end and (n is None or len(picks) < n):
            found = self._next()
            if found is not None:
                picks.append(found)
            self.slot += 1
        return picks

    def _next(self) -> Taken | None:
        books, kept = self.journal.books, self.journal.kept
        listed = self.reserve if self.reserve_slots[self.slot] else self.start if self.arms is None else None
        if listed is not None:
            arm, where = (RESERVE, kept) if listed is self.reserve else (START, books)
            while listed and not (
                books.is_untouched(listed[0]) and kept.is_untouched(listed[0]) and not where.is_absent(listed[0])
            ):
                listed.pop(0)
            return (listed.pop(0), self.slot, arm) if listed else None
        assert self.arms is not None
        try:
            pick = self.arms.pick()
        except Exhausted:
            return None
        return pick.index, self.slot, pick.arm

    def retake(self, positions: list[int], slots: list[int]) -> None:
        """Go through picks again that were made before, whatever would be picked today."""
        for position, slot in zip(positions, slots):
            self.slot = slot
            if self.reserve_slots[slot]:
                self.reserve.remove(position)
            elif self.arms is None:
                self.start.remove(position)
            else:
                self.arms.repick(position)
            self.slot += 1
