"""submodular: facility-location mutual information with what is labelled (FLQMI)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Cursor, Idea, SeparateArms
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.gradient_embeddings import Parts, cosines, parts, rough_parts, unit_parts
from tailor.strategies.lazy_maximum import SLACK, LazyLargest

if TYPE_CHECKING:
    import torch


class Submodular(SeparateArms):
    """SIMILAR's FLQMI, with up to `queries` labelled examples a class as the query set Q.

    Greedily maximises f(A) = sum over q in Q of max over j in A of s_qj + eta * sum over j in A of
    max over q in Q of s_qj, s the cosine of gradient embeddings. The max over an empty A is 0, so
    that a negative cosine counts as none. A is the batch so far, whichever arm took it. It needs
    one labelled example of any class; without one it is exhausted.

    Kothawade et al., "SIMILAR: Submodular Information Measures Based Active Learning In Realistic
    Scenarios", 2021. Both kinds of task; needs probabilities and features. Opening costs
    O(N |Q| (K + d)); a take brings a few hundred gains up to date, and not all N.

    eta  weight of the second sum

    Formula: the x of largest gain f(A ∪ {x}) − f(A).

    Cost: one pass of N × (`queries` · K) cosines, then a few hundred gains a pick.

    When to use: you have a few labelled examples of rare classes, and want more that are like them
    and unlike each other.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> probs = np.array([[0.8, 0.2], [0.3, 0.7], [0.8, 0.2]])
    >>> view = ArrayView(task, probs, np.ones((3, 1)), labelled=[0], labels=[[1, 0]])
    >>> Submodular().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    2
    """

    name = "submodular"
    idea = Idea.RARE_CLASSES
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})
    bytes_per_example = 40

    def __init__(self, *, eta: float = 1.0, queries: int = 5) -> None:
        if not 0 <= eta < np.inf:
            raise InputError(f"eta is {eta}: it must be finite and at least 0")
        if queries < 1:
            raise InputError(
                f"queries is {queries}: at least one labelled example a class is needed"
            )
        self.eta = eta
        self.queries = queries

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        queries = self.query_set(view, rng)
        return SubmodularCursor(view, queries, self.eta)

    def query_set(self, view: PoolView, rng: np.random.Generator) -> np.ndarray:
        """Positions of up to `queries` random labelled examples of each class, each once."""
        chosen = []
        for klass in range(view.task.size):
            is_member = view.labels[:, klass] == 1
            members = view.labelled[is_member]
            shuffled = rng.permutation(members)
            queries = shuffled[: self.queries]
            chosen.append(queries)
        # In a multi-label task an example may have been chosen for several classes.
        with_repeats = np.concatenate(chosen)
        return np.unique(with_repeats)

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        wanted = self.queries * shape.classes
        queries = min(wanted, shape.labelled)
        width = shape.classes + shape.features
        bytes_read = shape.probability_bytes + shape.feature_bytes
        # A multiplication and an addition for each number of each pair.
        flops = 2.0 * shape.examples * queries * width
        return OpeningWork(bytes_read=bytes_read, flops=flops)


class SubmodularCursor(Cursor):
    """Gains only fall as the batch grows, so few have to be computed again for each pick."""

    def __init__(
        self,
        view: PoolView,
        queries: np.ndarray,
        eta: float,
    ) -> None:
        super().__init__(view)
        self._gains: Gains | None = None
        if len(queries) == 0:
            return
        self._gains = Gains(view, queries, eta)
        bounds = self._gains.first_bounds()
        self._search = LazyLargest(bounds, values=self._gains, ties=view.ties)

    def take(self) -> int:
        if self._gains is None:
            raise Exhausted("no class has a labelled example to be similar to")
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        taken = self.unseen().copy()
        if len(taken):
            positions = self.view.to_device(taken)
            self._gains.cover(positions)
            self._search.remove(positions)
        index, _ = self._search.largest()
        return index


class Gains:
    """f(A + j) - f(A), for the batch A so far."""

    def __init__(
        self,
        view: PoolView,
        queries: np.ndarray,
        eta: float,
    ) -> None:
        self._view = view
        self._eta = eta
        positions = view.to_device(queries)
        embeddings = parts(view, positions)
        self._queries = unit_parts(embeddings)
        residuals, _ = self._queries
        self._covered = residuals.new_zeros(len(queries))  # (Q,) max over A of s_qj

    def cover(self, positions: torch.Tensor) -> None:
        """These joined A."""
        import torch

        similarities = self._similarities_of(positions)
        newly_covered = similarities.amax(0)
        self._covered = torch.maximum(self._covered, newly_covered)

    def first_bounds(self) -> torch.Tensor:
        """(N,) float64: no gain is larger."""
        import torch

        view = self._view
        bounds_of = partial(
            _first_bounds,
            self._queries,
            self._covered,
            self._eta,
        )
        bounds = view.per_row(bounds_of)
        return bounds.masked_fill_(view.closed, -torch.inf)

    def load(self, ids: torch.Tensor) -> torch.Tensor:
        self._similarities = self._similarities_of(ids)
        largest = self._similarities.amax(1)
        self._relevance = self._eta * largest
        return self.renew()

    def renew(self) -> torch.Tensor:
        return gains(self._similarities, self._covered, self._relevance)

    def _similarities_of(self, positions: torch.Tensor) -> torch.Tensor:
        """(n, Q) cosines with the queries."""
        embeddings = parts(self._view, positions)
        units = unit_parts(embeddings)
        return cosines(units, self._queries)


def gains(
    similarities: torch.Tensor, covered: torch.Tensor, relevance: torch.Tensor
) -> torch.Tensor:
    """(n,) what each example adds.

    similarities  (n, Q) its cosines with the queries
    covered       (Q,) how far each query is covered already
    relevance     (n,) eta * its largest cosine
    """
    improvements = similarities - covered
    coverage = improvements.clamp_(min=0).sum(1)
    return coverage + relevance


def _first_bounds(
    queries: Parts,
    covered: torch.Tensor,
    eta: float,
    view: PoolView,
    part: slice,
) -> torch.Tensor:
    """(n,) float64: no gain is larger."""
    embeddings = rough_parts(view, part)
    a, h = unit_parts(embeddings)
    query_a, query_h = queries
    # The queries are rounded to the precision of the pass, and not the rows raised to theirs.
    rough_queries = (
        query_a.to(a.dtype),
        query_h.to(h.dtype),
    )
    similarities = cosines((a, h), rough_queries)
    relevance = eta * similarities.amax(1)
    rough_covered = covered.to(similarities.dtype)
    rough_gains = gains(similarities, rough_covered, relevance)
    # No cosine is above 1, so this is the most that an example can add.
    most = len(covered) + eta
    return rough_gains.double() + SLACK * most
