"""direct: both sides of the cut that parts each class's labels best."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tailor.common.checks import check_number
from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import PoolView
from tailor.strategies.base import Arm, Cursor, Idea, Strategy
from tailor.strategies.costs import OpeningWork, PoolShape
from tailor.strategies.direct_cut import ClassCut, LabelledScores
from tailor.strategies.direct_ranking import AroundCut, Depths, RankAroundCuts

#: how many more of each list than will probably be asked for: other arms take some
SPARE = 16
#: what a list is made longer by when it is used up
GROWTH = 4

#: depth -> the first so many positions of a list, in order; all where there are fewer
Deepen = Callable[[int], np.ndarray]


class Direct(Strategy):
    """DIRECT, one arm a class: examples next to the cut that parts labelled positives from labelled
    negatives best.

    Sort the pool by the class's score, highest first: p_k in a multi-label task, p_k less the
    largest other probability in a multi-class one. The cut is where the share of labelled positives
    above it exceeds the share of labelled negatives above it most. Take the free example nearest to
    it by rank, above and below in turn. A wrong label changes one of these shares by one part in as
    many as are labelled; for galaxy it opens a cut of its own.

    Some pulls go to random free examples between the last leading positive (the labelled above it
    are all positives) and the first trailing negative (the labelled below it are all negatives).

    Equal scores lie on the same side of the cut, and the seed says which of them is nearer. Between
    labelled neighbours every rank is as good a cut: it lies midway between their scores. Of several
    such stretches the highest is taken. With no positive labelled the cut lies midway between the
    highest negative and the highest possible score, with no negative midway between the lowest
    positive and the lowest possible score, with no label where the model itself puts it (0, or p_k
    = 1/2). The first pull takes from above. When a side is used up the other gives; when nothing in
    doubt is left, both do. Labels that come or are withdrawn during a round count from the next one
    on.

    Nuggehalli, Zhang, Jain and Nowak, "DIRECT: Deep Active Learning under Imbalance and Label
    Noise", 2023. Both kinds of task; needs probabilities.

    spread  the share of pulls, by chance, that go to random examples in doubt, in [0, 1]. One in
            ten by default: in simulations it found 9% more positives of a rare class than none with
            right labels, since a cut that few labels had put too high was found out, and 8% fewer
            with one label in ten wrong, when much is in doubt; more of it costs more there

    Formula: s_k(x) = p_k(x) less the largest of the other probabilities (multi-label: p_k(x)); the
    cut c maximises (labelled positives with s_k ≥ c) / n⁺ − (labelled negatives with s_k ≥ c) / n⁻,
    and the nearest to c by rank comes first, from above and below in turn.

    Cost: one pass over the probabilities of each class whose arm is pulled; in a multi-class task
    one more over all of them, and the rows again in which such a class leads. Sorted are the
    labelled examples and those held for picking. A pick costs O(1), and the passes of its class
    again where other arms took all that was held.

    When to use: rare classes, when some labels are wrong. With right labels it takes much what
    galaxy does. A class of which more positives are wrong than right leads it astray too.

    >>> import numpy as np
    >>> from tailor import MultiLabel
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiLabel(["cat"])
    >>> probs = np.array([[0.1], [0.2], [0.4], [0.6], [0.7], [0.9]])
    >>> view = ArrayView(task, probs, labelled=[1, 3, 5], labels=[[0], [1], [1]])
    >>> Direct(spread=0).arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    2
    """

    name = "direct"
    idea = Idea.RARE_CLASSES
    per_class = True

    def __init__(self, *, spread: float = 0.1) -> None:
        self.spread = check_number(spread, "spread", "a number in [0, 1] is needed")
        if not 0 <= self.spread <= 1:
            raise InputError(f"spread is {spread}: a number in [0, 1] is needed")

    def open(
        self,
        arms: Sequence[Arm],
        view: PoolView,
        pulls: Sequence[int],
        rngs: Sequence[np.random.Generator],
    ) -> list[Cursor]:
        labelled = LabelledScores(view)
        cuts = []
        for arm in arms:
            if arm.klass is not None:
                cuts.append(labelled.cut(arm.klass))
        depths = [self._first_depths(count) for count in pulls]
        around_cuts = rank_around(view, cuts, depths)
        cursors: list[Cursor] = []
        for cut, around, first, rng in zip(cuts, around_cuts, depths, rngs, strict=True):
            cursor = DirectCursor(
                view,
                cut,
                around,
                first,
                self.spread,
                rng,
            )
            cursors.append(cursor)
        return cursors

    def _first_depths(self, pulls: int) -> Depths:
        """What an arm that is pulled so often holds at the start."""
        in_doubt = 0
        if self.spread > 0:
            in_doubt = math.ceil(2 * self.spread * pulls) + SPARE
        # Each side gives half of the picks, or all of them where the other is used up.
        side = pulls + SPARE
        return Depths(above=side, below=side, in_doubt=in_doubt)

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        # The few labels that are sorted don't count.
        return OpeningWork(bytes_read=shape.probability_bytes)


def rank_around(view: PoolView, cuts: list[ClassCut], depths: list[Depths]) -> list[AroundCut]:
    """What lies around the cut of each class: one visit to the shards for all of them."""
    job = RankAroundCuts(cuts, depths)
    if view.shards is None:
        return job(view)
    return view.shards.visit(job)


class DirectCursor(Cursor):
    """Takes from both sides of a cut in turn, and now and then a random example in doubt.

    around  what lies around the cut, so many of each list as `depths` says
    spread  the share of pulls that go to what is in doubt
    """

    def __init__(
        self,
        view: PoolView,
        cut: ClassCut,
        around: AroundCut,
        depths: Depths,
        spread: float,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(view)
        self._cut = cut
        self._spread = spread
        self._rng = rng
        self._above = Shortlist(
            around.above.positions,
            depths.above,
            lambda depth: self._around(Depths(above=depth)).above.positions,
        )
        self._below = Shortlist(
            around.below.positions,
            depths.below,
            lambda depth: self._around(Depths(below=depth)).below.positions,
        )
        self._in_doubt = Shortlist(
            around.in_doubt.positions,
            depths.in_doubt,
            lambda depth: self._around(Depths(in_doubt=depth)).in_doubt.positions,
        )
        self._is_above_next = True

    def take(self) -> int:
        for shortlist in self._in_turn():
            index = shortlist.first(self.ledger.free)
            if index is not None:
                return index
        raise Exhausted("every example has been taken")

    def _in_turn(self) -> list[Shortlist]:
        """Where the next pick comes from: the first list that has a free example."""
        # Not drawn where it decides nothing.
        if self._spread > 0 and self._rng.random() < self._spread:
            return [self._in_doubt, self._above, self._below]
        sides = [self._above, self._below]
        if not self._is_above_next:
            sides.reverse()
        self._is_above_next = not self._is_above_next
        return sides

    def _around(self, depths: Depths) -> AroundCut:
        (around,) = rank_around(self.view, [self._cut], [depths])
        return around


class Shortlist:
    """The first few of a ranking; more are ranked when other arms have taken those.

    positions  the first `depth`, in order; all where there are fewer
    deepen     ranks more of them
    """

    def __init__(self, positions: np.ndarray, depth: int, deepen: Deepen) -> None:
        self._positions = positions
        self._depth = depth
        self._deepen = deepen
        self._next = 0

    def first(self, free: np.ndarray) -> int | None:
        """The first free position; None where none is. free (N,) bool."""
        while True:
            while self._next < len(self._positions):
                index = int(self._positions[self._next])
                if free[index]:
                    return index
                self._next += 1
            is_whole = len(self._positions) < self._depth
            if is_whole:
                return None
            # The longer ranking begins with this one, so the place in it stays.
            self._depth *= GROWTH
            self._positions = self._deepen(self._depth)
