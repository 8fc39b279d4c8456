"""One round of a session: the arms' picks with the hold-out's mixed in, or a random start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from tailor.errors import Exhausted
from tailor.run.holdout import HoldoutEstimate
from tailor.run.model_runner import ModelRunner
from tailor.run.state import HOLDOUT, START, RoundRecord, RunState, pack
from tailor.selection.learner import LearnerRound

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
class SessionRound:
    """The picks of a round. What chance decides is drawn when it is opened and recorded with it, so
    that a round that was open when its process ended can be gone through again.

    It is opened in a copy of the run's journal, which may take long, and then joins the journal,
    which has heard of more answers meanwhile.
    """

    number: int
    run_state: RunState
    size: int  # picks that make the batch
    holdout_slots: (
        np.ndarray
    )  # (slots,) bool: which slots are the hold-out's. Beyond `size` they are to spare
    holdout: list[int]  # positions for those slots, in order
    start: list[int]  # positions of a random start, for the other slots
    arms: LearnerRound | None = None  # None: a random start
    probs: np.ndarray | None = None  # (N, K) what the model said, None at a random start
    estimate: HoldoutEstimate | None = None
    slot: int = 0

    @property
    def slots(self) -> int:
        return len(self.holdout_slots)

    @property
    def batch_taken(self) -> bool:
        """Whether only picks to spare are left, if any."""
        return self.slot >= min(self.size, self.slots)

    @classmethod
    def open(
        cls,
        run_state: RunState,
        model_runner: ModelRunner,
        size: int,
        spare: int = 0,
        *,
        stage: Callable[[str], None] = _silent,
    ) -> SessionRound:
        """A new round of `size` picks and some to spare: draw what is random, train and predict.
        `journal` is a copy and is used up. `stage` hears what is being done.
        """
        settings = run_state.settings
        number = len(run_state.rounds)
        slots = size + spare
        rng = np.random.default_rng((settings.seed, number, 1))
        free = np.flatnonzero(run_state.label_table.free)
        candidates = np.flatnonzero(
            run_state.in_holdout & run_state.holdout_table.free & run_state.label_table.untouched
        )
        if run_state.current is not None:  # what the round before may still ask for
            candidates = np.setdiff1d(candidates, run_state.current.holdout)
        wanted = int(rng.binomial(slots, settings.holdout)) if settings.holdout else 0
        for_holdout = min(max(wanted, slots - len(free)), len(candidates), slots)
        for_arms = min(slots - for_holdout, len(free))
        chosen = rng.permutation(np.arange(for_holdout + for_arms) < for_holdout)
        holdout = rng.choice(candidates, for_holdout, replace=False).tolist()
        session_round = cls(number, run_state, min(size, len(chosen)), chosen, holdout, [])
        if not model_runner.can_train(run_state):
            session_round.start = rng.choice(free, for_arms, replace=False).tolist()
        elif for_arms:
            session_round._consult(model_runner, for_arms, stage)
        return session_round

    @classmethod
    def again(
        cls,
        run_state: RunState,
        model_runner: ModelRunner,
        record: RoundRecord,
        *,
        stage: Callable[[str], None] = _silent,
    ) -> SessionRound:
        """A round as it was opened before, with the journal as it stood then."""
        listed = record.holdout.tolist(), record.start.tolist()
        session_round = cls(record.number, run_state, record.size, record.holdout_slots, *listed)
        if not record.seed_round:
            session_round._consult(model_runner, int((~record.holdout_slots).sum()), stage)
        return session_round

    def _consult(self, model_runner: ModelRunner, picks: int, stage: Callable[[str], None]) -> None:
        """Train, predict, and let the selector plan."""
        run_state = self.run_state
        settings = self.run_state.settings
        stage("training")
        self.estimate = model_runner.train(run_state, self.number)
        self.probs, features = model_runner.predict_all(run_state.task)
        stage("choosing")
        passes = settings.dropout_passes
        seed = settings.seed
        self.arms = run_state.learner.open_round(
            self.probs,
            features,
            picks,
            finetune=model_runner.finetune(run_state, seed)
            if model_runner.model.can_finetune
            else None,
            dropout=model_runner.dropout(run_state, passes, seed)
            if model_runner.model.can_dropout
            else None,
            model=model_runner.model,
        )

    def event(self) -> tuple[dict[str, Any], bytes]:
        """Body and data of the "round" event."""
        run_state = self.run_state
        arms = self.arms
        body: dict[str, Any] = {
            "number": self.number,
            "size": self.size,
            "seed_round": arms is None,
            "estimate": asdict(self.estimate) if self.estimate else None,
            "as_of": run_state.event,
            "labels": run_state.answered(),
        }
        arrays: dict[str, np.ndarray] = {
            "reserve_slots": self.holdout_slots,
            "reserve": np.array(self.holdout, np.int64),
            "start": np.array(self.start, np.int64),
        }
        if arms is not None:
            pulled = np.unique(arms.plan)
            arrays |= {
                "weights": arms.weights,
                "chances": arms.chances,
                "pulled": pulled,
                "learned": arms.learned,
            }
            beliefs = run_state.learner.selector.beliefs()
            if beliefs is not None:
                arrays["beliefs"] = beliefs[pulled].astype(np.float16)
            if arms.fit is not None:
                arrays |= {
                    "correct": arms.fit.correct,
                    "fit_chances": arms.fit.chances,
                    "rates": arms.fit.rates,
                }
                body |= {"pool": arms.fit.pool, "reward": arms.fit.reward}
        return body, pack(**arrays)

    def join(self, run_state: RunState) -> None:
        """Go on in the journal of whose copy this round was opened: its round is this one now."""
        self.run_state = run_state
        if self.arms is not None:
            self.arms.join(run_state.learner)

    def first_picks(self, run_state: RunState, n: int | None) -> list[Taken]:
        """What take(n) will give once this round has joined the journal. It has not: the journal's
        round is still the one before.
        """
        if n == 0:
            return []
        drafted = self.run_state
        self.run_state = run_state
        before = self.arms.join(run_state.learner) if self.arms is not None else None
        try:
            return self.take(n)
        finally:
            self.run_state = drafted
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
        """Up to n picks. Examples that were told or skipped from outside meanwhile are passed
        over.
        """
        picks: list[Taken] = []
        end = self.slots if spare else min(self.size, self.slots)
        while self.slot < end and (n is None or len(picks) < n):
            found = self._next()
            if found is not None:
                picks.append(found)
            self.slot += 1
        return picks

    def _next(self) -> Taken | None:
        label_table = self.run_state.label_table
        holdout_table = self.run_state.holdout_table
        listed = (
            self.holdout
            if self.holdout_slots[self.slot]
            else self.start
            if self.arms is None
            else None
        )
        if listed is not None:
            arm, where = (
                (HOLDOUT, holdout_table) if listed is self.holdout else (START, label_table)
            )
            while listed and not (
                label_table.is_untouched(listed[0])
                and holdout_table.is_untouched(listed[0])
                and not where.is_absent(listed[0])
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
            if self.holdout_slots[slot]:
                _drop_through(self.holdout, position)
            elif self.arms is None:
                _drop_through(self.start, position)
            else:
                self.arms.repick(position)
            self.slot += 1


def _drop_through(listed: list[int], position: int) -> None:
    """Removes a position and all before it: those were passed over, since they had been answered
    from outside when their turn came. They may have been withdrawn since.
    """
    del listed[: listed.index(position) + 1]
