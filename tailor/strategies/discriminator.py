"""discriminator: what a classifier tells apart most surely from all that is labelled."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tailor.common.checks import check_number, check_whole
from tailor.common.logistic import fit_logistic
from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Cursor, Idea, SeparateArms, random_free
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.kernel_cover import draw_free
from tailor.strategies.ranking import RankedCursor, first_depth, lowest
from tailor.strategies.standard_features import StandardFeatures, linear_values

if TYPE_CHECKING:
    import torch


class Discriminator(SeparateArms):
    """DAL, discriminative active learning: a logistic classifier learns to tell what is labelled
    from what is not, and the example that it is surest is unlabelled comes next.

    The classifier sees features, with mean 0 and variance 1. What is labelled or pending is one
    side, a random sample of what is free the other; the larger side counts as much as the smaller.
    A batch comes in `parts`: after each, the classifier is fitted again with all that was taken
    meanwhile, by whichever arm, on the labelled side. With nothing labelled, pending or taken the
    pick is random.

    Where more than `sample` are free or labelled, the classifier is fitted to that many of them; it
    ranks all of the pool.

    Gissin and Shalev-Shwartz, "Discriminative Active Learning", 2019. Theirs is a network with
    hidden layers, trained until it tells nearly all apart; this one is linear and held back by a
    prior, and its optimum is unique. Both kinds of task; needs features.

    parts     after each of so many parts of its pulls the classifier is fitted again
    sample    examples of either side that it is fitted to, at most
    variance  of a logit under the prior that holds the weights back

    Formula: s(x) = P(unlabelled | h(x)), largest first; log of its odds is linear in h.

    Cost: for each part, some six steps of Newton's method on 2 · `sample` examples, O(`sample` d²)
    each, and one pass over the features.

    When to use: a large batch early on with good features: it goes where nothing is labelled yet,
    and asks nothing of the model. Outliers attract it less than they do `coreset`.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> features = np.array([[0.0], [1.0], [5.0]])
    >>> view = ArrayView(task, np.full((3, 2), 0.5), features, labelled=[0], labels=[[1, 0]])
    >>> Discriminator().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    2
    """

    name = "discriminator"
    idea = Idea.REPRESENTATIVE
    needs = frozenset({Need.FEATURES})
    bytes_per_example = 8

    def __init__(
        self,
        *,
        parts: int = 10,
        sample: int = 8192,
        variance: float = 1.0,
    ) -> None:
        self.parts = check_whole(parts, "parts")
        self.sample = check_whole(sample, "sample")
        self.variance = check_number(variance, "variance", "a number above 0 is needed")
        if self.variance <= 0:
            raise InputError(f"variance is {variance}: a number above 0 is needed")

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        return DiscriminatorCursor(
            view,
            self,
            pulls,
            rng,
        )

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        free = min(self.sample, shape.examples)
        labelled = min(self.sample, shape.labelled)
        rows = free + labelled
        # One step at the least: a multiplication and an addition for each entry of the curvature.
        flops = 2.0 * rows * shape.features**2
        return OpeningWork(bytes_read=shape.feature_bytes, flops=flops)


class DiscriminatorCursor(Cursor):
    """Fits the classifier when it is first asked, and again after each part."""

    def __init__(
        self,
        view: PoolView,
        strategy: Discriminator,
        pulls: int,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(view)
        self._strategy = strategy
        self._rng = rng
        # Rounded up, so that there are no more parts than asked for.
        self._part = max(1, -(-pulls // strategy.parts))
        self._given = 0  # of this part
        self._ranking: RankedCursor | None = None
        known = np.concatenate([view.labelled, view.pending])
        if len(known) > strategy.sample:
            known = rng.choice(known, strategy.sample, replace=False)
        #: (n,) positions on the labelled side, besides what is taken
        self.known = known
        #: (m,) positions on the unlabelled side, as long as they are free
        self.sample = draw_free(view, strategy.sample, rng)
        self._weights: torch.Tensor | None = None
        if len(self.sample):
            self._features = StandardFeatures.fit(view, self.sample)

    def take(self) -> int:
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        if len(self.known) == 0 and self.ledger.count == 0:
            return random_free(self.ledger.free, self.view.free_ids, self._rng)
        if self._ranking is None or self._given == self._part:
            self._rank()
        assert self._ranking is not None
        self._given += 1
        return self._ranking.take()

    def _rank(self) -> None:
        """By a classifier that knows of all takes."""
        self._given = 0
        self._weights = self._fit()
        scores = self.view.per_row(partial(linear_values, self._features, self._weights))
        # The lowest logit is the surest to be unlabelled.
        self._ranking = RankedCursor(
            self.view,
            ranked=lowest(scores, first_depth(self._part), self.view),
            pulls=self._part,
            rank=partial(self._lowest, scores),
        )

    def _lowest(self, scores: torch.Tensor, count: int) -> np.ndarray:
        return lowest(scores, count, self.view)

    def _fit(self) -> torch.Tensor:
        """(d + 1,) weights of the classifier's logit: above 0 for what looks labelled."""
        labelled_side = np.concatenate([self.known, self.ledger.taken])
        is_free = self.ledger.free[self.sample]
        if not is_free.any():
            self.sample = draw_free(self.view, self._strategy.sample, self._rng)
            is_free = self.ledger.free[self.sample]
        unlabelled_side = self.sample[is_free]
        positions = np.concatenate([labelled_side, unlabelled_side])
        rows = self._features.rows_at(self.view, positions)
        count = len(labelled_side)
        targets = rows.new_zeros(len(rows))
        targets[:count] = 1
        smaller = min(count, len(unlabelled_side))
        row_weights = rows.new_full((len(rows),), smaller / len(unlabelled_side))
        row_weights[:count] = smaller / count
        start = self._weights
        if start is None:
            start = rows.new_zeros(self._features.width)
        return fit_logistic(
            rows,
            targets,
            row_weights,
            penalties=self._features.penalties(self._strategy.variance),
            start=start,
        )
