"""committee: what several heads disagree about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tailor.common.checks import check_whole
from tailor.common.linear_head import check_ridge
from tailor.errors import UnknownName
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Cursor, Idea, SeparateArms
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.disagreement import MEASURES, label_probabilities
from tailor.strategies.head_refits import STEPS, draw_sample, refit_head
from tailor.strategies.information import (
    head_rows,
    known_moments,
    quadratic_form,
    ridge_of,
)
from tailor.strategies.information_search import largest_probability
from tailor.strategies.ranking import ClassScores, RankedCursor, first_depth, rank_pool
from tailor.task import MultiClass

if TYPE_CHECKING:
    import torch

HEADS = ("bootstrap", "laplace")
#: examples whose predictions by a member are in memory at once
JUDGED_ROWS = 4096


class Committee(SeparateArms):
    """What the heads of a committee disagree about most.

    With `heads=bootstrap` each of the `members` is a linear head on the features, trained again on
    its own random sample of the labels, drawn with replacement. With `heads=laplace` the members
    are samples around the model itself: its logits z plus √s times a random number for each class,
    with s = h′M⁻¹h and M = λI + Σ w h h′ over what is labelled or pending, w = q(1 − q), q the
    largest probability; z is log p, in a multi-label task log p − log(1 − p).

    In a pool of more than `candidates` free examples not all are judged by all members, but those
    for which a guess is largest: how unsure the mean of the heads is (laplace: the model itself),
    Σ p(1 − p), times how far the members' logits spread. Those beyond follow by that guess. Of 400
    picks from 20,000 examples, 64 features and 50 classes the guess keeps 41% among a twentieth of
    the pool, 65% among an eighth and 84% among a quarter.

    Seung, Opper and Sompolinsky, "Query by Committee", 1992; Beluch et al., "The Power of Ensembles
    for Active Learning in Image Classification", 2018. Both kinds of task; needs probabilities and
    features. Of the same members' probabilities scikit-activeml's QueryByCommittee computes the
    same numbers: its KL divergence is the mutual information, its vote entropy and its variation
    ratios are these. It differs in that it trains whatever classifiers it is given, on all labels
    or on samples that its user draws, and judges the whole pool.

    members     heads
    heads       bootstrap, or laplace: no head is trained, and the disagreement is that of a
                Gaussian around the model
    measure     information: entropy of the mean prediction less the mean entropy; vote-entropy: the
                entropy of the votes; variation-ratio: the share of votes against the most frequent
                one. In a multi-label task each class is voted on, and its numbers are summed
    candidates  examples that all members judge, or twice as many as are asked for where that is
                more
    labels      that a head is trained on, at most
    ridge       λ; by default what the model's head was trained with, 1 where nobody knows

    Formula: s(x) = H(mean_m p_m(x)) − mean_m H(p_m(x)) over the members m, largest first.

    Cost: training of each head on up to `labels` examples, then `members` × `candidates` × d × K;
    in a larger pool N × d × (K + d) for the guess besides.

    When to use: where the model is unsure because it has seen too little, and not because classes
    overlap: heads agree that an ambiguous example is ambiguous, and this one leaves it alone.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> features = np.array([[-2.0], [-1.0], [1.0], [2.0], [0.2], [0.2]] * 4)
    >>> features[-1] = 9.0
    >>> labelled = np.flatnonzero(abs(features) >= 1)[:-1]
    >>> labels = np.eye(2)[(features[labelled, 0] > 0).astype(int)]
    >>> view = ArrayView(task, np.full((24, 2), 0.5), features, labelled=labelled, labels=labels)
    >>> pick = Committee().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    >>> features[pick]
    array([0.2])
    """

    name = "committee"
    idea = Idea.UNCERTAIN
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})
    bytes_per_example = 16

    def __init__(
        self,
        *,
        members: int = 5,
        heads: str = "bootstrap",
        measure: str = "information",
        candidates: int = 262144,
        labels: int = 4096,
        ridge: float | None = None,
    ) -> None:
        self.members = check_whole(members, "members", 2)
        if heads not in HEADS:
            raise UnknownName("kind of heads", heads, HEADS)
        if measure not in MEASURES:
            raise UnknownName("measure", measure, list(MEASURES))
        self.heads = heads
        self.measure = measure
        self.candidates = check_whole(candidates, "candidates")
        self.labels = check_whole(labels, "labels")
        self.ridge = check_ridge(ridge)

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        members = self._make_members(view, rng)
        count = max(self.candidates, first_depth(pulls))
        guess = GuessedDisagreement(members)
        candidates = view.free_ids
        if len(candidates) > count:
            candidates = rank_pool(guess, view, count)
        ranked = self._rank(view, members, candidates)
        return RankedCursor(
            view,
            ranked=ranked,
            pulls=pulls,
            rank=partial(_rank_on, view, guess, ranked),
        )

    def _rank(
        self,
        view: PoolView,
        members: Members,
        candidates: np.ndarray,
    ) -> np.ndarray:
        """The candidates (n,), those that are disagreed about most first."""
        measure = MEASURES[self.measure]
        disagreements = [np.empty(0)]
        for start in range(0, len(candidates), JUDGED_ROWS):
            positions = candidates[start : start + JUDGED_ROWS]
            logits = members.logits(view, view.to_device(positions))
            disagreement = measure(logits, view.task)
            disagreements.append(disagreement.cpu().numpy())
        scores = -np.concatenate(disagreements)
        # By score, then by ties: lexsort's last key counts most.
        order = np.lexsort((view.ties[candidates], scores))
        return candidates[order]

    def _make_members(self, view: PoolView, rng: np.random.Generator) -> Members:
        ridge = ridge_of(view, self.ridge)
        if self.heads == "laplace":
            return LaplaceSamples(
                view,
                self.members,
                ridge,
                rng,
            )
        return RefittedHeads(
            view,
            self.members,
            self.labels,
            ridge,
            rng,
        )

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        weights = shape.features * shape.classes
        judged = self.members * min(self.candidates, shape.examples)
        guessed = 0
        if shape.examples > self.candidates:
            guessed = shape.examples
        trained = 0
        if self.heads == "bootstrap":
            # A step looks at each example of a sample twice: its loss, and the slope of it.
            trained = 2 * STEPS * self.members * min(self.labels, shape.labelled)
        return OpeningWork(
            bytes_read=shape.feature_bytes,
            flops=2.0 * (judged + guessed + trained) * weights,
        )


class Members(Protocol):
    """The heads of a committee."""

    def logits(self, view: PoolView, indices: torch.Tensor) -> Iterator[torch.Tensor]:
        """The logits (n, K) of each member for examples at indices (n,)."""

    def guess(self, view: PoolView, part: slice) -> torch.Tensor:
        """(n,) roughly how much they disagree about each row of a part, from one prediction."""


class RefittedHeads:
    """Linear heads, each trained on a bootstrap sample of the labels.

    labels  of each sample, at most
    """

    def __init__(
        self,
        view: PoolView,
        members: int,
        labels: int,
        ridge: float,
        rng: np.random.Generator,
    ) -> None:
        #: (d + 1, K) of each member
        self.weights = []
        for _ in range(members):
            sample = draw_sample(len(view.labelled), labels, rng)
            weights = refit_head(view, sample, ridge)
            self.weights.append(weights)

    def logits(self, view: PoolView, indices: torch.Tensor) -> Iterator[torch.Tensor]:
        rows = view.feature_rows(indices)
        for weights in self.weights:
            yield rows @ weights[:-1] + weights[-1]

    @cached_property
    def _mean_and_spread(self) -> tuple[np.ndarray, np.ndarray]:
        """(d + 1, K) the mean of the heads, and (d + 1, d + 1) the sum of outer products of what
        each differs from it by. Arrays, which go to the workers of any engine.
        """
        stacked = np.stack([weights.cpu().numpy() for weights in self.weights])
        mean = stacked.mean(0)
        spread = np.zeros((len(mean), len(mean)), mean.dtype)
        for weights in stacked:
            difference = weights - mean
            spread += difference @ difference.T
        return mean, spread

    def guess(self, view: PoolView, part: slice) -> torch.Tensor:
        import torch

        features = view.feature_rows(part)
        rows = torch.cat([features, features.new_ones(len(features), 1)], 1)
        mean, spread = self._mean_and_spread
        logits = rows @ view.to_device(mean)
        doubt = _doubt(label_probabilities(logits, view.task))
        return doubt * quadratic_form(rows, view.to_device(spread))


class LaplaceSamples:
    """Logits around the model's own, as far apart as its head is unsure in an example's direction.

    The numbers are drawn as they are asked for, by NumPy: the same on every device.
    """

    def __init__(
        self,
        view: PoolView,
        members: int,
        ridge: float,
        rng: np.random.Generator,
    ) -> None:
        import torch

        self._members = members
        self._rng = rng
        known = np.concatenate([view.labelled, view.pending])
        moments = known_moments(view, known, _bernoulli_variance, ridge)
        inverse = torch.linalg.inv(moments)
        self._inverse: np.ndarray = inverse.cpu().numpy()

    def logits(self, view: PoolView, indices: torch.Tensor) -> Iterator[torch.Tensor]:
        probs = view.rows(indices).double()
        own_logits = probs.clamp(min=1e-38).log()
        if not isinstance(view.task, MultiClass):
            against = 1 - probs
            own_logits = own_logits - against.clamp(min=1e-38).log()
        rows = head_rows(view, indices).double()
        inverse = view.to_device(self._inverse)
        spread = quadratic_form(rows, inverse).sqrt()
        for _ in range(self._members):
            drawn = self._rng.standard_normal(tuple(probs.shape))
            noise = view.to_device(drawn)
            yield own_logits + spread[:, None] * noise

    def guess(self, view: PoolView, part: slice) -> torch.Tensor:
        rows = head_rows(view, part)
        inverse = view.to_device(self._inverse).to(rows.dtype)
        doubt = _doubt(view.rows(part))
        return doubt * quadratic_form(rows, inverse)


def _bernoulli_variance(view: PoolView, which: slice | torch.Tensor) -> torch.Tensor:
    """(n,) q (1 - q) of the largest probability q."""
    largest = largest_probability(view, which)
    return largest * (1 - largest)


class GuessedDisagreement:
    """Scores a pool by a committee's guess, the largest first."""

    def __init__(self, members: Members) -> None:
        self._members = members

    def scores(self, view: PoolView, classes: list[int | None]) -> Iterable[ClassScores]:
        yield None, view.per_row(self._minus_guess)

    def _minus_guess(self, view: PoolView, part: slice) -> torch.Tensor:
        return -self._members.guess(view, part)


def _doubt(probs: torch.Tensor) -> torch.Tensor:
    """(n,) how unsure predictions (n, K) are: the sum of p (1 - p)."""
    return (probs * (1 - probs)).sum(1)


def _rank_on(
    view: PoolView,
    guess: GuessedDisagreement,
    judged: np.ndarray,
    count: int,
) -> np.ndarray:
    """Positions of `count` examples at least, or of all: the judged ones, then by the guess."""
    deeper = max(count, 2 * len(judged))
    by_guess = rank_pool(guess, view, deeper)
    return np.concatenate([judged, by_guess[len(judged) :]])
