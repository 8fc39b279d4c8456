"""What each arm should do, said slowly and plainly in float64. Each oracle reads the ledger as it
stands.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from tailor.task import MultiClass


def probabilities(view):
    return view.probs.double().numpy()


def free_now(view):
    return [i for i in range(view.size) if view.ledger.free[i]]


# ------------------------------------------------------------------ score arms


def ranked_pick(view, score):
    """The smallest score among free examples, ties by the view's keys. score: position ->
    number.
    """
    return min(free_now(view), key=lambda i: (score(i), view.ties[i]))


def coin_entropy(p):
    return -sum(q * math.log(q) for q in (p, 1 - p) if q > 0)


def row_entropy(row, task):
    if isinstance(task, MultiClass):
        return -sum(q * math.log(q) for q in row if q > 0)
    return sum(coin_entropy(q) for q in row)


def score_of(family, view, klass=None):
    """position -> what the family ranks by, smallest first."""
    p = probabilities(view)

    def margin(i):
        first, second = sorted(p[i])[::-1][:2]
        return first - second

    def weak(i):
        labels = dict(zip(view.labelled.tolist(), view.labels))
        targets = np.array([labels.get(j, p[j]) for j in range(view.size)])
        tuned = np.asarray(view.finetune(_Tensorish(targets), 2))
        return -np.mean([coin_entropy(q) for q in tuned[i]])

    def bald(i):
        passes = [np.asarray(one)[i] for one in view.dropout()]
        mean = np.mean(passes, axis=0)
        return np.mean([row_entropy(r, view.task) for r in passes]) - row_entropy(mean, view.task)

    return {
        "uncertainty": lambda i: abs(p[i, klass] - 0.5),
        "most-likely-positive": lambda i: -p[i, klass],
        "emal": lambda i: sum(abs(q - 0.5) for q in p[i]) / p.shape[1],
        "confidence": lambda i: max(p[i]),
        "margin": margin,
        "entropy": lambda i: -row_entropy(p[i], view.task),
        "weak-supervision": weak,
        "bald": bald,
    }[family]


class _Tensorish:
    """The little of a tensor that the stand-in for a model uses."""

    def __init__(self, array):
        self.array = array

    def double(self):
        return self

    def numpy(self):
        return self.array


# ------------------------------------------------------------------ galaxy


def galaxy_line(view, klass):
    """All examples that are free, labelled or pending at the round's start, from the lowest score
    up.
    """
    p = probabilities(view)
    on_line = {*np.flatnonzero(view.free).tolist(), *view.labelled.tolist(), *view.pending.tolist()}

    def key(i):
        first = p[i, klass] - max(p[i]) if isinstance(view.task, MultiClass) else p[i, klass]
        return first, p[i, klass], view.ties[i]

    return sorted(on_line, key=key)


def own_label(view, i, klass):
    row = probabilities(view)[i]
    if isinstance(view.task, MultiClass):
        return int(max(range(len(row)), key=lambda k: (row[k], -k)) == klass)
    return int(row[klass] > 0.5)


def known_labels(view, klass, mode):
    """position -> 0 or 1, for all whose label counts as known just now."""
    known = {i: int(label[klass]) for i, label in zip(view.labelled.tolist(), view.labels)}
    if mode == "predicted":
        waiting = [*view.pending.tolist(), *view.ledger.taken.tolist()]
        known.update({i: own_label(view, i, klass) for i in waiting})
    if mode == "revealed":
        for i, label in view.ledger.revealed:
            if label is None:
                known.pop(i, None)
            else:
                known[i] = int(label[klass])
    return known


def open_pieces(line, known, free):
    """Lists of neighbouring free examples that lie in an open cut."""
    pieces = []
    labelled = [rank for rank, i in enumerate(line) if i in known]
    for low, high in itertools.pairwise(labelled):
        if known[line[low]] == known[line[high]]:
            continue
        piece = []
        for rank in range(low + 1, high + 1):
            if free[line[rank]]:
                piece.append(rank)
            elif piece:
                pieces.append(piece)
                piece = []
    return pieces


def near_closed(line, known, free):
    """(distance by rank, minus rank) of every free example from every closed cut."""
    labelled = [rank for rank, i in enumerate(line) if i in known]
    found = []
    for low, high in itertools.pairwise(labelled):
        if (
            known[line[low]] == 0
            and known[line[high]] == 1
            and not any(free[i] for i in line[low:high])
        ):
            found += [(low - r, -r) for r in range(low) if free[line[r]]]
            found += [(r - high, -r) for r in range(high + 1, len(line)) if free[line[r]]]
    return found


def galaxy_pick(view, classes, mode):
    """The next example, or None where any free one will do."""
    lines = [galaxy_line(view, k) for k in classes]
    labels = [known_labels(view, k, mode) for k in classes]
    free = view.ledger.free
    best = None  # (length, order of the class), then the pick
    for order, (line, known) in enumerate(zip(lines, labels)):
        pieces = open_pieces(line, known, free)
        if pieces:
            piece = min(pieces, key=lambda ranks: (len(ranks), -ranks[0]))
            found = (len(piece), order, line[piece[len(piece) // 2]])
            best = found if best is None else min(best, found)
    if best is None:
        for order, (line, known) in enumerate(zip(lines, labels)):
            near = near_closed(line, known, free)
            if near:
                distance, minus_rank = min(near)
                found = (distance, order, line[-minus_rank])
                best = found if best is None else min(best, found)
    return None if best is None else best[2]


# ------------------------------------------------------------------ gradient embeddings


def embeddings(view):
    """(N, K * d) built in full."""
    p = probabilities(view)
    h = view.features.double().numpy()
    rows = []
    for i in range(view.size):
        own = np.array([own_label(view, i, k) for k in range(p.shape[1])])
        rows.append(np.outer(p[i] - own, h[i]).ravel())
    return np.array(rows)


def squared_distances(points, centres):
    """(N,) to the nearest centre."""
    return np.min([((points - points[c]) ** 2).sum(1) for c in centres], axis=0)


class BadgeRace:
    """k-means++ draws as a race of exponential clocks, every clock advanced at every step."""

    def __init__(self, view, seed):
        self.view = view
        self.points = embeddings(view)
        self.left = np.random.default_rng(seed).standard_exponential(view.size)
        self.now = 0.0

    def values(self):
        """position -> what the arm takes the smallest of: minus the norm at first, then the ringing
        time.
        """
        free = free_now(self.view)
        centres = self.view.ledger.taken.tolist()
        if not centres:
            return {i: -(self.points[i] ** 2).sum() for i in free}
        rate = squared_distances(self.points, centres)
        return {i: self.now + self.left[i] / rate[i] if rate[i] > 0 else math.inf for i in free}

    def follow(self, pick):
        """Let the clocks run until the pick's rings."""
        centres = self.view.ledger.taken.tolist()
        ring = self.values()[pick]
        if centres and ring < math.inf:
            rate = squared_distances(self.points, centres)
            self.left = np.maximum(0, self.left - rate * (ring - self.now))
            self.now = ring


# ------------------------------------------------------------------ greedy arms


def cosines(view, queries):
    """(Q, N) of gradient embeddings; 0 with a vanishing one."""
    points = embeddings(view)
    lengths = np.sqrt((points**2).sum(1))
    unit = np.array([p / n if n > 0 else 0 * p for p, n in zip(points, lengths)])
    return unit[queries] @ unit.T


def mutual_information(similarity, batch, eta):
    """f(A) from its definition; a query that nothing in A resembles counts 0."""
    covered = sum(max([0.0, *(row[j] for j in batch)]) for row in similarity)
    return covered + eta * sum(max(row[j] for row in similarity) for j in batch)


def submodular_gains(view, queries, eta):
    """position -> f(A + position) - f(A), A the batch so far."""
    similarity = cosines(view, queries)
    batch = view.ledger.taken.tolist()
    start = mutual_information(similarity, batch, eta)
    return {i: mutual_information(similarity, [*batch, i], eta) - start for i in free_now(view)}


def coreset_distances(view):
    """position -> squared distance to the nearest labelled, pending or taken one; None with none of
    those.
    """
    centres = [*view.labelled.tolist(), *view.pending.tolist(), *view.ledger.taken.tolist()]
    if not centres:
        return None
    nearest = squared_distances(view.features.double().numpy(), centres)
    return {i: nearest[i] for i in free_now(view)}


# ------------------------------------------------------------------ the line graph


class NaiveLine:
    """line.Line, by walking all of it for each answer."""

    def __init__(self, ids, kind, label):
        self.ids = ids.tolist()
        self.free = dict(zip(self.ids, (kind == 0).tolist()))
        self.known = {i: int(y) for i, k, y in zip(self.ids, kind, label) if k == 2}

    def mark(self, indices, labels):
        for i, y in zip(indices.tolist(), labels.tolist()):
            if i in self.free:
                self.free[i] = False
                if y == -2:  # withdrawn
                    self.known.pop(i, None)
                elif y != -1:
                    self.known[i] = y

    def shortest_cut(self):
        pieces = open_pieces(self.ids, self.known, self.free)
        if not pieces:
            return -1, -1
        piece = min(pieces, key=lambda ranks: (len(ranks), -ranks[0]))
        return len(piece), self.ids[piece[len(piece) // 2]]

    def nearest_to_closed(self):
        """As near_closed, looking from each cut only to the nearest free example on either side."""
        below = {}
        last = None
        for rank, i in enumerate(self.ids):
            below[rank] = last
            last = rank if self.free[i] else last
        above = {}
        last = None
        for rank in range(len(self.ids) - 1, -1, -1):
            above[rank] = last
            last = rank if self.free[self.ids[rank]] else last
        labelled = [rank for rank, i in enumerate(self.ids) if i in self.known]
        found = []
        for low, high in itertools.pairwise(labelled):
            labels = self.known[self.ids[low]], self.known[self.ids[high]]
            if labels == (0, 1) and (above[low] is None or above[low] > high):
                found += [] if below[low] is None else [(low - below[low], -below[low])]
                found += [] if above[high] is None else [(above[high] - high, -above[high])]
        if not found:
            return -1, -1
        distance, minus_rank = min(found)
        return distance, self.ids[-minus_rank]
