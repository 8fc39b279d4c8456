"""What direct should do, said slowly and plainly: the whole line is gone through for each pick."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from oracles import free_now, probabilities

from tailor.selection.pool_view import tie_keys
from tailor.task import MultiClass


def scores_of(view, klass):
    """position -> the class's score."""
    p = probabilities(view)
    if not isinstance(view.task, MultiClass):
        return {i: p[i, klass] for i in range(view.size)}
    others = [k for k in range(p.shape[1]) if k != klass]
    return {i: p[i, klass] - max(p[i, others]) for i in range(view.size)}


def labels_by_level(view, klass):
    """[(score, the labels of all labelled examples that have it)], highest first."""
    scores = scores_of(view, klass)
    levels = {}
    for i, label in zip(view.labelled.tolist(), view.labels, strict=True):
        levels.setdefault(scores[i], []).append(int(label[klass]))
    return sorted(levels.items(), reverse=True)


def lowest_score(view):
    return -1.0 if isinstance(view.task, MultiClass) else 0.0


def share(labels, wanted, everything):
    """How many of all the labels that are `wanted` are among some of them; 0 of none."""
    count = everything.count(wanted)
    return Fraction(labels.count(wanted), count) if count else Fraction(0)


def oracle_cut(view, klass):
    """The score of the cut."""
    levels = labels_by_level(view, klass)
    everything = [label for _, labels in levels for label in labels]
    ends = [1.0, *(score for score, _ in levels), lowest_score(view)]
    best = None
    for number, (high, low) in enumerate(pairwise(ends)):
        above = [label for _, labels in levels[:number] for label in labels]
        gain = share(above, 1, everything) - share(above, 0, everything)
        if best is None or gain > best[0]:
            best = (gain, (high + low) / 2)
    return best[1]


def in_doubt(view, klass):
    """(score of the first trailing negative, score of the last leading positive)"""
    levels = labels_by_level(view, klass)
    top = 1.0
    for score, labels in levels:
        if 0 in labels:
            break
        top = score
    bottom = lowest_score(view)
    for score, labels in reversed(levels):
        if 1 in labels:
            break
        bottom = score
    return bottom, top


class DirectWalk:
    """One arm from its first pull to its last."""

    def __init__(self, view, klass, spread, seed):
        self.view = view
        self.klass = klass
        self.spread = spread
        self.rng = np.random.default_rng(seed)
        self.sides = ["above", "below"]

    def pick(self):
        scores = scores_of(self.view, self.klass)
        cut = oracle_cut(self.view, self.klass)
        ties = self.view.ties
        free = free_now(self.view)
        if self.spread > 0 and self.rng.random() < self.spread:
            bottom, top = in_doubt(self.view, self.klass)
            doubtful = [i for i in free if bottom <= scores[i] <= top]
            if doubtful:
                class_hash = tie_keys(1, 0, self.klass)[0]
                return min(doubtful, key=lambda i: ties[i] ^ class_hash)
            sides = ["above", "below"]
        else:
            sides = list(self.sides)
            self.sides.reverse()
        for side in sides:
            there = [i for i in free if (scores[i] >= cut) == (side == "above")]
            if there:
                # On one side the nearest by rank is the nearest by score.
                return min(there, key=lambda i: (abs(scores[i] - cut), ties[i]))
        raise AssertionError("nothing is free")
