"""Ask and tell on plain arrays: the selection engine for people who bring their own model and
storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tailor.bandits import Contest, Fit, Outcomes, Selector, make_selector
from tailor.bandits.rewards import LabelSummary, Reward, make_reward
from tailor.bandits.rewards.difficulty import class_difficulty
from tailor.common.checks import (
    check_array,
    check_device,
    check_flag,
    check_function,
    check_instance,
    check_number,
    check_seed,
    check_whole,
)
from tailor.errors import InputError
from tailor.selection.array_view import Dropout, FineTune, make_view
from tailor.selection.class_edits import ClassEdit
from tailor.selection.label_table import LabelTable
from tailor.selection.pool_view import CHUNK, PoolView
from tailor.selection.round import NOBODY, Batch, Pick, Round, check_needs
from tailor.selection.view_checks import check_positions
from tailor.strategies import NARROW, Strategy, make_arms
from tailor.task import MultiClass, Task

#: (round, picks (n,), labels (n, K), model before, model after) -> [0, 1]
OwnReward = Callable[[int, np.ndarray, np.ndarray, Any, Any], float]


class Learner:
    """A pool of N examples, the labels told so far, and a selector that learns which arm finds
    what.

    >>> import numpy as np
    >>> from tailor import Learner, MultiClass
    >>> loop = Learner(MultiClass(["cat", "dog"]), 100, strategies=["galaxy", "margin"], batch=4)
    >>> loop.tell([0, 1], ["cat", "dog"])
    >>> p = np.random.default_rng(0).random(100)
    >>> batch = loop.ask(np.stack([p, 1 - p], 1))
    >>> len(batch), batch.short
    (4, False)
    >>> loop.tell(batch.indices, ["cat", "dog", "dog", "dog"])
    >>> loop.counts
    array([2, 4])

    pool        N, or the books of a pool that is known already or still grows
    strategies  names of arm families, "name(option=value)", or Strategy objects; one alone, or a
                list of them; by default the paper's
    selector    a name, "name(option=value)", (name, options), or a Selector object, of which the
                learner works on a copy of its own; tailor.bandits.registry lists the names
    reward      "diversity", "search", ("domain", {"weights": ...}), or a Reward object
    rounds      how many rounds are planned: ALBL, COMB and DEAL set their rates by it
    batch       examples a round
    own_reward  a function that drives ALBL, COMB and DEAL instead of their own rewards; as models
                it is given what was passed to ask(model=...), or the probabilities where nothing
                was
    """

    def __init__(
        self,
        task: Task,
        pool: int | LabelTable,
        *,
        strategies: str | Sequence[str | tuple[str, dict[str, Any]] | Strategy] | None = None,
        selector: str | tuple[str, dict[str, Any]] | Selector = "tailor",
        reward: str | tuple[str, dict[str, Any]] | Reward = "diversity",
        rounds: int = 20,
        batch: int = 100,
        own_reward: OwnReward | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        check_instance(task, Task, "task", "a MultiClass or a MultiLabel")
        if not isinstance(pool, LabelTable):
            pool = check_whole(pool, "pool")
        self.batch_size = check_whole(batch, "batch")
        self._rounds = check_whole(rounds, "rounds")
        self.device = check_device(device)
        self._seed = check_seed(seed)
        self._own_reward = check_function(own_reward, "own_reward", optional=True)
        self._strategies = strategies if strategies is not None else NARROW[task.kind]
        self._enlist(task)
        # A copy: the same object may be handed to several learners.
        self._selector = deepcopy(make_selector(selector)).begin(self.contest)
        self._selector_is_stale = False  # whether it must learn everything again
        self.reward = make_reward(reward)
        self.label_table = pool if isinstance(pool, LabelTable) else LabelTable(task, pool)
        self.round = 0
        self._learned: list[
            tuple[np.ndarray, Outcomes]
        ] = []  # the positions and outcomes of each round
        self._walk: LearnerRound | None = None
        self._weights: np.ndarray | None = None  # v of the round that is being answered
        self._model_before: Any = None

    def _enlist(self, task: Task) -> None:
        """The arms for these classes."""
        self.task = task
        self.arms = make_arms(self._strategies, task)
        self.contest = Contest(
            task,
            tuple(a.name for a in self.arms),
            tuple(a.family for a in self.arms),
            tuple(-1 if a.klass is None else a.klass for a in self.arms),
            self._rounds,
            self.batch_size,
        )

    @property
    def selector(self) -> Selector:
        """The selector, which has learned from every round so far as the answers stand today."""
        if self._selector_is_stale:
            self._selector.begin(self.contest)
            for at, heard in self._learned:
                self._selector.learn(self._as_it_stands(at, heard))
            self._selector_is_stale = False
        return self._selector

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
        """A loop of its own, as this one stands now; no round is open in it."""
        twin = copy(self)
        twin.label_table = self.label_table.copy()
        twin._selector = deepcopy(self._selector)
        twin._learned = list(self._learned)
        twin._walk = None
        return twin

    # ------------------------------------------------------------------ ask

    def ask(
        self,
        probs: Any,
        features: Any = None,
        size: int | None = None,
        *,
        finetune: FineTune | None = None,
        dropout: Dropout | None = None,
        model: Any = None,
        allow_short: bool = False,
    ) -> Batch:
        """The next batch, by what today's model says: probs (N, K), features (N, d), or predictions
        in shards (tailor.compute). Takes what open_round takes. Where it fails nothing has changed,
        and the next one gives what this one would have given.
        """
        with self._unlearned_on_error():
            draft = self._draft_round(probs, features, size, finetune, dropout, model, allow_short)
            batch, predicted = draft.round.draw()
        self._settle(draft)
        draft.round.enter(batch, predicted)
        return batch

    def open_round(
        self,
        probs: Any,
        features: Any = None,
        size: int | None = None,
        *,
        finetune: FineTune | None = None,
        dropout: Dropout | None = None,
        model: Any = None,
        allow_short: bool = False,
    ) -> LearnerRound:
        """As ask(), but picks are made one at a time, and labels told meanwhile reach the arms that
        use them.

        The answers to the rounds before reach the selector now, since today's model is what they
        made. With allow_short a batch larger than what is left becomes all that is left; without it
        that is an error.
        """
        with self._unlearned_on_error():
            draft = self._draft_round(probs, features, size, finetune, dropout, model, allow_short)
        self._settle(draft)
        return draft.round

    @contextmanager
    def _unlearned_on_error(self) -> Iterator[None]:
        """The selector must learn before it plans. Where anything fails after that, it has not."""
        before = self.selector.state()
        try:
            yield
        except BaseException:
            self.selector.restore(before)
            raise

    def _draft_round(
        self,
        probs: Any,
        features: Any,
        size: int | None,
        finetune: FineTune | None,
        dropout: Dropout | None,
        model: Any,
        allow_short: bool,
    ) -> DraftRound:
        """A round that is planned and opened, and of which nothing but the selector knows yet."""
        label_table = self.label_table
        size, left = self._check_size(size, allow_short)
        check_function(finetune, "finetune", optional=True)
        check_function(dropout, "dropout", optional=True)
        shape = (
            probs.shape if hasattr(probs, "shape") else check_array(probs, "probabilities").shape
        )
        if len(shape) == 2 and shape[0] != label_table.pool:
            raise InputError(
                f"probabilities have {shape[0]} rows, the pool has {label_table.pool} examples"
            )
        seeds = np.random.SeedSequence((self._seed, self.round)).generate_state(3, np.uint64)
        tie_seed, plan_seed, arm_seed = (int(s) for s in seeds)
        view = make_view(
            self.task,
            probs,
            features,
            labelled=label_table.labelled,
            labels=label_table.labels,
            free=label_table.free,
            pending=label_table.pending,
            finetune=finetune,
            dropout=dropout,
            seed=tie_seed,
            device=self.device,
        )
        check_needs(view, self.arms)
        heard = self._hear(view, model)
        weights = self._weigh(len(label_table.labelled), heard)
        if heard is not None:
            self.selector.learn(heard[1])
        plan = self.selector.plan(min(size, left), weights, np.random.default_rng(plan_seed))
        walk = LearnerRound(self, view, plan, arm_seed, weights, requested=size)
        if heard is not None:
            walk.learned = heard[0]
            walk.fit = heard[1].fit
        return DraftRound(walk, heard, model if model is not None else probs)

    def _settle(self, draft: DraftRound) -> None:
        """The round is open: from now on it is the loop's."""
        self._next_round(draft.heard, draft.round.weights)
        self._walk = draft.round
        if self._own_reward is not None:
            self._model_before = draft.model

    def relive_round(
        self, weights: np.ndarray, fit: Fit | None, learned: np.ndarray | None = None
    ) -> None:
        """Go through the opening of a round that was opened elsewhere: before, or in a copy of this
        loop.

        fit is what the selector was told of the model, since no model is at hand. learned: the
        positions it learned from, by default all answers that it hasn't heard of.
        """
        heard = self._heard(self._to_learn(learned), fit)
        if heard is not None and not self._selector_is_stale:
            self._selector.learn(self._as_it_stands(*heard))
        self._next_round(heard, weights)
        self._walk = None

    def _next_round(self, heard: tuple[np.ndarray, Outcomes] | None, weights: np.ndarray) -> None:
        """What a round heard as it was opened is learned, once and for all."""
        if heard is not None:
            self._learned.append(heard)
            self.label_table.picks.learned[heard[0]] = True
        self._weights = weights
        self.round = self.round + 1

    def _check_size(self, size: int | None, allow_short: bool) -> tuple[int, int]:
        size = self.batch_size if size is None else check_whole(size, "size")
        left = int(self.label_table.free.sum())
        allow_short = check_flag(allow_short, "allow_short")
        if left == 0:
            raise InputError("no example is left to ask: all are labelled, pending or skipped")
        if size > left and not allow_short:
            raise InputError(
                f"{size} examples were asked for, {left} are left: pass allow_short=True to take "
                "them all"
            )
        return size, left

    # ------------------------------------------------------------------ tell

    def tell(self, positions: Any, labels: Any) -> None:
        """Labels for positions (n,): answers, corrections, or what was known from outside.

        labels  (n,) class names or class indices, or (n, K) rows of 0 and 1; for a multi-label task
                n lists of class names, or rows. As lists, arrays, tensors, or pandas objects.

        What was not asked is credited to no arm. A second answer replaces the first, for the
        selector too.
        """
        rows = self.task.label_rows(labels)
        if self.label_table.tell(positions, rows):
            self._selector_is_stale = True
        if self._walk is not None:
            told = check_positions(positions, self.label_table.pool, "positions")
            self._walk.hear(self.label_table.picks.without_holdout(told))

    def skip(self, positions: Any) -> None:
        """These can't be answered: don't offer them again, and let no arm learn from them."""
        self.label_table.skip(positions)
        if self._walk is not None:
            skipped = check_positions(positions, self.label_table.pool, "positions")
            self._walk.withdraw(self.label_table.picks.without_holdout(skipped))

    def offer_again(self, positions: Any) -> None:
        """Skipped examples may be asked again."""
        self.label_table.offer_again(positions)
        gone = check_positions(positions, self.label_table.pool, "positions")
        kept = [(at, heard, ~np.isin(at, gone)) for at, heard in self._learned]
        self._learned = [
            (at, heard) if k.all() else (at[k], _rows(heard, k)) for at, heard, k in kept
        ]

    def withdraw(self, positions: Any) -> None:
        """These answers are no more: what was asked waits again, and neither the selector nor the
        arms of an open round have heard of them. What was not asked is free again from the next
        round on.
        """
        where = check_positions(positions, self.label_table.pool, "positions")
        labelled = where[self.label_table.has_label(where)]
        if self.label_table.withdraw(where):
            self._selector_is_stale = True
        if self._walk is not None:
            self._walk.forget(self.label_table.picks.without_holdout(labelled))

    def reclass(self, change: ClassEdit) -> np.ndarray:
        """The classes are others from now on, and everything learned so far is told in them -> (M,)
        what each arm has become. The round that was open is over, unless only names have changed.
        """
        check_instance(change, ClassEdit, "change", "a ClassEdit (tailor.selection.class_edits)")
        before = self.contest
        rounds = self._learned
        self._enlist(change.after)
        place = {key: at for at, key in enumerate(zip(self.contest.families, self.contest.classes))}
        keys = zip(before.families, (change.place[k] if k >= 0 else k for k in before.classes))
        arms = np.array([place[key] for key in keys], np.int64)
        self.label_table.reclass(change, arms)
        self._learned = [(at, _reclassed(heard, change, arms)) for at, heard in rounds]
        self._selector_is_stale = True
        if self._weights is not None:
            self._weights = change.weights(self._weights)
        if not change.only_names:
            self._walk = None
        return arms

    def learn_as_before(
        self,
        learned: Sequence[tuple[np.ndarray, Outcomes]],
        weights: np.ndarray | None,
        change: ClassEdit,
        arms: np.ndarray,
    ) -> None:
        """The first rounds were these, before classes were merged. change and arms lead from then
        to now. What was offered again since stays forgotten: it may have been learned anew.
        """
        for number, (at, heard) in enumerate(learned):
            still = np.isin(at, self._learned[number][0])
            self._learned[number] = at[still], _reclassed(_rows(heard, still), change, arms)
        if weights is not None and len(learned) == len(self._learned):
            self._weights = change.weights(weights)
        self._selector_is_stale = True

    def try_out(self) -> None:
        """Selector and reward must be able to go on with these classes: an InputError where they
        can't.
        """
        weights = self._weigh(self.label_table.answered)
        self.selector.plan(1, weights, np.random.default_rng(0))

    # ------------------------------------------------------------------ learning

    def _weigh(self, labelled: int, heard: tuple[np.ndarray, Outcomes] | None = None) -> np.ndarray:
        """v (K,) for the next round."""
        hard = None
        if self.reward.needs_difficulty:
            rounds = [*self._learned, heard] if heard is not None else self._learned
            hard = class_difficulty([self._as_it_stands(*one) for one in rounds], self.task.size)
        return self.reward.weights(
            LabelSummary(self.task, self.round, self.label_table.counts, labelled, hard)
        )

    def _hear(self, view: PoolView, model: Any) -> tuple[np.ndarray, Outcomes] | None:
        if self._weights is None:
            return None
        where = self._to_learn()
        fit = self._fit(view, where, model) if self.selector.needs_fit else None
        return self._heard(where, fit)

    def _to_learn(self, among: np.ndarray | None = None) -> np.ndarray:
        """(n,) positions of answered picks, late ones too, that the selector hasn't heard of; or of
        those among these positions that are still an arm's picks.
        """
        answered = self.label_table.labelled if among is None else among
        return self.label_table.picks.unlearned(answered)

    def _heard(self, where: np.ndarray, fit: Fit | None) -> tuple[np.ndarray, Outcomes] | None:
        if self._weights is None:
            return None
        arms = self.label_table.picks.arm[where]
        labels = self.label_table.labels_of(where)
        predicted = self.label_table.picks.predictions.get(where)
        return where, Outcomes(self.round - 1, self._weights, arms, labels, predicted, fit)

    def _fit(self, view: PoolView, where: np.ndarray, model: Any) -> Fit:
        label_table = self.label_table
        picked = self.label_table.picks.credited(self.label_table.labelled)
        unlabelled = self.label_table.unlabelled
        parts = [picked[start : start + CHUNK] for start in range(0, len(picked), CHUNK)]
        correct = np.concatenate([np.empty(0), *(self._correct(view, part) for part in parts)])
        rates = view.count_predicted(unlabelled) / max(1, int(unlabelled.sum()))
        reward = None
        if self._own_reward is not None:
            after = model if model is not None else view.predictions
            reward = self._own_reward(
                self.round - 1, where, label_table.labels_of(where), self._model_before, after
            )
            if not 0 <= check_number(reward, "what own_reward gave", "it must lie in [0, 1]") <= 1:
                raise InputError(f"own_reward gave {reward}: it must lie in [0, 1]")
        return Fit(correct, label_table.picks.chance[picked], rates, label_table.pool, reward)

    def _correct(self, view: PoolView, positions: np.ndarray) -> np.ndarray:
        """(n,) float64: the share of its classes that today's model has right, of answered
        examples.
        """
        import torch

        own = (
            self.task.predicted(view.rows(torch.from_numpy(positions).to(view.device)))
            .cpu()
            .numpy()
        )
        right = own == (self.label_table.labels_of(positions) > 0.5)
        return (right.all(1) if isinstance(self.task, MultiClass) else right.mean(1)).astype(
            np.float64
        )

    def _as_it_stands(self, at: np.ndarray, heard: Outcomes) -> Outcomes:
        """A round's outcomes with the labels of today; withdrawn ones are left out."""
        there = self.label_table.has_label(at)
        return replace(_rows(heard, there), labels=self.label_table.labels_of(at[there]))


def _rows(heard: Outcomes, which: np.ndarray) -> Outcomes:
    predicted = heard.predicted[which] if heard.predicted is not None else None
    return replace(heard, arms=heard.arms[which], labels=heard.labels[which], predicted=predicted)


def _reclassed(heard: Outcomes, change: ClassEdit, arms: np.ndarray) -> Outcomes:
    fit = heard.fit
    return replace(
        heard,
        weights=change.weights(heard.weights),
        arms=arms[heard.arms],
        labels=change.labels(heard.labels),
        predicted=change.shares(heard.predicted) if heard.predicted is not None else None,
        fit=replace(fit, rates=np.minimum(1, change.shares(fit.rates[None])[0]))
        if fit is not None
        else None,
    )


@dataclass(frozen=True)
class DraftRound:
    """A round that may still be given up."""

    round: LearnerRound
    heard: (
        tuple[np.ndarray, Outcomes] | None
    )  # positions and outcomes that the selector learned from
    model: Any  # what own_reward is given as the model before


class LearnerRound(Round):
    """A round of a Learner: its picks are entered in the loop's books."""

    def __init__(
        self,
        learner: Learner,
        view: PoolView,
        plan: np.ndarray,
        seed: int,
        weights: np.ndarray,
        *,
        requested: int,
    ) -> None:
        super().__init__(view, learner.arms, plan, seed)
        self.weights = weights
        self.requested = requested
        self.fit: Fit | None = (
            None  # what the selector was told of the model when the round was opened
        )
        self.learned = np.empty(
            0, np.int64
        )  # positions whose answers the selector learned from then
        self.chances = learner.selector.chances(plan)  # (M,)
        self._loop = learner
        self._books = learner.label_table
        self._number = learner.round

    def join(self, learner: Learner) -> LearnerRound | None:
        """Go on in the loop of whose copy this round was opened, which has heard of answers
        meanwhile -> the round that was open in it.
        """
        before = learner._walk
        label_table = learner.label_table
        view = self.view
        self._loop = learner
        self._books = label_table
        learner._walk = self
        self.withdraw(np.flatnonzero(view.ledger.free & ~label_table.free[: view.size]))
        news = ~label_table.unlabelled[: view.size]
        there = news[view.labelled]
        old = view.labelled[there]
        news[old] = (label_table.labels_of(old) != view.labels[there]).any(1)
        self.hear(np.flatnonzero(news))
        self.forget(view.labelled[~there])
        return before

    def leave(self, before: LearnerRound | None) -> None:
        """Undo join(): another round, or none, is open in the loop."""
        self._loop._walk = before

    def pick(self) -> Pick:
        self._check_open()
        return super().pick()

    def next(self) -> Pick:
        self._check_open()
        if not self._made:
            self._made.append(super().pick())
        pick = self._made[0]
        index = np.array([pick.index])
        arm = np.array([pick.arm])
        self._enter(index, arm, self._predicted(index))
        del self._made[0]
        return pick

    def batch(self) -> Batch:
        """All picks that are still to come, entered together."""
        self._check_open()
        batch, predicted = self.draw()
        self.enter(batch, predicted)
        return batch

    def draw(self) -> tuple[Batch, np.ndarray]:
        """As batch(), with what the model said of each (b, K), and not entered in the books yet."""
        requested = self.requested - self._slot + len(self._made)
        batch = replace(self._rest(), requested=requested)
        return batch, self._predicted(batch.indices)

    def enter(self, batch: Batch, predicted: np.ndarray) -> None:
        """What draw() gave is asked now."""
        self._enter(batch.indices, batch.arms, predicted)
        self._made.clear()

    def _check_open(self) -> None:
        if self._loop._walk is not self:
            raise InputError(f"round {self._number} is closed: a newer one is open")

    def hear(self, positions: np.ndarray) -> None:
        """Labels came: they reach the open arms, unless the round is over."""
        if self.over:
            return
        self.withdraw(positions)
        for index, label in zip(positions.tolist(), self._books.labels_of(positions)):
            self.reveal(index, label)

    def forget(self, positions: np.ndarray) -> None:
        """Labels were withdrawn: the open arms go on without them."""
        if not self.over:
            for index in positions.tolist():
                self.view.ledger.withdraw(index)

    def withdraw(self, positions: np.ndarray) -> None:
        """Told or skipped without being asked: no arm may offer these any more."""
        gone = set(positions.tolist())
        self._made = [pick for pick in self._made if pick.index not in gone]
        for index in positions[self.view.ledger.free[positions]].tolist():
            self.view.ledger.take(index)

    def _predicted(self, positions: np.ndarray) -> np.ndarray:
        """(n, K) what the model said of these."""
        import torch

        found: np.ndarray = (
            self.view.rows(torch.from_numpy(positions).to(self.view.device)).cpu().numpy()
        )
        return found

    def _enter(self, positions: np.ndarray, arms: np.ndarray, predicted: np.ndarray) -> None:
        chances = np.where(arms == NOBODY, 1.0, self.chances[arms])
        self._books.picks.enter(positions, self._number, arms, chances, predicted)
