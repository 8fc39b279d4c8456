"""herding: examples that stand for many others of which the model is unsure."""

from __future__ import annotations

import numpy as np

from tailor.common.checks import check_number, check_whole
from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Cursor, Idea, SeparateArms, random_free
from tailor.strategies.costs import STORED, OpeningWork, PoolShape
from tailor.strategies.cover_search import CoverSearch
from tailor.strategies.feature_kernel import FeatureKernel
from tailor.strategies.kernel_cover import MOST_REFERENCES, KernelCover, draw_free


class Herding(SeparateArms):
    """Uncertainty herding: cover what the model is unsure of, in features, by as few examples as
    possible.

    An example covers those around it, by a Gaussian kernel of their unit features (taken from the
    mean, divided by the length). The next pick adds most to the cover, each reference counting by
    the model's doubt about it: U = 1 - (p_(1) - p_(2)), or in a multi-label task the mean over
    classes of 1 - |2 p - 1|. What is labelled, pending or taken, by whichever arm, covers already.
    The kernel's radius is a small quantile of the distances between labelled neighbours, so that
    the arm seeks what is typical while labels are few and what is doubtful later.

    References are random examples that are free, all of them where there are no more. The pick is
    sought among the references and further random examples: `candidates` in all, fewer in a large
    pool of which fewer than about 30 examples are labelled (2,048 where none is). When no candidate
    adds anything, references, weights, cover and candidates are drawn anew from what is free; when
    that does not help either, all that is left are copies of what is covered, and picks are random.

    Bae, Oliveira and Sutherland, "Uncertainty Herding: One Active Learning Method for All Label
    Budgets", 2024. Both kinds of task; needs probabilities and features.

    references  examples whose cover counts
    candidates  examples among which a pick is sought
    quantile    of the distances from labelled examples to their nearest labelled neighbour: the
                kernel's radius, never below 0.05

    Formula: the x of largest Σ_r U_r · max(0, k(x, r) − c_r), with k(x, r) = exp(−|x − r|² / s²)
    and c_r the largest k(y, r) over all y that are labelled, pending or taken.

    Cost: `references` × (`candidates` + labelled) distances for each `references` picks, whatever
    N is; then a pass over the candidates' gains for each pick.

    When to use: from the first labels on, with good features: it covers the pool where the model is
    unsure, and needs no tuning as labels come.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> features = np.array([[0.0, 1.0], [0.0, 2.0], [3.0, 0.1], [3.0, 0.0], [3.0, -0.1]])
    >>> view = ArrayView(task, np.full((5, 2), 0.5), features, labelled=[0], labels=[[1, 0]])
    >>> Herding().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    3
    """

    name = "herding"
    idea = Idea.BOTH
    covers_pool = True
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})
    bytes_per_example = 8

    def __init__(
        self,
        *,
        references: int = 4096,
        candidates: int = 65536,
        quantile: float = 0.05,
    ) -> None:
        self.references = check_whole(
            references,
            "references",
            1,
            MOST_REFERENCES,
        )
        self.candidates = check_whole(candidates, "candidates", self.references)
        self.quantile = check_number(quantile, "quantile", "a number in [0, 1] is needed")
        if not 0 <= self.quantile <= 1:
            raise InputError(f"quantile is {quantile}: a number in [0, 1] is needed")

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        return HerdingCursor(view, self, rng)

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        references = min(self.references, shape.examples)
        candidates = min(self.candidates, shape.examples)
        measured = candidates + shape.labelled
        features_read = measured * shape.features
        probs_read = references * shape.classes
        return OpeningWork(
            bytes_read=STORED * (features_read + probs_read),
            # A multiplication and an addition for each feature of each pair.
            flops=2.0 * references * measured * shape.features,
        )


class HerdingCursor(Cursor):
    """Draws references and candidates when it is opened, and again when these have nothing to
    add.
    """

    def __init__(
        self,
        view: PoolView,
        strategy: Herding,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(view)
        self._strategy = strategy
        self._rng = rng
        self._kernel: FeatureKernel | None = None
        self._search: CoverSearch | None = None
        if self.ledger.left:
            self._draw()

    def take(self) -> int:
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        if self._search is not None:
            new_takes = self.unseen()
            self._search.take(new_takes)
            position, gain = self._search.best()
            if gain == 0:
                self._draw()
                position, gain = self._search.best()
            if gain > 0:
                return position
            # Fresh candidates add nothing: neither will later ones, since the cover only grows.
            self._search = None
        return random_free(self.ledger.free, self.view.free_ids, self._rng)

    def _draw(self) -> None:
        """References and candidates from what is free now, and the cover of all else."""
        self.unseen()  # the cover begins with all that is taken
        strategy = self._strategy
        order = draw_free(self.view, strategy.candidates, self._rng)
        references = order[: strategy.references]
        # The kernel stays for the round: only references and candidates are drawn anew.
        if self._kernel is None:
            self._kernel = FeatureKernel.fit(
                self.view,
                references,
                self._rng,
                strategy.quantile,
            )
        cover = KernelCover(self._kernel, references)
        self._search = CoverSearch(cover, order)

    def bytes_held(self) -> int:
        if self._search is None:
            return 0
        return self._search.bytes_held()
