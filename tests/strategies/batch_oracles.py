"""What discriminator, ally, similar, ens and dual should do, said slowly and plainly in float64."""

from __future__ import annotations

import math

import numpy as np
from oracles import embeddings, free_now, probabilities
from scipy.optimize import minimize

from tailor.task import MultiClass


def features_of(view):
    return view.features.double().numpy()


def standard_rows(view, sample):
    """(N, d + 1): features with the sample's mean 0 and variance 1, and a 1."""
    h = features_of(view)
    mean = h[sample].mean(0)
    deviation = h[sample].std(0)
    is_constant = deviation <= 1e-7 * np.abs(mean)
    scale = np.where(is_constant, 0, 1 / np.where(is_constant, 1, deviation))
    return np.concatenate([(h - mean) * scale, np.ones((len(h), 1))], 1)


# ------------------------------------------------------------------ discriminator


def discriminator_logits(view, rows, variance=1.0):
    """(N,): above 0 for what looks labelled, when everything is fitted to that is labelled or
    free.
    """
    labelled = [*view.labelled.tolist(), *view.pending.tolist(), *view.ledger.taken.tolist()]
    unlabelled = free_now(view)
    smaller = min(len(labelled), len(unlabelled))
    x = rows[labelled + unlabelled]
    signs = np.array([1.0] * len(labelled) + [-1.0] * len(unlabelled))
    weight = [smaller / len(labelled)] * len(labelled) + [smaller / len(unlabelled)] * len(
        unlabelled
    )
    ridge = (rows.shape[1] - 1) / variance

    def loss(w):
        values = np.logaddexp(0, -signs * (x @ w))
        slopes = -signs / (1 + np.exp(signs * (x @ w)))
        held_back = np.append(w[:-1], 0)
        total = np.dot(weight, values) + ridge / 2 * np.dot(held_back, held_back)
        return total, x.T @ (weight * slopes) + ridge * held_back

    best = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9})
    return rows @ best.x


# ------------------------------------------------------------------ ally


def ally_variables(rows, labels, multi_class, eps, eta, steps):
    """u of every labelled example, head and variables moved in turn, example by example."""
    n, width = rows.shape
    classes = labels.shape[1]
    ridge = np.diag([width - 1.0] * (width - 1) + [0.0])
    head = np.zeros((width, classes))
    u = np.zeros(n)
    for _ in range(steps):
        gradient = ridge @ head
        parabola = ridge.copy()
        new_u = u.copy()
        for i in range(n):
            logits = rows[i] @ head
            if multi_class:
                p = np.exp(logits - logits.max())
                p /= p.sum()
                loss = -sum(math.log(q) for q, y in zip(p, labels[i]) if y)
                bend = 0.5
            else:
                p = 1 / (1 + np.exp(-logits))
                loss = -np.mean([math.log(q if y else 1 - q) for q, y in zip(p, labels[i])])
                bend = 0.25
            gradient += (1 + u[i]) * np.outer(rows[i], p - labels[i])
            parabola += bend * (1 + u[i]) * np.outer(rows[i], rows[i])
            new_u[i] = max(0.0, u[i] + eta * (loss - eps))
        head = head - np.linalg.solve(parabola, gradient)
        u = new_u
    return u


def ally_predictions(units, labelled, u):
    """(N,) by ridge regression of u (n,) on a Gaussian kernel with every labelled example.

    units  (N, d) unit features
    """

    def squared(i, j):
        return ((units[i] - units[j]) ** 2).sum()

    distances = [math.sqrt(squared(i, j)) for n, i in enumerate(labelled) for j in labelled[:n]]
    radius = max(0.05, np.median(distances)) if distances else 0.05

    def kernel(i, j):
        return math.exp(-squared(i, j) / radius**2)

    gram = np.array([[kernel(i, j) for j in labelled] for i in labelled])
    matrix = gram.T @ gram + gram + 1e-6 * np.eye(len(labelled))
    weights = np.linalg.solve(matrix, gram.T @ (u - u.mean()))
    to_pool = np.array([[kernel(i, j) for j in labelled] for i in range(len(units))])
    return to_pool @ weights + u.mean()


def ally_best(view, clusters, taken, u):
    """(least takes of a cluster with a free example, the largest u in such clusters)"""
    free = free_now(view)
    takes = {clusters[i]: 0 for i in free}
    for i in taken:
        if clusters[i] in takes:
            takes[clusters[i]] += 1
    least = min(takes.values())
    return least, takes, max(u[i] for i in free if takes[clusters[i]] == least)


# ------------------------------------------------------------------ similar


def shifted(view, rows, others):
    """(r, o): cosines of embeddings, as (c + 1) / 2."""

    def units(points):
        lengths = np.sqrt((points**2).sum(1))
        return np.array([p / n if n > 0 else 0 * p for p, n in zip(points, lengths)])

    return (units(rows) @ units(others).T + 1) / 2


def label_embeddings(view, places):
    """Of labelled examples, by their true labels."""
    p = probabilities(view)
    h = features_of(view)
    return np.array(
        [
            np.outer(p[view.labelled[place]] - view.labels[place], h[view.labelled[place]]).ravel()
            for place in places
        ]
    )


def targeted_value(to_queries, to_held_out, held_out_queries, batch, eta, strength):
    """f(A) from its definition.

    to_queries        (N, Q)
    to_held_out       (N, P), P may be 0
    held_out_queries  (Q, P)
    """
    first = 0.0
    for q in range(to_queries.shape[1]):
        near = max([to_queries[j, q] for j in batch], default=0.0)
        away = strength * max(held_out_queries[q], default=0.0)
        first += max(0.0, near - away)
    second = 0.0
    for j in batch:
        away = strength * max(to_held_out[j], default=0.0)
        second += max(0.0, max(to_queries[j]) - away)
    return first + eta * second


def targeted_gains(view, queries, held_out, eta, strength):
    """position -> f(A + position) - f(A). queries and held_out: embeddings."""
    pool = embeddings(view)
    to_queries = shifted(view, pool, queries)
    if len(held_out):
        to_held_out = shifted(view, pool, held_out)
        held_out_queries = shifted(view, queries, held_out)
    else:
        to_held_out = np.zeros((len(pool), 0))
        held_out_queries = np.zeros((len(queries), 0))
    tables = (to_queries, to_held_out, held_out_queries)
    batch = view.ledger.taken.tolist()
    start = targeted_value(*tables, batch, eta, strength)
    return {i: targeted_value(*tables, [*batch, i], eta, strength) - start for i in free_now(view)}


# ------------------------------------------------------------------ ens


def ens_scores(view, graph, klass, left, prior):
    """position -> p + the expected sum of the left - 1 largest probabilities of the others, from
    the definition. graph: position -> positions of its neighbours.
    """
    answers = {i: int(label[klass]) for i, label in zip(view.labelled.tolist(), view.labels)}
    for i in [*view.pending.tolist(), *view.ledger.taken.tolist()]:
        answers[i] = 0

    def probability(i, told):
        known = [told[j] for j in graph[i] if j in told]
        return (prior + sum(known)) / (1 + len(known))

    free = [i for i in free_now(view) if i in graph]
    scores = {}
    for x in free:
        p = probability(x, answers)
        score = p
        for y, chance in ((1, p), (0, 1 - p)):
            told = {**answers, x: y}
            others = sorted((probability(i, told) for i in free if i != x), reverse=True)
            score += chance * sum(others[: left - 1])
        scores[x] = score
    return scores


# ------------------------------------------------------------------ dual


def doubt(view, i):
    row = probabilities(view)[i]
    if isinstance(view.task, MultiClass):
        return 1 - max(row)
    return np.mean([min(q, 1 - q) for q in row])


def dual_scores(view, references, quantile, share=None):
    """position -> share * doubt + (1 - share) * density * doubt."""
    h = features_of(view)
    centre = h[references].mean(0)

    def unit(i):
        length = np.linalg.norm(h[i] - centre)
        if length <= 1e-12 * np.linalg.norm(centre):
            return 0 * centre
        return (h[i] - centre) / length

    def squared(i, j):
        return ((unit(i) - unit(j)) ** 2).sum()

    pairs = [squared(i, j) for n, i in enumerate(references) for j in references[:n]]
    radius = max(0.05, np.quantile(np.sqrt(pairs), quantile)) if pairs else 0.05
    usual = np.mean([math.exp(-s / radius**2) for s in pairs]) if pairs else 1.0
    if share is None:
        free = view.free_ids.tolist()
        classes = view.task.size
        nothing = 1 - 1 / classes if isinstance(view.task, MultiClass) else 0.5
        error = np.mean([doubt(view, i) for i in free])
        share = 1 - error / nothing * classes / (classes + len(view.labelled))
    scores = {}
    for i in free_now(view):
        density = np.mean([math.exp(-squared(i, r) / radius**2) for r in references]) / usual
        u = doubt(view, i)
        scores[i] = share * u + (1 - share) * density * u
    return scores
