"""ally: examples that should be hard to fit, one from each cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailor.common.checks import check_number, check_whole
from tailor.common.kmeans import kmeans
from tailor.common.unit_features import unit_features
from tailor.errors import Exhausted, InputError
from tailor.selection.pool_view import Need, PoolView
from tailor.strategies.base import Cursor, Idea, SeparateArms
from tailor.strategies.costs import STORED, OpeningWork, PoolShape
from tailor.strategies.dual_variables import PredictedDuals, dual_variables
from tailor.strategies.feature_kernel import squared_distances
from tailor.strategies.feature_sample import FeatureSample
from tailor.strategies.standard_features import StandardFeatures, in_units
from tailor.task import MultiClass

if TYPE_CHECKING:
    import torch

#: variance of a logit under the prior that holds the head's weights back
VARIANCE = 1.0


class Ally(SeparateArms):
    """ALLY: a head is fitted under the constraint that its loss is at most `eps` on every labelled
    example; how hard that is for an example is its dual variable u. u is predicted for the pool,
    and each cluster gives the example of largest u.

    u <- max(0, u + `eta` · (loss − `eps`)) while a linear head trains on the labelled examples,
    each weighted by 1 + u. Ridge regression on a Gaussian kernel of unit features (taken from the
    mean, divided by the length), with up to `references` labelled examples, predicts u elsewhere.
    The pool is clustered by k-means on unit features, into as many clusters as the arm will be
    pulled, at most `clusters`. The next pick comes from a cluster that least was taken from in this
    batch, by whichever arm, and of those the one whose best example has the largest u. With nothing
    labelled all u are equal, and each cluster gives a random example.

    Where there are more, `rows` random labelled examples are fitted and the centres of the clusters
    found from `sample` random ones; every example of the pool is then assigned and ranked. For a
    batch beyond `clusters`, clusters give more than one example: k-means with a centre for each of
    20,000 picks is out of reach.

    Elenter, NaderiAlizadeh and Ribeiro, "A Lagrangian Duality Approach to Active Learning", 2022.
    Theirs trains a network with the variables, and a second one that predicts them. Both kinds of
    task; needs features.

    eps         the loss that a labelled example may have; the mean over classes in a multi-label
                task
    eta         how far a variable moves in one step
    steps       of head and variables
    clusters    at most so many
    sample      examples that k-means is run on
    rows        labelled examples that the head is fitted to
    references  of these, whose kernel predicts u

    Formula: argmax over x of u(x) in each cluster, u(x) = ū + Σ_r b_r · exp(−|x − r|² / s²), with b
    the ridge regression of the labelled examples' dual variables and s the median distance between
    references r.

    Cost: `steps` times O(`rows` · d · (d + K)); k-means on the sample; one pass over the features
    of N × (`clusters` + `references`) distances.

    When to use: large batches with some hundred labels and good features: it asks for more like
    those that the head can't fit, spread over the pool. Wrong labels look hard, too.

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> task = MultiClass(2)
    >>> features = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [0.15], [0.9]])
    >>> labels = np.eye(2)[[0, 1, 0, 1, 1]]
    >>> view = ArrayView(task, np.full((7, 2), 0.5), features,
    ...                  labelled=[0, 1, 2, 3, 4], labels=labels)
    >>> Ally().arms(task)[0].open(view, 1, np.random.default_rng(0)).take()
    5
    """

    name = "ally"
    idea = Idea.BOTH
    needs = frozenset({Need.FEATURES})
    bytes_per_example = 24

    def __init__(
        self,
        *,
        eps: float = 0.2,
        eta: float = 0.1,
        steps: int = 50,
        clusters: int = 500,
        sample: int = 32768,
        rows: int = 4096,
        references: int = 512,
    ) -> None:
        self.eps = _check_at_least_0(eps, "eps")
        self.eta = _check_at_least_0(eta, "eta")
        self.steps = check_whole(steps, "steps")
        self.clusters = check_whole(clusters, "clusters")
        self.sample = check_whole(sample, "sample")
        self.rows = check_whole(rows, "rows")
        self.references = check_whole(references, "references")

    def cursor(
        self,
        view: PoolView,
        pulls: int,
        rng: np.random.Generator,
    ) -> Cursor:
        return AllyCursor(
            view,
            self,
            pulls,
            rng,
        )

    def fitted(
        self,
        sample: FeatureSample,
        rng: np.random.Generator,
    ) -> PredictedDuals:
        """What predicts the dual variables of a round."""
        view = sample.view
        places = rng.permutation(len(view.labelled))[: self.rows]
        positions = view.labelled[places]
        labels = view.labels[places].astype(np.float64)
        features = StandardFeatures.fit(view, sample.positions)
        variables = dual_variables(
            features.rows_at(view, positions),
            view.to_device(labels),
            features.penalties(VARIANCE),
            multi_class=isinstance(view.task, MultiClass),
            eps=self.eps,
            eta=self.eta,
            steps=self.steps,
        )
        units = sample.unit_rows(positions)
        return PredictedDuals.fit(units, variables, self.references)

    def opening_work(self, shape: PoolShape) -> OpeningWork:
        rows = min(self.rows, shape.labelled)
        sample = min(self.sample, shape.examples)
        width = shape.features
        # Curvature, logits and gradient of every step.
        of_fit = 2.0 * self.steps * rows * width * (width + 2 * shape.classes)
        # One pass of k-means at the least: how many it takes depends on the features.
        of_clusters = 2.0 * sample * self.clusters * width
        measured = self.clusters + min(self.references, rows)
        of_pass = 2.0 * shape.examples * measured * width
        bytes_read = shape.feature_bytes + STORED * (rows + sample) * width
        return OpeningWork(bytes_read=bytes_read, flops=of_fit + of_clusters + of_pass)


class AllyCursor(Cursor):
    """Fits, predicts and clusters when it is opened. A take looks at the clusters' best alone."""

    def __init__(
        self,
        view: PoolView,
        strategy: Ally,
        pulls: int,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(view)
        self.unseen()  # what is taken before is not on offer below
        free = np.flatnonzero(self.ledger.free)
        if len(free) == 0:
            return
        sample = FeatureSample(view, strategy.sample, rng)
        duals = strategy.fitted(sample, rng)
        count = min(strategy.clusters, max(1, pulls))
        sampled_clusters = kmeans(sample.rows.float(), count, rng)
        cluster_and_dual = ClusterAndDual(duals, sample.centre, sampled_clusters.centres.double())
        numbers = view.per_row(cluster_and_dual).cpu().numpy()
        #: (N,) the cluster of each example
        self.clusters = numbers[:, 0].astype(np.int32)
        #: (N,) the predicted dual variables, in units
        self.variables = numbers[:, 1].copy()
        self._sort(free, len(sampled_clusters.centres))

    def _sort(self, free: np.ndarray, count: int) -> None:
        """Lay free (F,) out by cluster, the largest variable first, and note where each of the
        `count` clusters begins.
        """
        clusters = self.clusters[free]
        # The last key counts most.
        keys = (
            self.view.ties[free],
            -self.variables[free],
            clusters,
        )
        order = np.lexsort(keys)
        self._order = free[order]
        bounds = np.searchsorted(clusters[order], np.arange(count + 1))
        self._next = bounds[:-1].copy()
        self._ends = bounds[1:]
        self._takes = np.zeros(count, np.int64)

    def take(self) -> int:
        if self.ledger.left == 0:
            raise Exhausted("every example has been taken")
        self._note_takes()
        is_open = self._next < self._ends
        open_clusters = np.flatnonzero(is_open)
        heads = self._order[self._next[open_clusters]]
        keys = (
            self.view.ties[heads],
            -self.variables[heads],
            self._takes[open_clusters],
        )
        first = np.lexsort(keys)[0]
        return int(heads[first])

    def _note_takes(self) -> None:
        """Clusters that something was taken from have a take more, and another best."""
        new_takes = self.unseen()
        clusters = self.clusters[new_takes]
        np.add.at(self._takes, clusters, 1)
        free = self.ledger.free
        for cluster in np.unique(clusters).tolist():
            place = self._next[cluster]
            while place < self._ends[cluster] and not free[self._order[place]]:
                place += 1
            self._next[cluster] = place


class ClusterAndDual:
    """A function for view.per_row: (n, 2) float64, the cluster and the dual variable of each row.

    centre   (d,) float64: what features are measured from
    centres  (c, d) float64 of the clusters
    """

    def __init__(
        self,
        duals: PredictedDuals,
        centre: torch.Tensor,
        centres: torch.Tensor,
    ) -> None:
        self._duals = duals
        self._centre = centre
        self._centres = centres

    def __call__(self, view: PoolView, part: slice) -> torch.Tensor:
        import torch

        features = view.feature_rows(part)
        rows = unit_features(features, self._centre)
        squared = squared_distances(rows, self._centres)
        # In units, so that rounding does not part copies that lie between two centres.
        nearest = in_units(squared).argmin(1)
        variables = self._duals.predict(rows)
        return torch.stack([nearest.double(), in_units(variables)], 1)


def _check_at_least_0(value: float, name: str) -> float:
    number = check_number(value, name, "a number of at least 0 is needed")
    if number < 0:
        raise InputError(f"{name} is {value}: a number of at least 0 is needed")
    return number
