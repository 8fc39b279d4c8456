"""base, deepfool, bait, lookahead and committee as they are defined, said slowly in float64."""

from __future__ import annotations

import math

import numpy as np
from oracles import probabilities, row_entropy

from tailor.task import MultiClass


def features(view):
    return view.features.double().numpy()


def with_bias(view):
    """(N, e) features, a 1 appended unless the head has no bias."""
    rows = features(view)
    if view.head is not None and view.head.bias is None:
        return rows
    return np.append(rows, np.ones((len(rows), 1)), axis=1)


def covering(view):
    """L: what is labelled, pending or taken."""
    return [*view.labelled.tolist(), *view.pending.tolist(), *view.ledger.taken.tolist()]


# ------------------------------------------------------------------ distances


def boundary_distance(view, i, klass):
    """d_xc: from example i to the boundary of its predicted class with another; for its own class
    the smallest of the others.
    """
    p = [max(q, np.finfo(np.float64).tiny) for q in probabilities(view)[i]]
    z = [math.log(q) for q in p]
    y = max(range(len(z)), key=lambda c: (z[c], -c))
    if klass == y:
        return min(boundary_distance(view, i, c) for c in range(len(z)) if c != y)
    length = 1.0
    if view.head is not None:
        length = math.dist(view.head.weights[y], view.head.weights[klass])
    return (z[y] - z[klass]) / length


def nearest_distance(view, i):
    return min(boundary_distance(view, i, c) for c in range(view.task.size))


# ------------------------------------------------------------------ information


def bait_weight(view, i):
    q = max(probabilities(view)[i])
    return q * (1 - q)


def bait_gains(view, candidates, ridge, balance=False):
    """w t / (1 + w s) of each candidate."""
    h = with_bias(view)
    p = probabilities(view)
    known = ridge * np.eye(h.shape[1])
    for i in covering(view):
        known += bait_weight(view, i) * np.outer(h[i], h[i])
    likeliest = p.argmax(1)
    pool = np.zeros_like(known)
    for i in range(view.size):
        share = np.mean(likeliest == likeliest[i]) if balance else 1.0
        pool += bait_weight(view, i) / share * np.outer(h[i], h[i])
    inverse = np.linalg.inv(known)
    gains = {}
    for i in candidates:
        s = h[i] @ inverse @ h[i]
        t = h[i] @ inverse @ pool @ inverse @ h[i]
        w = bait_weight(view, i)
        gains[i] = w * t / (1 + w * s)
    return gains


def bait_trace(view, ridge, chosen):
    """tr(M^-1 F) with some more examples known: what a batch should make small."""
    h = with_bias(view)
    known = ridge * np.eye(h.shape[1])
    for i in [*covering(view), *chosen]:
        known += bait_weight(view, i) * np.outer(h[i], h[i])
    pool = sum(bait_weight(view, i) * np.outer(h[i], h[i]) for i in range(view.size))
    return np.trace(np.linalg.solve(known, pool))


def lookahead_gains(view, candidates, ridge):
    """|onehot(y) - p|^2 h'M^-1 C M^-1 h / (ridge + s)^2 of each candidate."""
    h = with_bias(view)
    p = probabilities(view)
    known = ridge * np.eye(h.shape[1]) + sum(np.outer(h[i], h[i]) for i in covering(view))
    pool = sum(np.outer(row, row) for row in h)
    inverse = np.linalg.inv(known)
    gains = {}
    for i in candidates:
        if isinstance(view.task, MultiClass):
            label = np.eye(view.task.size)[p[i].argmax()]
        else:
            label = p[i] > 0.5
        s = h[i] @ inverse @ h[i]
        reach = h[i] @ inverse @ pool @ inverse @ h[i]
        gains[i] = np.sum((label - p[i]) ** 2) * reach / (ridge + s) ** 2
    return gains


# ------------------------------------------------------------------ committee


def member_probabilities(logits, task):
    if isinstance(task, MultiClass):
        powers = np.exp(logits - logits.max())
        return powers / powers.sum()
    return 1 / (1 + np.exp(-logits))


def disagreement(logits, task, measure):
    """Of one example. logits (members, K)."""
    rows = [member_probabilities(row, task) for row in logits]
    if measure == "information":
        mean = np.mean(rows, axis=0)
        return row_entropy(mean, task) - np.mean([row_entropy(row, task) for row in rows])
    votes = np.zeros(task.size)
    for row in rows:
        if isinstance(task, MultiClass):
            votes[row.argmax()] += 1 / len(rows)
        else:
            votes += (row > 0.5) / len(rows)
    if measure == "vote-entropy":
        return row_entropy(votes, task)
    if isinstance(task, MultiClass):
        return 1 - max(votes)
    return sum(min(vote, 1 - vote) for vote in votes)


def head_loss(weights, rows, labels, task, ridge):
    """What a refitted head makes smallest. weights (d + 1, K), rows (m, d), labels (m, K)."""
    logits = rows @ weights[:-1] + weights[-1]
    total = 0.5 * ridge * np.sum(weights[:-1] ** 2)
    for row, label in zip(logits, labels):
        p = member_probabilities(row, task)
        if isinstance(task, MultiClass):
            total -= math.log(p[label.argmax()])
        else:
            total -= sum(math.log(q if y else 1 - q) for q, y in zip(p, label))
    return total
