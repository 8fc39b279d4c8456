"""committee: what several heads disagree about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tailor.common.checks import check_whole
from tailor.common.linear_head import check_ridge
from tailor.errors import UnknownName
from tailor.selection.pool_view import CHUNK, Need, PoolView
from tailor.strategies.base import Cursor, SeparateArms
from tailor.strategies.costs import STORED, OpeningWork, PoolShape
from tailor.strategies.disagreement import MEASURES
from tailor.strategies.entropies import label_entropy
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


class Committee(SeparateArms):
    """What the heads of a committee disagree about most.

    With `heads=bootstrap` each of the `members` is a linear head on the features, trained again on
    its own random sample of the labels, drawn with replacement. With `heads=laplace` the members
    are samples around the model itself: its logits z plus √s times a random number for each class,
    with s = h′M⁻¹h and M = λI + Σ w h h′ over what is labelled or pending, w = q(1 − q), q the
    largest probability; z is log p, in a multi-label task log p − log(1 − p).

    In a pool of more than `candidates` free examples those whose own prediction has the largest
    entropy are judged; those beyond follow by their entropy.

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
    candidates  examples that are judged, or twice as many as are asked for where that is more
    labels      that a head is trained on, at most
    ridge       λ; by default what the model's head was trained with, 1 where nobody knows

    Formula: s(x) = H(mean_m p_m(x)) − mean_m H(p_m(x)) over the members m, largest first.

    Cost: one pass over the N × K probabilities; training of each head on up to `labels` examples;
    then `members` × `candidates` × d × K.

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
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})
    bytes_per_example = 16

    def __init__(
        self,
        *,
        members: int = 5,
        heads: str = "bootstrap",
        measure: str = "information",
        candidates: int = 65536,
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
        count = max(self.candidates, first_depth(pulls))
        candidates = rank_pool(OwnEntropy(), view, count)
        ranked = self._rank(view, candidates, rng)
        return RankedCursor(
            view,
            ranked=ranked,
            pulls=pulls,
            rank=partial(_rank_on, view, ranked),
        )

    def _rank(
        self,
        view: PoolView,
        candidates: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """The candidates (n,), those that are disagreed about most first."""
        members = self._make_members(view, rng)
        measure = MEASURES[self.measure]
        disagreements = [np.empty(0)]
        for start in range(0, len(candidates), CHUNK):
            positions = candidates[start : start + CHUNK]
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
        candidates = min(self.candidates, shape.examples)
        weights = shape.features * shape.classes
        judged = self.members * candidates
        trained = 0
        if self.heads == "bootstrap":
            # A step looks at each example of a sample twice: its loss, and the slope of it.
            trained = 2 * STEPS * self.members * min(self.labels, shape.labelled)
        return OpeningWork(
            bytes_read=shape.probability_bytes + STORED * candidates * shape.features,
            flops=2.0 * (judged + trained) * weights,
        )


class Members(Protocol):
    """The heads of a committee."""

    def logits(self, view: PoolView, indices: torch.Tensor) -> Iterator[torch.Tensor]:
        """The logits (n, K) of each member for examples at indices (n,)."""


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
        self._inverse = torch.linalg.inv(moments)

    def logits(self, view: PoolView, indices: torch.Tensor) -> Iterator[torch.Tensor]:
        probs = view.rows(indices).double()
        own_logits = probs.clamp(min=1e-38).log()
        if not isinstance(view.task, MultiClass):
            against = 1 - probs
            own_logits = own_logits - against.clamp(min=1e-38).log()
        rows = head_rows(view, indices).double()
        spread = quadratic_form(rows, self._inverse).sqrt()
        for _ in range(self._members):
            drawn = self._rng.standard_normal(tuple(probs.shape))
            noise = view.to_device(drawn)
            yield own_logits + spread[:, None] * noise


def _bernoulli_variance(view: PoolView, which: slice | torch.Tensor) -> torch.Tensor:
    """(n,) q (1 - q) of the largest probability q."""
    largest = largest_probability(view, which)
    return largest * (1 - largest)


class OwnEntropy:
    """Scores a pool by the entropy of the model's own predictions, the largest first."""

    def scores(self, view: PoolView, classes: list[int | None]) -> Iterable[ClassScores]:
        yield None, view.per_row(_minus_entropy)


def _minus_entropy(view: PoolView, part: slice) -> torch.Tensor:
    return -label_entropy(view.rows(part), view.task)


def _rank_on(view: PoolView, judged: np.ndarray, count: int) -> np.ndarray:
    """Positions of `count` examples at least, or of all: the judged ones, then by entropy."""
    deeper = max(count, 2 * len(judged))
    by_entropy = rank_pool(OwnEntropy(), view, deeper)
    return np.concatenate([judged, by_entropy[len(judged) :]])
