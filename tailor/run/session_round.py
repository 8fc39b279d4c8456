"""One round of a session: the arms' picks with the hold-out's mixed in, or a random start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tailor.errors import Exhausted
from tailor.run.first_batch import (
    FirstBatch,
    draw_first_batch,
    first_size,
    is_first_batch,
)
from tailor.run.holdout import HoldoutEstimate
from tailor.run.model_runner import ModelRunner
from tailor.run.records import RoundRecord
from tailor.run.round_events import ExamplesAsked, RoundOpened
from tailor.run.state import RunState
from tailor.selection.learner_round import LearnerRound
from tailor.selection.pick_columns import COVERAGE, HOLDOUT, START


class TakenPick(NamedTuple):
    """A pick that is about to be asked."""

    position: int
    slot: int
    arm: int  # below 0: COVERAGE, HOLDOUT, START or NOBODY


class SlotPlan(NamedTuple):
    """Who has which slot of a round, drawn when it is opened."""

    holdout_slots: np.ndarray  # (slots,) bool
    holdout: list[int]  # positions for those slots, in order
    for_arms: int  # how many slots are left for the arms, or for a start


def _ignore_stage(stage: str) -> None:
    """For callers that do not show what is being done."""


@dataclass
class SessionRound:
    """The picks of a round. What chance decides is drawn when it is opened and recorded with it, so
    that a round that was open when its process ended can be gone through again.

    It is opened in a copy of the run's state, which may take long, and then joins the state itself,
    which has heard of more answers meanwhile.
    """

    number: int
    run_state: RunState
    size: int  # picks that make the batch
    holdout_slots: np.ndarray  # (slots,) bool: the hold-out's. Beyond `size` they are to spare
    holdout: list[int]  # positions for those slots, in order; the first is taken next
    start: list[int]  # positions of a start, for the other slots; the first is taken next
    coverage: frozenset[int] = frozenset()  # those of a start that were not chosen at random
    arms: LearnerRound | None = None  # None: a start
    probs: np.ndarray | None = None  # (N, K) what the model said, None at a start
    estimate: HoldoutEstimate | None = None
    slot: int = 0  # the next one

    @property
    def slots(self) -> int:
        return len(self.holdout_slots)

    @property
    def batch_taken(self) -> bool:
        """Whether only picks to spare are left, if any."""
        return self.slot >= min(self.size, self.slots)

    # ------------------------------------------------------------------ opening

    @classmethod
    def open(
        cls,
        run_state: RunState,
        model_runner: ModelRunner,
        size: int,
        spare: int = 0,
        *,
        stage: Callable[[str], None] = _ignore_stage,
        read: bool = True,
    ) -> SessionRound:
        """A new round of `size` picks and some to spare: draw what is random, train and predict.
        `run_state` is a copy and is used up. `stage` hears what is being done. `read`: whether the
        pool was read, so that there are features.
        """
        number = len(run_state.rounds)
        is_first = is_first_batch(run_state, model_runner)
        if is_first:
            size = first_size(run_state, size, read)
        # The last number sets it apart from the model's seed, which is of (seed, number).
        rng = np.random.default_rng((run_state.settings.seed, number, 1))
        free = np.flatnonzero(run_state.label_table.free)
        plan = _plan_slots(
            run_state,
            size + spare,
            len(free),
            rng,
        )
        session_round = cls(
            number=number,
            run_state=run_state,
            size=min(size, len(plan.holdout_slots)),
            holdout_slots=plan.holdout_slots,
            holdout=plan.holdout,
            start=[],
        )
        if is_first:
            rows = None
            if read and run_state.settings.start != "random":
                rows = model_runner.first_features()
            drawn = draw_first_batch(
                run_state,
                free,
                plan.for_arms,
                rng,
                rows,
            )
            session_round._begin_with(drawn)
        elif plan.for_arms:
            session_round._consult(model_runner, plan.for_arms, stage)
        return session_round

    @classmethod
    def again(
        cls,
        run_state: RunState,
        model_runner: ModelRunner,
        record: RoundRecord,
        *,
        stage: Callable[[str], None] = _ignore_stage,
    ) -> SessionRound:
        """A round as it was opened before, with the state as it stood then."""
        session_round = cls(
            number=record.number,
            run_state=run_state,
            size=record.size,
            holdout_slots=record.holdout_slots,
            holdout=record.holdout.tolist(),
            start=record.start.tolist(),
            coverage=frozenset(record.coverage.tolist()),
        )
        if not record.seed_round:
            is_for_arms = ~record.holdout_slots
            for_arms = int(is_for_arms.sum())
            session_round._consult(model_runner, for_arms, stage)
        return session_round

    def _consult(
        self,
        model_runner: ModelRunner,
        picks: int,
        stage: Callable[[str], None],
    ) -> None:
        """Train, predict, and let the selector plan."""
        run_state = self.run_state
        settings = run_state.settings
        stage("training")
        self.estimate = model_runner.train(run_state, self.number)
        self.probs, features = model_runner.predict_all(run_state.task)
        stage("choosing")
        model = model_runner.model
        # Functions: only arms that want them pay for them.
        finetune = None
        if model.can_finetune:
            finetune = model_runner.finetune(run_state, settings.seed)
        dropout = None
        if model.can_dropout:
            dropout = model_runner.dropout(run_state, settings.dropout_passes, settings.seed)
        self.arms = run_state.learner.open_round(
            self.probs,
            features,
            picks,
            finetune=finetune,
            dropout=dropout,
            head=model_runner.linear_head(),
            boundary_distances=model_runner.boundary_distances(),
            model=model,
        )

    def _begin_with(self, first_batch: FirstBatch) -> None:
        self.start = first_batch.positions.tolist()
        self.coverage = frozenset(first_batch.coverage.tolist())

    def opened_event(self) -> RoundOpened:
        """The event that records this round, as it was drafted."""
        run_state = self.run_state
        planned: dict[str, Any] = {}
        if self.arms is not None:
            planned = self._planned(self.arms)
        return RoundOpened(
            number=self.number,
            size=self.size,
            seed_round=self.arms is None,
            estimate=self.estimate,
            as_of=run_state.event,
            labels=run_state.answered(),
            holdout_slots=self.holdout_slots,
            holdout=np.array(self.holdout, np.int64),
            start=np.array(self.start, np.int64),
            coverage=np.array(sorted(self.coverage), np.int64),
            **planned,
        )

    def _planned(self, arms: LearnerRound) -> dict[str, Any]:
        """What the selector decided, as RoundOpened takes it."""
        pulled = np.unique(arms.plan)
        beliefs = self.run_state.learner.selector.beliefs()
        if beliefs is not None:
            beliefs = beliefs[pulled].astype(np.float16)
        return {
            "weights": arms.weights,
            "chances": arms.chances,
            "pulled": pulled,
            "learned": arms.learned,
            "beliefs": beliefs,
            "fit": arms.fit,
        }

    def join(self, run_state: RunState) -> None:
        """Go on in the state of whose copy this round was opened: its round is this one now."""
        self.run_state = run_state
        if self.arms is not None:
            self.arms.join(run_state.learner)

    # ------------------------------------------------------------------ picks

    def take(self, n: int | None = None, spare: bool = False) -> list[TakenPick]:
        """Up to n picks. Examples that were told or skipped from outside meanwhile are passed
        over.
        """
        picks: list[TakenPick] = []
        end = self.slots
        if not spare:
            end = min(self.size, self.slots)
        while self.slot < end:
            if n is not None and len(picks) >= n:
                break
            pick = self._next()
            if pick is not None:
                picks.append(pick)
            # After the pick: where one fails, its slot comes again.
            self.slot += 1
        return picks

    def first_picks(self, run_state: RunState, n: int | None) -> list[TakenPick]:
        """What take(n) will give once this round has joined the state. It has not: the state's
        round is still the one before.
        """
        if n == 0:
            return []
        drafted = self.run_state
        self.run_state = run_state
        before = None
        if self.arms is not None:
            before = self.arms.join(run_state.learner)
        try:
            return self.take(n)
        finally:
            self.run_state = drafted
            if self.arms is not None:
                self.arms.leave(before)

    def asked_event(self, picks: list[TakenPick]) -> ExamplesAsked | None:
        """The event that records these picks; None where there are none."""
        if not picks:
            return None
        positions = np.array([pick.position for pick in picks], np.int64)
        slots = np.array([pick.slot for pick in picks], np.int32)
        arms = np.array([pick.arm for pick in picks], np.int32)
        predicted = None
        if self.probs is not None:
            predicted = self.probs[positions].astype(np.float16)
        return ExamplesAsked(
            round=self.number,
            positions=positions,
            slots=slots,
            arms=arms,
            predicted=predicted,
        )

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

    def _next(self) -> TakenPick | None:
        """The pick of the current slot; None where nothing is left for it."""
        if self.holdout_slots[self.slot]:
            return self._next_listed(self.holdout, HOLDOUT)
        if self.arms is None:
            return self._next_of_start()
        try:
            pick = self.arms.pick()
        except Exhausted:
            return None
        return TakenPick(pick.index, self.slot, pick.arm)

    def _next_of_start(self) -> TakenPick | None:
        pick = self._next_listed(self.start, START)
        if pick is not None and pick.position in self.coverage:
            return pick._replace(arm=COVERAGE)
        return pick

    def _next_listed(self, positions: list[int], arm: int) -> TakenPick | None:
        """The first of the positions that can still be asked. It and those before are used up."""
        table = self.run_state.label_table
        while positions:
            position = positions.pop(0)
            if not table.untouched(position):
                continue
            if table.availability.readable(position):
                return TakenPick(position, self.slot, arm)
        return None


def _plan_slots(
    run_state: RunState,
    slots: int,
    free: int,
    rng: np.random.Generator,
) -> SlotPlan:
    """Which of up to `slots` slots are the hold-out's, and its examples for them. free: how many
    examples the arms may ask for; where these are too few, the hold-out gets more.
    """
    candidates = _holdout_candidates(run_state)
    share = run_state.settings.holdout
    wanted = 0
    # Without a hold-out nothing is drawn: a draw would change those that follow.
    if share:
        wanted = int(rng.binomial(slots, share))
    too_few_for_arms = slots - free
    for_holdout = max(wanted, too_few_for_arms)
    for_holdout = min(for_holdout, len(candidates), slots)
    for_arms = min(slots - for_holdout, free)
    # Mixed with the arms' slots, so that nobody who answers can tell them apart.
    in_order = np.arange(for_holdout + for_arms)
    holdout_slots = rng.permutation(in_order < for_holdout)
    holdout = rng.choice(candidates, for_holdout, replace=False)
    return SlotPlan(holdout_slots, holdout.tolist(), for_arms)


def _holdout_candidates(run_state: RunState) -> np.ndarray:
    """Positions of the hold-out's examples that may be asked."""
    table = run_state.label_table
    availability = table.availability
    can_be_asked = table.untouched() & availability.readable()
    is_candidate = availability.for_holdout & can_be_asked
    candidates = np.flatnonzero(is_candidate)
    if run_state.current is None:
        return candidates
    # The round before may still ask for its own.
    return np.setdiff1d(candidates, run_state.current.holdout)


def _drop_through(listed: list[int], position: int) -> None:
    """Removes a position and all before it: those were passed over, since they had been answered
    from outside when their turn came. They may have been withdrawn since.
    """
    index = listed.index(position)
    del listed[: index + 1]
