"""A round of a learner: its picks are entered in the label table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tailor.bandits import Fit
from tailor.errors import InputError
from tailor.selection.pool_view import PoolView
from tailor.selection.round import Batch, Pick, Round
from tailor.selection.selector_history import LearnedRound
from tailor.selection.slot_filling import NOBODY

if TYPE_CHECKING:
    from tailor.selection.learner import Learner


class LearnerRound(Round):
    """Picks one at a time or all at once, each entered in the learner's label table as asked.

    weights    (K,) v of the round
    requested  how many picks were asked for; the plan may have fewer
    learned    what the selector learned from when the round was opened; None in a first round
    """

    def __init__(
        self,
        learner: Learner,
        view: PoolView,
        plan: np.ndarray,
        seed: int,
        weights: np.ndarray,
        *,
        requested: int,
        learned: LearnedRound | None,
    ) -> None:
        super().__init__(
            view,
            learner.arms,
            plan,
            seed,
            cover=learner.cover,
        )
        self.weights = weights
        self.requested = requested
        self.learned_round = learned
        self.chances = learner.selector.chances(plan)  # (M,)
        self._learner = learner
        self._label_table = learner.label_table
        self._number = learner.round

    @property
    def learned(self) -> np.ndarray:
        """(n,) positions whose answers the selector learned from when the round was opened."""
        if self.learned_round is None:
            return np.empty(0, np.int64)
        return self.learned_round.positions

    @property
    def fit(self) -> Fit | None:
        """What the selector was told of the model then."""
        if self.learned_round is None:
            return None
        return self.learned_round.outcomes.fit

    def join(self, learner: Learner) -> LearnerRound | None:
        """Go on in the learner of whose copy this round was opened, and which has been told of
        answers meanwhile. Returns the round that was open in it.
        """
        previous_round = learner.current_round
        label_table = learner.label_table
        view = self.view
        self._learner = learner
        self._label_table = label_table
        learner.current_round = self
        # The pool may have grown since: the round goes on with the examples that it began with.
        free_now = label_table.free[: view.size]
        is_gone = view.ledger.free & ~free_now
        gone = np.flatnonzero(is_gone)
        self.withdraw(gone)
        self._catch_up()
        return previous_round

    def _catch_up(self) -> None:
        """Hear the labels that came, changed or went since the view was made."""
        view = self.view
        label_table = self._label_table
        is_unlabelled = label_table.unlabelled[: view.size]
        is_news = ~is_unlabelled
        still_labelled = is_news[view.labelled]
        known_positions = view.labelled[still_labelled]
        labels_then = view.labels[still_labelled]
        labels_now = label_table.labels_of(known_positions)
        differs = labels_now != labels_then
        # What the view knew is news only where it is another label now.
        is_news[known_positions] = differs.any(1)
        news = np.flatnonzero(is_news)
        self.hear(news)
        withdrawn = view.labelled[~still_labelled]
        self.forget(withdrawn)

    def leave(self, previous_round: LearnerRound | None) -> None:
        """Undo join(): another round, or none, is open in the learner."""
        self._learner.current_round = previous_round

    def pick(self) -> Pick:
        self._check_open()
        return super().pick()

    def next(self) -> Pick:
        self._check_open()
        if not self._undelivered:
            pick = super().pick()
            self._undelivered.append(pick)
        pick = self._undelivered[0]
        position = np.array([pick.index])
        arm = np.array([pick.arm])
        predicted = self._predicted(position)
        self._enter(position, arm, predicted)
        # Only now: where entering it fails, the same pick comes again.
        del self._undelivered[0]
        return pick

    def batch(self) -> Batch:
        """All picks that are still to come, entered together."""
        self._check_open()
        batch, predicted = self.draw()
        self.enter(batch, predicted)
        return batch

    def draw(self) -> tuple[Batch, np.ndarray]:
        """As batch(), with the model's probabilities of each (b, K), and not entered yet."""
        # Before the rest is picked, which moves the slot. The plan may be shorter than what was
        # asked for, and the batch has to say so.
        slots_left = self.requested - self._slot
        requested = slots_left + len(self._undelivered)
        picked = self._pick_rest()
        batch = replace(picked, requested=requested)
        predicted = self._predicted(batch.indices)
        return batch, predicted

    def enter(self, batch: Batch, predicted: np.ndarray) -> None:
        """Enter what draw() gave as asked."""
        self._enter(batch.indices, batch.arms, predicted)
        self._undelivered.clear()

    def hear(self, positions: np.ndarray) -> None:
        """Labels came: they reach the open arms, unless the round is over."""
        if self.over:
            return
        self.withdraw(positions)
        labels = self._label_table.labels_of(positions)
        for index, label in zip(positions.tolist(), labels):
            self.reveal(index, label)

    def forget(self, positions: np.ndarray) -> None:
        """Labels were withdrawn: the open arms go on without them."""
        if self.over:
            return
        ledger = self.view.ledger
        for index in positions.tolist():
            ledger.withdraw(index)

    def withdraw(self, positions: np.ndarray) -> None:
        """Told or skipped without being asked: no arm may offer these any more."""
        withdrawn = set(positions.tolist())
        undelivered = []
        for pick in self._undelivered:
            if pick.index not in withdrawn:
                undelivered.append(pick)
        self._undelivered = undelivered
        ledger = self.view.ledger
        is_free = ledger.free[positions]
        for index in positions[is_free].tolist():
            ledger.take(index)

    def _check_open(self) -> None:
        if self._learner.current_round is not self:
            raise InputError(f"round {self._number} is closed: a newer one is open")

    def _predicted(self, positions: np.ndarray) -> np.ndarray:
        """(n, K) the model's probabilities of these."""
        on_device = self.view.to_device(positions)
        rows = self.view.rows(on_device)
        probs: np.ndarray = rows.cpu().numpy()
        return probs

    def _enter(
        self,
        positions: np.ndarray,
        arms: np.ndarray,
        predicted: np.ndarray,
    ) -> None:
        # No arm was drawn for a random stand-in: its chance counts as 1.
        is_nobody = arms == NOBODY
        arm_chances = self.chances[arms]
        chances = np.where(is_nobody, 1.0, arm_chances)
        picks = self._label_table.picks
        picks.enter(
            positions,
            self._number,
            arms,
            chances,
            predicted,
        )
