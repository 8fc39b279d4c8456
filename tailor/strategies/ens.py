"""ens: active search that looks ahead, one arm a class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailor.common.checks import check_number, check_whole
from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Arm, Cursor, Idea, Strategy
from tailor.strategies.costs import HeldMemory, OpeningWork, PoolShape
from tailor.strategies.expected_finds import exact_scores, upper_bounds
from tailor.strategies.neighbour_graph import NeighbourGraph

#: candidates of the highest bounds that are looked at before the bounds decide about the rest
FIRST = 32
#: scores are compared in these units, so that rounding does not order equals
UNITS = 2.0**24


class Ens(Strategy):
    """ENS, efficient non-myopic search, one arm a class: the pick after which most positives are
    expected from the labels that are left, and not only from this one.

    The model of a class is that of neighbours: an example with n known ones among its `neighbours`
    nearest, m of which are in the class, is in it with probability (`prior` + m) / (1 + n). Near is
    by unit features (taken from the mean, divided by the length). The score of x is its probability
    plus what the `horizon` − 1 likeliest others would bring once the label of x is known, in the
    mean over that label. Early picks explore around many; the last is the likeliest. A batch is
    made by assuming that what is pending or taken, by whichever arm, is not in the class; each of
    the arm's own picks leaves one label less.

    Bounds leave few scores to compute for a pick; the pick is exact. Where more than `candidates`
    are free, the search goes over as many: for each class those that the round's model finds
    likeliest, half of them in all, and random ones; neighbours are then the nearest among these and
    up to `known` labelled ones.

    Jiang et al., "Efficient Nonmyopic Active Search", 2017, and "Efficient Nonmyopic Batch Active
    Search", 2018. Theirs weighs neighbours by similarity, here each counts 1. Both kinds of task;
    needs probabilities (of a large pool alone) and features.

    horizon     labels that are left for the search as the round begins
    neighbours  of each example
    prior       the probability of an example without a known neighbour
    candidates  examples among which picks are sought
    known       labelled, pending and taken examples that neighbours are sought among

    Formula: s_k(x) = p + p · S₁ + (1 − p) · S₀, with p = P(y_k = 1 | x) and S_y the sum of the
    horizon − 1 largest probabilities of the others once x has label y; largest first.

    Cost: `candidates` × (`candidates` + `known`) distances, once for all classes; in a large pool a
    pass over the probabilities of every class; then O(`candidates` · `neighbours`) a pick.

    When to use: to find as many positives as possible (`reward="search"`) with a known budget, when
    positives lie in groups: it looks for groups first. For the last few labels use
    `most-likely-positive`.

    >>> import numpy as np
    >>> from tailor import MultiLabel
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiLabel(["A"])
    >>> directions = np.radians([0, 2, 4, 90, 91, 92, 93, 180])
    >>> features = np.stack([np.cos(directions), np.sin(directions)], 1)
    >>> view = ArrayView(task, np.full((8, 1), 0.5), features, labelled=[0, 3], labels=[[0], [1]])
    >>> Ens(neighbours=2, horizon=3).arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    4
    """

    name = "ens"
    idea = Idea.SEARCH
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})
    per_class = True
    bytes_per_example = 8

    def __init__(
        self,
        *,
        horizon: int = 100,
        neighbours: int = 50,
        prior: float = 0.1,
        candidates: int = 16384,
        known: int = 8192,
    ) -> None:
        self.horizon = check_whole(horizon, "horizon")
        self.neighbours = check_whole(neighbours, "neighbours")
        self.prior = check_number(prior, "prior", "a number in (0, 1) is needed")
        if not 0 < self.prior < 1:
            raise InputError(f"prior is {prior}: a number in (0, 1) is needed")
        self.candidates = check_whole(candidates, "candidates")
        self.known = check_whole(known, "known")

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        shared = SharedGraph(view, self)
        cursors: list[Cursor] = []
        for arm in arms:
            assert arm.klass is not None
            cursors.append(EnsCursor(view, self, arm.klass, shared))
        return cursors

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        candidates = min(self.candidates, shape.examples)
        nodes = candidates + min(self.known, shape.labelled)
        bytes_read = 0
        if shape.examples > candidates:
            bytes_read = shape.probability_bytes
        # A multiplication and an addition for each feature of each pair.
        flops = 2.0 * candidates * nodes * shape.features
        return OpeningWork(bytes_read=bytes_read, flops=flops)

    def held_in_memory(self, shape: PoolShape) -> HeldMemory | None:
        candidates = min(self.candidates, shape.examples)
        # 8 bytes for each neighbour, and 8 for each candidate of every class.
        most = 8.0 * candidates * (self.neighbours + shape.classes)
        return HeldMemory("the neighbours of the candidates", most)


class SharedGraph:
    """The graph that all arms of a round search, drawn anew when all of its candidates are
    taken.
    """

    def __init__(self, view: PoolView, strategy: Ens) -> None:
        self._view = view
        self._strategy = strategy
        self._graph: NeighbourGraph | None = None

    def today(self) -> NeighbourGraph:
        """With a free candidate, where anything is free."""
        if self._graph is not None:
            self._graph.follow()
        if self._graph is None or not self._graph.free.any():
            self._graph = NeighbourGraph(
                self._view,
                neighbours=self._strategy.neighbours,
                candidates=self._strategy.candidates,
                known=self._strategy.known,
            )
        return self._graph


class EnsCursor(Cursor):
    """Bounds for all candidates at every take, and exact scores for the few that may win."""

    def __init__(
        self,
        view: PoolView,
        strategy: Ens,
        klass: int,
        shared: SharedGraph,
    ) -> None:
        super().__init__(view)
        self._strategy = strategy
        self._klass = klass
        self._shared = shared
        self._graph: NeighbourGraph | None = None
        self._labels_left = strategy.horizon
        #: how many scores the last take computed
        self.computed = 0

    def take(self) -> int:
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        graph = self._shared.today()
        if graph is not self._graph:
            self._graph = graph
            self._positives = graph.positives(self._klass)
        number = self._best(graph)
        self._labels_left = max(1, self._labels_left - 1)
        return int(graph.candidates[number])

    def _best(self, graph: NeighbourGraph) -> int:
        """The number of the candidate with the largest score, the first by ties among equals."""
        prior = self._strategy.prior
        known = graph.known_neighbours
        probs = (prior + self._positives) / (1.0 + known)
        free = np.flatnonzero(graph.free)
        order = free[np.argsort(-probs[free], kind="stable")]
        ahead = min(self._labels_left - 1, len(free) - 1)
        threshold = 1.0
        total = 0.0
        if ahead > 0:
            threshold = probs[order[ahead - 1]]
            total = probs[order[:ahead]].sum()
        model = (probs, self._positives, known, graph.free, prior)
        bounds = upper_bounds(*model, threshold, total, graph.counted_by)
        # Raised by more than rounding can take away.
        bounds += 1e-9 * (1 + total)
        first = _highest(bounds, FIRST)
        scores = exact_scores(first, *model, ahead, order, graph.counted_by)
        rivals = np.flatnonzero(bounds >= scores.max())
        self.computed = len(first) + len(rivals)
        scores = exact_scores(rivals, *model, ahead, order, graph.counted_by)
        ties = self.view.ties[graph.candidates[rivals]]
        # The last key counts most.
        best = np.lexsort((ties, -np.round(scores * UNITS)))[0]
        return int(rivals[best])

    def bytes_held(self) -> int:
        if self._graph is None:
            return 0
        return self._graph.bytes_held() + self._positives.nbytes


def _highest(bounds: np.ndarray, count: int) -> np.ndarray:
    """The numbers of up to `count` of the highest bounds (C,) that are finite."""
    count = min(count, len(bounds))
    highest = np.argpartition(-bounds, count - 1)[:count]
    return highest[np.isfinite(bounds[highest])]
