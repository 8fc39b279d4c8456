"""Ask and tell on plain arrays: the selection engine for people who bring their own model and
storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import ArrayLike

from tailor.bandits import Contest, Fit, Selector, SelectorLike, make_selector
from tailor.bandits.rewards import RewardLike, make_reward
from tailor.common.checks import (
    check_device_name,
    check_flag,
    check_function,
    check_instance,
    check_seed,
    check_whole,
)
from tailor.selection.array_view import BoundaryDistances, Dropout, FineTune
from tailor.selection.class_edits import GONE, ClassEdit
from tailor.selection.label_table import LabelTable
from tailor.selection.learner_round import LearnerRound
from tailor.selection.pool_view import PredictionSource
from tailor.selection.round import Batch
from tailor.selection.round_planner import (
    OwnReward,
    RoundPlanner,
    RoundRequest,
    reward_weights,
)
from tailor.selection.selector_history import SelectorHistory
from tailor.selection.slot_filling import NOBODY
from tailor.selection.view_checks import check_distinct_positions
from tailor.strategies import NARROW, StrategyLike, make_arms
from tailor.task import Task


class Learner:
    """A pool of N examples, the labels told so far, and a selector that learns which arm finds
    what.

    >>> import numpy as np
    >>> from tailor import Learner, MultiClass
    >>> learner = Learner(MultiClass(["cat", "dog"]), 100, strategies=["galaxy", "margin"], batch=4)
    >>> learner.tell([0, 1], ["cat", "dog"])
    >>> p = np.random.default_rng(0).random(100)
    >>> batch = learner.ask(np.stack([p, 1 - p], 1))
    >>> len(batch), batch.short
    (4, False)
    >>> learner.tell(batch.indices, ["cat", "dog", "dog", "dog"])
    >>> learner.counts
    array([2, 4])

    pool        N, or the label table of a pool that is known already or still grows
    strategies  names of arm families, "name(option=value)", or Strategy objects; one alone, or a
                list of them; by default the paper's
    selector    a name, "name(option=value)", (name, options), or a Selector object, of which the
                learner works on a copy of its own; tailor.bandits.registry lists the names
    reward      "diversity", "search", ("domain", {"weights": ...}), or a Reward object
    cover       whether arms propose more than the round needs, and what covers the pool best is
                taken (tailor.selection.covered_proposals); needs features
    rounds      how many rounds are planned: ALBL, COMB and DEAL set their rates by it
    batch       examples a round
    own_reward  a function that drives ALBL, COMB and DEAL instead of their own rewards; as models
                it is given what was passed to ask(model=...), or the probabilities where nothing
                was
    seed        same seed, same picks
    device      the torch device on which arms compute
    """

    def __init__(
        self,
        task: Task,
        pool: int | LabelTable,
        *,
        strategies: str | Sequence[StrategyLike] | None = None,
        selector: SelectorLike = "tailor",
        reward: RewardLike = "diversity",
        cover: bool = False,
        rounds: int = 20,
        batch: int = 100,
        own_reward: OwnReward | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        check_instance(
            task,
            Task,
            "task",
            "a MultiClass or a MultiLabel",
        )
        if not isinstance(pool, LabelTable):
            size = check_whole(pool, "pool")
            pool = LabelTable(task, size)
        self.task = task
        self.label_table = pool
        self.cover = check_flag(cover, "cover")
        self.batch_size = check_whole(batch, "batch")
        self.device = check_device_name(device)
        self._rounds = check_whole(rounds, "rounds")
        seed = check_seed(seed)
        own_reward = check_function(own_reward, "own_reward", optional=True)
        self._planner = RoundPlanner(own_reward, seed)
        if strategies is None:
            strategies = NARROW[task.kind]
        self._strategies = strategies
        self.arms = make_arms(strategies, task)
        contest = self._make_contest()
        self.history = SelectorHistory(make_selector(selector), contest, self.label_table)
        self.reward = make_reward(reward)
        #: the round that is open; None where none is
        self.current_round: LearnerRound | None = None

    @property
    def contest(self) -> Contest:
        """The arms, as the selector sees them."""
        return self.history.contest

    @property
    def selector(self) -> Selector:
        """The selector, which has learned from every round so far as the answers stand today."""
        return self.history.selector

    @property
    def round(self) -> int:
        """How many rounds were opened."""
        return self.history.opened

    @property
    def labelled(self) -> np.ndarray:
        """(n,) int64: the positions that have a label, ascending."""
        return self.label_table.labelled

    @property
    def labels(self) -> np.ndarray:
        """The labels of `labelled`, in the form that a classifier's fit() takes.

        Multi-class: (n,) int64 class indices. Multi-label: (n, K) int64 of 0 and 1.
        """
        return self.task.targets(self.label_table.labels)

    @property
    def counts(self) -> np.ndarray:
        """(K,) int64: labels so far of each class."""
        return self.label_table.counts.astype(np.int64)

    def copy(self) -> Learner:
        """A learner of its own, as this one stands now; no round is open in it."""
        twin = copy(self)
        label_table = self.label_table.copy()
        twin.label_table = label_table
        twin.history = self.history.copy(label_table)
        # The planner remembers the model of the latest round, and each has its own rounds now.
        twin._planner = copy(self._planner)
        twin.current_round = None
        return twin

    # ------------------------------------------------------------------ ask

    def ask(
        self,
        probs: ArrayLike | PredictionSource,
        features: ArrayLike | None = None,
        size: int | None = None,
        *,
        finetune: FineTune | None = None,
        dropout: Dropout | None = None,
        head: object = None,
        boundary_distances: BoundaryDistances | None = None,
        model: object = None,
        allow_short: bool = False,
    ) -> Batch:
        """The next batch, by what today's model says.

        probs        (N, K) probabilities, or predictions in shards (tailor.compute)
        features     (N, d), for arms that need them
        size         examples to ask for; by default the batch
        finetune     for weak-supervision: (targets (N, K), epochs) -> probabilities (N, K)
        dropout      for bald: () -> probabilities (N, K) of each pass
        head         (weights (K, d), bias (K,)) of the model's last layer on these features: base
                     and deepfool measure distances by it, bait, lookahead and committee take their
                     ridge term from it where a LinearHead says one
        boundary_distances  for deepfool with steps: (positions (n,), steps) -> distances (n,)
        model        what own_reward is given
        allow_short  whether a batch larger than what is left becomes all that is left; else that is
                     an error

        The answers to the rounds before reach the selector now, since today's model is what they
        made. Where it fails nothing has changed, and the next call gives what this one would have
        given.
        """
        request = RoundRequest(
            probs,
            features,
            size,
            finetune,
            dropout,
            model,
            allow_short,
            head,
            boundary_distances,
        )
        with self.history.unlearned_on_error():
            draft = self._planner.draft(self, request)
            batch, predicted = draft.draw()
        self._begin_round(draft, request)
        draft.enter(batch, predicted)
        return batch

    def open_round(
        self,
        probs: ArrayLike | PredictionSource,
        features: ArrayLike | None = None,
        size: int | None = None,
        *,
        finetune: FineTune | None = None,
        dropout: Dropout | None = None,
        head: object = None,
        boundary_distances: BoundaryDistances | None = None,
        model: object = None,
        allow_short: bool = False,
    ) -> LearnerRound:
        """As ask(), but picks are made one at a time, and labels told meanwhile reach the arms that
        use them.
        """
        request = RoundRequest(
            probs,
            features,
            size,
            finetune,
            dropout,
            model,
            allow_short,
            head,
            boundary_distances,
        )
        with self.history.unlearned_on_error():
            draft = self._planner.draft(self, request)
        self._begin_round(draft, request)
        return draft

    def _begin_round(self, draft: LearnerRound, request: RoundRequest) -> None:
        """The drafted round becomes the learner's."""
        self.history.open_round(draft.learned_round, draft.weights)
        self.current_round = draft
        self._planner.begin(request)

    def replay_round(
        self,
        weights: np.ndarray,
        fit: Fit | None,
        learned: np.ndarray | None = None,
    ) -> None:
        """Go through the opening of a round that was opened elsewhere: before, or in a copy.

        weights  (K,) v of the round
        fit      what the selector was told of the model, since no model is at hand
        learned  (n,) the positions it learned from; by default all answers that it has not learned
                 from yet
        """
        positions = self.history.to_learn(learned)
        learned_round = self.history.gather(positions, fit)
        if learned_round is not None:
            self.history.replay(learned_round)
        self.history.open_round(learned_round, weights)
        self.current_round = None

    # ------------------------------------------------------------------ tell

    def tell(self, positions: ArrayLike, labels: ArrayLike) -> None:
        """Labels for positions (n,): answers, corrections, or what was known from outside.

        labels  (n,) class names or class indices, or (n, K) rows of 0 and 1; for a multi-label task
                n lists of class names, or rows. As lists, arrays, tensors, or pandas objects.

        What was not asked is credited to no arm. A second answer replaces the first, for the
        selector too.
        """
        rows = self.task.label_rows(labels)
        if self.label_table.tell(positions, rows):
            self.history.answers_changed()
        if self.current_round is not None:
            seen = self._seen_by_arms(positions)
            self.current_round.hear(seen)

    def skip(self, positions: ArrayLike) -> None:
        """These can't be answered: don't offer them again, and let no arm learn from them."""
        self.label_table.skip(positions)
        if self.current_round is not None:
            seen = self._seen_by_arms(positions)
            self.current_round.withdraw(seen)

    def offer_again(self, positions: ArrayLike) -> None:
        """Skipped examples may be asked again."""
        self.label_table.offer_again(positions)
        offered = check_distinct_positions(positions, self.label_table.pool, "positions")
        self.history.drop(offered)

    def withdraw(self, positions: ArrayLike) -> None:
        """These answers are no more: what was asked waits again, and neither the selector nor the
        arms of an open round have heard of them. What was not asked is free again from the next
        round on.
        """
        withdrawn = check_distinct_positions(positions, self.label_table.pool, "positions")
        # Before they go: only what had a label was heard of.
        had_label = self.label_table.has_label(withdrawn)
        labelled = withdrawn[had_label]
        if self.label_table.withdraw(withdrawn):
            self.history.answers_changed()
        if self.current_round is not None:
            seen = self._seen_by_arms(labelled)
            self.current_round.forget(seen)

    def _seen_by_arms(self, positions: ArrayLike) -> np.ndarray:
        """Those of these positions that do not belong to the hold-out."""
        checked = check_distinct_positions(positions, self.label_table.pool, "positions")
        return self.label_table.picks.without_holdout(checked)

    # ------------------------------------------------------------------ classes

    def reclass(self, change: ClassEdit) -> np.ndarray:
        """The classes are others from now on, and everything learned so far is told in them.

        Returns (M,) what each arm has become. The round that was open is over, unless only names
        have changed.
        """
        check_instance(
            change,
            ClassEdit,
            "change",
            "a ClassEdit (tailor.selection.class_edits)",
        )
        before = self.contest
        self.task = change.after
        self.arms = make_arms(self._strategies, self.task)
        contest = self._make_contest()
        arms = _arms_after(change, before, contest)
        self.label_table.reclass(change, arms)
        self.history.reclass(change, contest, arms)
        if not change.only_names:
            self.current_round = None
        return arms

    def check_can_plan(self) -> None:
        """Raise InputError where the selector or the reward can't go on with these classes."""
        weights = reward_weights(self, self.label_table.answered)
        rng = np.random.default_rng(0)
        self.selector.plan(1, weights, rng)

    def _make_contest(self) -> Contest:
        """The arms of now, as a selector sees them."""
        names = []
        families = []
        classes = []
        for arm in self.arms:
            names.append(arm.name)
            families.append(arm.family)
            klass = arm.klass
            # An arm that works for no class has the number -1.
            if klass is None:
                klass = -1
            classes.append(klass)
        return Contest(
            self.task,
            tuple(names),
            tuple(families),
            tuple(classes),
            self._rounds,
            self.batch_size,
        )


def _arms_after(change: ClassEdit, before: Contest, after: Contest) -> np.ndarray:
    """(M,) the arm of `after` that each arm of `before` has become; NOBODY where its class is
    gone.
    """
    # Family and class tell arms apart: names of classes may have changed.
    arm_of = {}
    keys_after = zip(after.families, after.classes)
    for arm, key in enumerate(keys_after):
        arm_of[key] = arm
    arms = []
    for family, klass in zip(before.families, before.classes):
        new_class = klass
        if klass >= 0:
            new_class = change.place[klass]
        is_gone = klass >= 0 and new_class == GONE
        if is_gone:
            arm = NOBODY
        else:
            arm = arm_of[family, new_class]
        arms.append(arm)
    return np.array(arms, np.int64)
