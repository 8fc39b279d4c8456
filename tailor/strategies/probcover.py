"""probcover: the ball around an example that holds most of what is not covered yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailor.common.checks import check_number, check_whole
from tailor.common.kmeans import kmeans
from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Cursor, Idea, SeparateArms, random_free
from tailor.strategies.costs import STORED, OpeningWork, PoolShape
from tailor.strategies.feature_kernel import (
    block_slices,
    blocks,
    pair_distances,
    squared_distances,
)
from tailor.strategies.feature_sample import FeatureSample

if TYPE_CHECKING:
    import torch

#: balls whose purity decides on the radius
BALLS = 2048
#: no radius is smaller: rounding would decide what is inside
LEAST_RADIUS = 1e-5
#: Squared distances in single precision that differ by less from the squared radius are measured
#: again in double precision.
SLACK = 1e-4


class Probcover(SeparateArms):
    """ProbCover: greedily cover the pool by balls of one radius around the picks.

    A ball holds what is nearer to its centre than the radius, in unit features (taken from the
    mean, divided by the length). The next pick is the free example whose ball holds most examples
    that no ball around a labelled, pending or taken one holds, whichever arm took it. The radius is
    the largest at which a share `purity` of the balls hold one cluster only, by k-means with as
    many clusters as classes.

    In a large pool all of this is about a random sample of what is free, from which picks come too,
    and purity is that of 2,048 random balls. When all of the sample is covered, picks are random.

    Yehuda et al., "Active Learning Through a Covering Lens", 2022. Both kinds of task; needs
    features.

    purity  the share of balls that hold one cluster only
    sample  examples that are to be covered

    Formula: the x of largest |{y : |x − y| < δ, |y − c| ≥ δ for all centres c}|.

    Cost: `sample` × (`sample` + labelled) distances, `sample`² bits of memory; then a few rows of
    bits a pick.

    When to use: the first few labels, with features that keep classes apart.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> features = np.array([[0.0, 1.0], [0.0, 2.0], [3.0, 0.1], [3.0, 0.0], [3.0, -0.1]])
    >>> view = ArrayView(task, np.full((5, 2), 0.5), features, labelled=[0], labels=[[1, 0]])
    >>> Probcover().arms(task)[0].open(view, 1, np.random.default_rng(0)).take() in (2, 3, 4)
    True
    """

    name = "probcover"
    idea = Idea.REPRESENTATIVE
    needs = frozenset({Need.FEATURES})
    bytes_per_example = 8

    def __init__(self, *, purity: float = 0.95, sample: int = 16384) -> None:
        self.purity = check_number(purity, "purity", "a number in [0, 1] is needed")
        if not 0 <= self.purity <= 1:
            raise InputError(f"purity is {purity}: a number in [0, 1] is needed")
        self.sample = check_whole(sample, "sample")

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        return ProbcoverCursor(view, self, rng)

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        sample = min(self.sample, shape.examples)
        measured = sample + shape.labelled
        return OpeningWork(
            bytes_read=STORED * measured * shape.features,
            # A multiplication and an addition for each feature of each pair.
            flops=2.0 * sample * measured * shape.features,
        )


class ProbcoverCursor(Cursor):
    """Keeps who is in whose ball as bits, and for each example how many of its ball are not covered
    yet.
    """

    def __init__(
        self,
        view: PoolView,
        strategy: Probcover,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(view)
        self._rng = rng
        if self.ledger.left == 0:
            return
        sample = FeatureSample(view, strategy.sample, rng)
        positions = sample.positions
        self.sample = sample
        self._ties = view.ties[positions]
        self._is_free = self.ledger.free[positions]
        self._is_covered = np.zeros(len(positions), bool)
        rough_rows = sample.rows.float()
        self._rough_rows = rough_rows
        clusters = kmeans(rough_rows, view.task.size, rng)
        #: (s,) the cluster of each example of the sample
        self.numbers = clusters.numbers
        self.radius = pure_radius(sample.rows, clusters.numbers, strategy.purity)
        self._measure_balls()
        self.unseen()  # all that is taken is among these
        self._cover_by(sample.covering)

    def _measure_balls(self) -> None:
        """Find who is in whose ball, when nothing is covered yet."""
        rows = self.sample.rows
        size = len(rows)
        bytes_a_ball = (size + 7) // 8
        # (s, s) bits, symmetric; and (s,) how many in each ball are not covered.
        balls = np.empty((size, bytes_a_ball), np.uint8)
        counts = np.empty(size, np.int64)
        for part in block_slices(size):
            centres = rows[part]
            inside = self._inside(centres)
            counts[part] = inside.sum(1)
            # A bit and not a byte for each pair: with a large sample these are most of the memory.
            balls[part] = np.packbits(inside, axis=1)
        self._balls = balls
        self._counts = counts

    def take(self) -> int:
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        new_takes = self.unseen()
        self._cover_by(new_takes)
        counts = np.where(self._is_free, self._counts, 0)
        largest = counts.max()
        if largest == 0:
            return random_free(self.ledger.free, self.view.free_ids, self._rng)
        winners = np.flatnonzero(counts == largest)
        ties = self._ties[winners]
        winner = winners[ties.argmin()]
        position = self.sample.positions[winner]
        return int(position)

    def _cover_by(self, positions: np.ndarray) -> None:
        """Balls around positions (n,) cover what is in them."""
        places = self.sample.find(positions)
        is_sampled = places >= 0
        sampled = places[is_sampled]
        self._is_free[sampled] = False
        for place in sampled.tolist():
            members = self._members(place)
            self._cover(members)
        others = positions[~is_sampled]
        for block in blocks(others):
            # No ball is kept around what is not in the sample: it is needed only once.
            centres = self.sample.unit_rows(block)
            inside = self._inside(centres)
            inside_any = np.logical_or.reduce(inside)
            self._cover(inside_any)

    def _cover(self, inside: np.ndarray) -> None:
        """What is inside (s,) bool is covered: balls that hold it have less to cover."""
        is_new = inside & ~self._is_covered
        newly_covered = np.flatnonzero(is_new)
        self._is_covered[newly_covered] = True
        for place in newly_covered.tolist():
            # Balls are symmetric: those that hold this example are those that its own ball holds.
            holders = self._members(place)
            self._counts -= holders

    def _members(self, place: int) -> np.ndarray:
        """(s,) bool: what is in the ball of an example of the sample."""
        bits = np.unpackbits(self._balls[place], count=len(self._counts))
        return bits.view(bool)

    def _inside(self, centres: torch.Tensor) -> np.ndarray:
        """(n, s) bool: what of the sample is in the balls of unit rows (n, d)."""
        squared_radius = self.radius**2
        rough_centres = centres.float()
        squared = squared_distances(rough_centres, self._rough_rows)
        inside = squared < squared_radius
        # Single precision cannot tell on which side of the radius these lie.
        rows, columns = _pairs_near(squared, squared_radius)
        exact = pair_distances(
            centres,
            self.sample.rows,
            rows,
            columns,
        )
        inside[rows, columns] = exact < squared_radius
        on_host: np.ndarray = inside.cpu().numpy()
        return on_host

    def bytes_held(self) -> int:
        if self.ledger.left == 0:
            return 0
        return self._balls.nbytes


def pure_radius(rows: torch.Tensor, numbers: torch.Tensor, purity: float) -> float:
    """The largest radius at which a share `purity` of balls hold one cluster only; 2, which holds
    everything, where there is one cluster only.

    rows     (s, d) unit features, in random order: the balls of the first 2,048 count
    numbers  (s,) the cluster of each
    """
    import torch

    ball_count = min(BALLS, len(rows))
    nearest = []
    for part in block_slices(ball_count):
        centres = rows[part]
        squared = squared_distances(centres, rows)
        own_clusters = numbers[part]
        is_same = own_clusters[:, None] == numbers
        squared.masked_fill_(is_same, torch.inf)
        # A ball is pure up to the distance of the nearest example of another cluster.
        limits = squared.amin(1)
        nearest.append(limits)
    distances = torch.cat(nearest).sqrt()
    ascending = np.sort(distances.cpu().numpy())
    # The product of a share such as 1 - 0.9 can lie just below a whole number.
    impure = int((1 - purity) * ball_count + 1e-9)
    last = ball_count - 1
    place = min(impure, last)
    radius = np.clip(ascending[place], LEAST_RADIUS, 2.0)
    return float(radius)


def _pairs_near(squared: torch.Tensor, squared_radius: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(rows, columns) of squared distances that differ from the squared radius by less than
    SLACK.
    """
    gaps = (squared - squared_radius).abs()
    is_near = gaps < SLACK
    rows, columns = is_near.nonzero(as_tuple=True)
    return rows, columns
