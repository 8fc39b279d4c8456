"""A selector with the rounds that it has learned from, so that it can be taught anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass, replace

import numpy as np

from tailor.bandits import Contest, Fit, Outcomes, Selector
from tailor.selection.class_edits import ClassEdit
from tailor.selection.label_table import LabelTable
from tailor.selection.slot_filling import NOBODY


@dataclass(frozen=True)
class LearnedRound:
    """The answers that the selector learned from when a round was opened."""

    positions: np.ndarray  # (n,)
    outcomes: Outcomes  # of n picks, with their labels of then

    def with_labels_of(self, label_table: LabelTable) -> Outcomes:
        """The outcomes with the labels of today; withdrawn ones are left out."""
        has_label = label_table.has_label(self.positions)
        kept = self.only(has_label)
        labels = label_table.labels_of(kept.positions)
        return replace(kept.outcomes, labels=labels)

    def only(self, mask: np.ndarray) -> LearnedRound:
        """Some of the picks. mask (n,) bool."""
        outcomes = self.outcomes
        predicted = outcomes.predicted
        if predicted is not None:
            predicted = predicted[mask]
        kept = replace(
            outcomes,
            arms=outcomes.arms[mask],
            labels=outcomes.labels[mask],
            predicted=predicted,
        )
        return LearnedRound(self.positions[mask], kept)

    def reclassed(self, change: ClassEdit, arms: np.ndarray) -> LearnedRound:
        """The same in other classes. arms (M,): what each arm has become."""
        arms_now = arms[self.outcomes.arms]
        is_there = arms_now != NOBODY
        if not is_there.all():
            # Arms of a class that is gone have nothing to learn.
            return self.only(is_there).reclassed(change, arms)
        outcomes = self.outcomes
        fit = outcomes.fit
        if fit is not None:
            fit = _reclassed_fit(fit, change)
        predicted = outcomes.predicted
        if predicted is not None:
            predicted = change.shares(predicted)
        reclassed = replace(
            outcomes,
            weights=change.weights(outcomes.weights),
            arms=arms_now,
            labels=change.labels(outcomes.labels),
            predicted=predicted,
            fit=fit,
        )
        return LearnedRound(self.positions, reclassed)


def _reclassed_fit(fit: Fit, change: ClassEdit) -> Fit:
    one_row = fit.rates[None]
    (rates,) = change.shares(one_row)
    # Shares of classes that became one may add up to a little more than 1.
    rates = np.minimum(1, rates)
    return replace(fit, rates=rates)


class SelectorHistory:
    """A selector, what it has learned from, and the round whose answers it will learn from next.

    Answers that change afterwards make it stale: when it is wanted the next time, it begins again
    and learns every round as the answers stand then.

    selector     it works on a copy of its own
    contest      the arms
    label_table  where the answers are
    """

    def __init__(
        self,
        selector: Selector,
        contest: Contest,
        label_table: LabelTable,
    ) -> None:
        # A copy: the same object may be handed to several learners.
        self._selector = deepcopy(selector).begin(contest)
        self._is_stale = False
        self._label_table = label_table
        self.contest = contest
        self.rounds: list[LearnedRound] = []
        #: how many rounds were opened
        self.opened = 0
        #: v (K,) of the round that is being answered; None before the first
        self.weights: np.ndarray | None = None

    @property
    def selector(self) -> Selector:
        """It has learned from every round so far, as the answers stand today."""
        if self._is_stale:
            self._selector.begin(self.contest)
            for learned in self.rounds:
                outcomes = learned.with_labels_of(self._label_table)
                self._selector.learn(outcomes)
            self._is_stale = False
        return self._selector

    def copy(self, label_table: LabelTable) -> SelectorHistory:
        """A history of its own, as this one stands, over a copy of the table."""
        twin = copy(self)
        twin._selector = deepcopy(self._selector)
        twin._label_table = label_table
        twin.rounds = list(self.rounds)
        return twin

    def answers_changed(self) -> None:
        """An answer that was learned from is another now, or gone."""
        self._is_stale = True

    @contextmanager
    def unlearned_on_error(self) -> Iterator[None]:
        """The selector must learn before it plans. Where anything fails after that, it has not."""
        before = self.selector.state()
        try:
            yield
        except BaseException:
            self.selector.restore(before)
            raise

    def to_learn(self, among: np.ndarray | None = None) -> np.ndarray:
        """(n,) positions of answered picks, late ones too, that were not learned from yet.

        among  positions that were learned from elsewhere: those that are still an arm's picks
        """
        answered = among
        if answered is None:
            answered = self._label_table.labelled
        return self._label_table.picks.unlearned(answered)

    def gather(self, positions: np.ndarray, fit: Fit | None) -> LearnedRound | None:
        """The answers at these positions; None before the first round."""
        if self.weights is None:
            return None
        picks = self._label_table.picks
        outcomes = Outcomes(
            self.opened - 1,
            self.weights,
            picks.arm[positions],
            self._label_table.labels_of(positions),
            picks.predictions.get(positions),
            fit,
        )
        return LearnedRound(positions, outcomes)

    def outcomes_today(self, latest: LearnedRound | None = None) -> list[Outcomes]:
        """Every round's outcomes with the labels of today, the oldest first; latest: one that is
        not entered yet.
        """
        rounds = list(self.rounds)
        if latest is not None:
            rounds.append(latest)
        return [learned.with_labels_of(self._label_table) for learned in rounds]

    def replay(self, learned: LearnedRound) -> None:
        """Teach a round that was learned elsewhere, unless everything will be taught anew."""
        if not self._is_stale:
            outcomes = learned.with_labels_of(self._label_table)
            self._selector.learn(outcomes)

    def open_round(self, learned: LearnedRound | None, weights: np.ndarray) -> None:
        """A round begins: what was learned at its opening is entered, once and for all."""
        if learned is not None:
            self.rounds.append(learned)
            picks = self._label_table.picks
            picks.learned[learned.positions] = True
        self.weights = weights
        self.opened += 1

    def drop(self, positions: np.ndarray) -> None:
        """These may be asked again: they are no longer part of what was learned."""
        # A round is replaced and not changed: a copy of this history may share it.
        for number, learned in enumerate(self.rounds):
            is_dropped = np.isin(learned.positions, positions)
            if is_dropped.any():
                self.rounds[number] = learned.only(~is_dropped)

    def reclass(
        self,
        change: ClassEdit,
        contest: Contest,
        arms: np.ndarray,
    ) -> None:
        """The classes are others. arms (M,): what each arm has become in the new contest."""
        self.contest = contest
        rounds = []
        for learned in self.rounds:
            rounds.append(learned.reclassed(change, arms))
        self.rounds = rounds
        if self.weights is not None:
            self.weights = change.weights(self.weights)
        # What the selector believes is by class: it learns all rounds anew.
        self._is_stale = True

    def restore(
        self,
        rounds: Sequence[LearnedRound],
        weights: np.ndarray | None,
        change: ClassEdit,
        arms: np.ndarray,
    ) -> None:
        """The first rounds were these, before classes were merged.

        change and arms lead from then to now. What was offered again since stays forgotten: it may
        have been learned anew.
        """
        for number, remembered in enumerate(rounds):
            positions_now = self.rounds[number].positions
            still_there = np.isin(remembered.positions, positions_now)
            kept = remembered.only(still_there)
            self.rounds[number] = kept.reclassed(change, arms)
        # Where a round was opened since, the weights are that round's.
        is_latest = len(rounds) == len(self.rounds)
        if weights is not None and is_latest:
            self.weights = change.weights(weights)
        self._is_stale = True
