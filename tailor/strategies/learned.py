"""learned: what a small network, trained on other pools, expects most of."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tailor.common.checks import check_whole
from tailor.errors import Exhausted
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Cursor, Idea, SeparateArms
from tailor.strategies.costs import STORED, OpeningWork, PoolShape
from tailor.strategies.kernel_cover import draw_free
from tailor.strategies.policy_inputs import REFERENCES, PolicyInputs
from tailor.strategies.policy_network import SHIPPED, PolicyNetwork

#: Scores are compared in these units, so that rounding does not order copies.
SCORE_UNITS = 2**24
#: of the pool, the labels that are expected to be collected where nobody says
USUAL_BUDGET = 0.1


class Learned(SeparateArms):
    """A small network gives every candidate a number, and the largest is taken.

    It goes by what any model gives: the three largest probabilities, their margin and entropy, the
    distance from what is labelled, pending or taken, the density around the example, the share of
    its likeliest class among the labels and how unsure the model is of that class, and the share of
    the budget that is spent. Every take changes the distances, and with them the numbers.

    The network learned on other pools, whose labels are known, to tell the batch that helped a
    model most from many others (`tailor bench policy train`, which also reports how it fares on
    pools it never saw). With the weights of the package it is behind the best of its plain rules on
    all eight pools it was judged on, so that it is no member of any default set.

    After Konyushkova, Sznitman and Fua, "Learning Active Learning from Data", 2017; Löffler and
    Mutschler, "IALE: Imitating Active Learner Ensembles", 2022; Gonsior, Thiele and Lehner,
    "ImitAL: Learned Active Learning Strategy on Synthetic Data", 2022. Both kinds of task; needs
    probabilities and features.

    candidates  random free examples among which picks are sought; drawn anew when used up
    budget      labels to be collected in all; 0: a tenth of the pool
    weights     a file that `tailor bench policy train` wrote; empty: those of the package

    Formula: the x of largest f(p₍₁₎, p₍₂₎, p₍₃₎, margin, entropy, distance, density, class share,
    class difficulty, budget spent, kind of task), f a network with two hidden layers.

    Cost: `candidates` × (1,024 labelled + 1,024 random) distances whatever N is; then for each pick
    `candidates` distances and a pass of the network.

    When to use: to compare with. Where your pools are alike, train its weights on those that are
    labelled already, and use it only if its report says so.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> view = ArrayView(task, np.full((3, 2), 0.5), np.eye(3), free=np.array([False, True, False]))
    >>> Learned().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    1
    """

    name = "learned"
    idea = Idea.LEARNED
    needs = frozenset({Need.PROBABILITIES, Need.FEATURES})
    bytes_per_example = 8

    def __init__(
        self,
        *,
        candidates: int = 8192,
        budget: int = 0,
        weights: str = "",
    ) -> None:
        self.candidates = check_whole(candidates, "candidates")
        self.budget = check_whole(budget, "budget", 0)
        self.weights = weights
        path = SHIPPED
        if weights:
            path = Path(weights)
        self.network = PolicyNetwork.read(path)

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        return LearnedCursor(view, self, rng)

    def budget_of(self, view: PoolView) -> int:
        """Labels to be collected in all."""
        usual = round(USUAL_BUDGET * view.size)
        return self.budget or max(1, usual)

    def explanation(self) -> str:
        return "A network that was trained on other pools expected most of it."

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        candidates = min(self.candidates, shape.examples)
        labelled = min(REFERENCES, shape.labelled)
        measured = labelled + min(REFERENCES, candidates)
        read = (candidates + labelled) * shape.features + candidates * shape.classes
        return OpeningWork(
            bytes_read=STORED * read,
            flops=2.0 * candidates * measured * shape.features,
        )


class LearnedCursor(Cursor):
    """Draws candidates when it is first asked, and again when these are used up."""

    def __init__(
        self,
        view: PoolView,
        strategy: Learned,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(view)
        self._strategy = strategy
        self._rng = rng
        self._candidates = np.empty(0, np.int64)
        self._inputs: PolicyInputs | None = None
        if self.ledger.left:
            self._draw()

    def take(self) -> int:
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        new_takes = self.unseen()
        if not self.ledger.free[self._candidates].any():
            self._draw()
            new_takes = new_takes[:0]
        assert self._inputs is not None
        self._inputs.take(new_takes)
        scores = self._strategy.network.scores(self._inputs.matrix)
        in_units = (scores * SCORE_UNITS).round()
        on_host = in_units.cpu().numpy()
        on_host[~self.ledger.free[self._candidates]] = -np.inf
        best = self._candidates[on_host == on_host.max()]
        first = self.view.ties[best].argmin()
        return int(best[first])

    def _draw(self) -> None:
        """Candidates from what is free now; all that is taken counts already."""
        self.unseen()
        strategy = self._strategy
        self._candidates = draw_free(self.view, strategy.candidates, self._rng)
        self._inputs = PolicyInputs(
            self.view,
            self._candidates,
            strategy.budget_of(self.view),
            self._rng,
        )

    def bytes_held(self) -> int:
        if self._inputs is None:
            return 0
        return self._inputs.bytes_held()
