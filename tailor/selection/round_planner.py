"""Planning a learner's next round: what was handed in is checked, the selector learns the answers
so far, and says which arm gets which slot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.bandits.rewards import LabelSummary
from tailor.bandits.rewards.difficulty import class_difficulty
from tailor.common.checks import (
    check_array,
    check_flag,
    check_function,
    check_number,
    check_whole,
)
from tailor.errors import InputError
from tailor.selection.array_view import BoundaryDistances, Dropout, FineTune, make_view
from tailor.selection.learner_round import LearnerRound
from tailor.selection.model_fit import measure_fit
from tailor.selection.pool_view import PoolView
from tailor.selection.round import check_needs
from tailor.selection.selector_history import LearnedRound

if TYPE_CHECKING:
    from tailor.selection.learner import Learner

#: (round, picks (n,), labels (n, K), model before, model after) -> [0, 1]
OwnReward = Callable[
    [
        int,
        np.ndarray,
        np.ndarray,
        Any,
        Any,
    ],
    float,
]


@dataclass(frozen=True)
class RoundRequest:
    """What a user hands in to open a round: the arguments of Learner.ask."""

    probs: Any
    features: Any
    size: int | None
    finetune: FineTune | None
    dropout: Dropout | None
    model: Any
    allow_short: bool
    head: Any = None
    boundary_distances: BoundaryDistances | None = None

    @property
    def model_or_probs(self) -> Any:
        """What own_reward is given as the model."""
        if self.model is None:
            return self.probs
        return self.model


class RoundPlanner:
    """Drafts the rounds of a learner.

    own_reward  the user's own reward of a round, or None
    seed        same seed, same plans
    """

    def __init__(self, own_reward: OwnReward | None, seed: int) -> None:
        self._own_reward = own_reward
        self._seed = seed
        self._model_before: Any = None  # what own_reward was given as the last model

    def draft(self, learner: Learner, request: RoundRequest) -> LearnerRound:
        """A round that is planned and opened, and of which nothing but the selector knows yet.

        Raises InputError where the request does not fit the learner's pool and arms.
        """
        # All checks come first: a request that is refused has taught the selector nothing.
        left = int(learner.label_table.free.sum())
        size = _check_size(request, learner.batch_size, left)
        check_function(request.finetune, "finetune", optional=True)
        check_function(request.dropout, "dropout", optional=True)
        check_function(request.boundary_distances, "boundary_distances", optional=True)
        _check_rows(request.probs, learner.label_table.pool)
        # Ties, plan and arms draw apart: what one of them draws does not move the others.
        sequence = np.random.SeedSequence((self._seed, learner.round))
        seeds = sequence.generate_state(3, np.uint64)
        tie_seed, plan_seed, arm_seed = seeds.tolist()
        view = _view_of(learner, request, tie_seed)
        check_needs(view, learner.arms)
        learned = self._answers_to_learn(learner, view, request.model)
        answered = len(learner.label_table.labelled)
        weights = reward_weights(learner, answered, learned)
        if learned is not None:
            learner.selector.learn(learned.outcomes)
        rng = np.random.default_rng(plan_seed)
        slots = min(size, left)
        plan = learner.selector.plan(slots, weights, rng)
        return LearnerRound(
            learner,
            view,
            plan,
            arm_seed,
            weights,
            requested=size,
            learned=learned,
        )

    def begin(self, request: RoundRequest) -> None:
        """The round that was drafted is open: its model is the one before the next."""
        # A model is kept for nothing else, and may be large.
        if self._own_reward is not None:
            self._model_before = request.model_or_probs

    def _answers_to_learn(
        self,
        learner: Learner,
        view: PoolView,
        model: Any,
    ) -> LearnedRound | None:
        """What the selector learns from before it plans; None before the first round."""
        history = learner.history
        if history.weights is None:
            return None
        positions = history.to_learn()
        fit = None
        if learner.selector.needs_fit:
            reward = self._users_reward(
                learner,
                view,
                positions,
                model,
            )
            fit = measure_fit(view, learner.label_table, reward)
        return history.gather(positions, fit)

    def _users_reward(
        self,
        learner: Learner,
        view: PoolView,
        positions: np.ndarray,
        model: Any,
    ) -> float | None:
        """What own_reward gives for the latest round, whose answers are at these positions."""
        if self._own_reward is None:
            return None
        labels = learner.label_table.labels_of(positions)
        model_after = model
        if model is None:
            model_after = view.predictions
        reward = self._own_reward(
            learner.round - 1,
            positions,
            labels,
            self._model_before,
            model_after,
        )
        number = check_number(reward, "what own_reward gave", "it must lie in [0, 1]")
        if not 0 <= number <= 1:
            raise InputError(f"own_reward gave {reward}: it must lie in [0, 1]")
        return reward


def reward_weights(
    learner: Learner, labelled: int, learned: LearnedRound | None = None
) -> np.ndarray:
    """v (K,) for the learner's next round.

    labelled  how many examples have a label
    learned   what the selector learns from as the round is opened
    """
    difficulty = None
    # Difficulty takes a pass over all answers, which most rewards can do without.
    if learner.reward.needs_difficulty:
        outcomes = learner.history.outcomes_today(learned)
        difficulty = class_difficulty(outcomes, learner.task.size)
    summary = LabelSummary(
        learner.task,
        learner.round,
        learner.label_table.counts,
        labelled,
        difficulty,
    )
    return learner.reward.weights(summary)


def _view_of(learner: Learner, request: RoundRequest, seed: int) -> PoolView:
    """Today's predictions, with the labels told so far."""
    label_table = learner.label_table
    view = make_view(
        learner.task,
        request.probs,
        request.features,
        labelled=label_table.labelled,
        labels=label_table.labels,
        free=label_table.free,
        pending=label_table.pending,
        finetune=request.finetune,
        dropout=request.dropout,
        head=request.head,
        boundary_distances=request.boundary_distances,
        seed=seed,
        device=learner.device,
    )
    skipped = np.flatnonzero(label_table.answers.skipped)
    view.skipped = label_table.picks.without_holdout(skipped)
    return view


def _check_rows(probs: Any, pool: int) -> None:
    """Raise InputError where there are more or fewer predictions than examples."""
    if hasattr(probs, "shape"):
        shape = probs.shape
    else:
        shape = check_array(probs, "probabilities").shape
    # Another number of dimensions is refused by the view, which says what it needs.
    if len(shape) != 2:
        return
    rows = shape[0]
    if rows != pool:
        raise InputError(f"probabilities have {rows} rows, the pool has {pool} examples")


def _check_size(request: RoundRequest, batch_size: int, left: int) -> int:
    """How many to ask for. Raises InputError where fewer are left and that is not allowed."""
    size = batch_size
    if request.size is not None:
        size = check_whole(request.size, "size")
    allow_short = check_flag(request.allow_short, "allow_short")
    if left == 0:
        raise InputError("no example is left to ask: all are labelled, pending or skipped")
    if size > left and not allow_short:
        raise InputError(
            f"{size} examples were asked for, {left} are left: pass allow_short=True to take "
            "them all"
        )
    return size
