"""What the families that cover the pool should do, said slowly and plainly in float64."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tailor.task import MultiClass


def unit_rows(features, sample):
    """Measured from the sample's mean, divided by the length; 0 where nothing is left."""
    features = np.asarray(features, np.float64)
    centre = features[sample].mean(0)
    rows = []
    for row in features - centre:
        length = math.sqrt((row**2).sum())
        on_centre = length <= 1e-12 * math.sqrt((centre**2).sum())
        rows.append(0 * row if on_centre else row / length)
    return np.array(rows)


def distance(a, b):
    return math.sqrt(((a - b) ** 2).sum())


def radius(view, rows, sample, quantile=0.05):
    labelled = view.labelled.tolist()
    if len(labelled) >= 2:
        nearest = [min(distance(rows[i], rows[j]) for j in labelled if j != i) for i in labelled]
        return max(0.05, np.quantile(nearest, quantile))
    if len(sample) >= 2:
        pairs = itertools.combinations(sample, 2)
        return max(0.05, np.median([distance(rows[i], rows[j]) for i, j in pairs]))
    return 0.05


def doubt(view, i):
    """As a whole multiple of 2^-20, one at least."""
    p = view.probs[i].double().cpu().numpy()
    if isinstance(view.task, MultiClass):
        second, first = np.sort(p)[-2:]
        unsure = 1 - (first - second)
    else:
        unsure = np.mean([1 - abs(2 * q - 1) for q in p])
    return max(1, round(unsure * 2**20)) / 2**20


class HerdingOracle:
    """The gain of any example as the ledger stands.

    sample      positions whose mean is the centre
    references  positions whose cover counts
    """

    def __init__(self, view, sample, references, quantile=0.05):
        self.view = view
        self.references = references
        self.rows = unit_rows(view.features.double().cpu().numpy(), sample)
        self.radius = radius(view, self.rows, sample, quantile)
        self.weights = {r: doubt(view, r) for r in references}

    def kernel(self, i, r):
        return math.exp(-(distance(self.rows[i], self.rows[r]) ** 2) / self.radius**2)

    def gains(self, positions):
        view = self.view
        covering = [*view.labelled.tolist(), *view.pending.tolist(), *view.ledger.taken.tolist()]
        covered = {r: max([0.0, *(self.kernel(c, r) for c in covering)]) for r in self.references}
        return {
            i: sum(
                self.weights[r] * max(0.0, self.kernel(i, r) - covered[r]) for r in self.references
            )
            for i in positions
        }


def typical_distance(rows, members, i, neighbours):
    """The mean distance of one member of a cluster to its nearest others."""
    distances = sorted(distance(rows[i], rows[j]) for j in members if j != i)
    nearest = distances[:neighbours]
    return sum(nearest) / len(nearest) if nearest else 0.0


def typiclust_pick(view, rows, cluster_of, neighbours):
    """(the cluster that comes next, mean distance of each of its free examples).

    rows        unit features of every example
    cluster_of  position -> cluster, of every example of the sample
    """
    covering = [*view.labelled.tolist(), *view.pending.tolist(), *view.ledger.taken.tolist()]
    members = {}
    for i, number in cluster_of.items():
        members.setdefault(number, []).append(i)
    labels = {number: sum(cluster_of.get(i) == number for i in covering) for number in members}
    with_free = [c for c in members if any(view.ledger.free[i] for i in members[c])]
    cluster = min(with_free, key=lambda c: (labels[c], -len(members[c]), c))
    return cluster, {
        i: typical_distance(rows, members[cluster], i, neighbours)
        for i in members[cluster]
        if view.ledger.free[i]
    }


def ball_counts(view, rows, sample, radius):
    """How many examples of the sample that nothing covers are in each free one's ball."""
    covering = [*view.labelled.tolist(), *view.pending.tolist(), *view.ledger.taken.tolist()]

    def inside(i, j):
        return distance(rows[i], rows[j]) < radius

    uncovered = [i for i in sample if not any(inside(c, i) for c in covering)]
    return {i: sum(inside(i, j) for j in uncovered) for i in sample if view.ledger.free[i]}


def pure_share(rows, sample, cluster_of, radius):
    """The share of balls that hold one cluster only."""
    pure = 0
    for i in sample:
        ball = [j for j in sample if distance(rows[i], rows[j]) < radius]
        pure += all(cluster_of[j] == cluster_of[i] for j in ball)
    return pure / len(sample)
