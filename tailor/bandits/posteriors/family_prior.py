"""A prior that arms inherit from their family, for contests with more arms than there are pulls to
try each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tailor.bandits.base import Contest
from tailor.errors import InputError

_TINY = 1e-9


class FamilyPrior:
    """An arm's prior is what its family has shown so far: on an arm's own class, and on each other
    class.

    It is worth `worth` observations and faded in as the family is pulled: a family of n
    observations has it with share n / (n + worth), and the uniform prior with the rest. A uniform
    Dirichlet over K classes weighs K observations, so that with hundreds of classes an arm's own
    few pulls hardly show; this one does not grow with K.
    """

    def __init__(self, worth: float = 20.0) -> None:
        if not worth > 0:
            raise InputError(f"worth is {worth}: it must be above 0")
        self.worth = worth

    def __call__(self, round: int, contest: Contest, evidence: np.ndarray) -> Any:
        """evidence (M, K + R, P) -> a prior by arm and part; for Beta, a pair of these."""
        classes = np.array(contest.classes)
        names, family = np.unique(np.array(contest.families), return_inverse=True)
        is_dirichlet = evidence.shape[2] == 1
        if is_dirichlet:
            # Every pick adds 1 over all parts.
            picks = evidence.sum(axis=(1, 2))
        else:
            # Every pick adds 1 to each class.
            picks = evidence.sum(axis=2).max(axis=1)
        picks_by_family = np.bincount(family, weights=picks, minlength=len(names))
        family_picks = picks_by_family[family]
        share = family_picks / (family_picks + self.worth)
        share = share[:, None]
        hits = evidence[:, :, 0]
        if is_dirichlet:
            return self._dirichlet(hits, classes, family, share)
        picks_by_class = evidence.sum(axis=2)
        mean = _family_means(hits, picks_by_class, classes, family)
        return self._mixed(share, mean), self._mixed(share, 1 - mean)

    def _mixed(self, share: np.ndarray, mean: np.ndarray) -> np.ndarray:
        uniform = 1 - share
        mixed: np.ndarray = uniform + share * self.worth * mean
        return mixed

    def _dirichlet(
        self,
        hits: np.ndarray,
        classes: np.ndarray,
        family: np.ndarray,
        share: np.ndarray,
    ) -> np.ndarray:
        """hits (M, K + 1), the rest last -> (M, K + 1)."""
        size = hits.shape[1] - 1
        totals = hits.sum(axis=1, keepdims=True)
        picks = np.broadcast_to(totals, hits.shape)
        mean = _family_means(hits, picks, classes, family)
        is_own = np.zeros_like(mean, bool)
        arms_with_class = np.flatnonzero(classes >= 0)
        is_own[arms_with_class, classes[arms_with_class]] = True
        # What is left after the own class is shared out as the others were found.
        others = np.where(is_own, 0, mean)
        own = np.where(is_own, mean, 0)
        left = 1 - own.sum(axis=1, keepdims=True)
        others_total = others.sum(axis=1, keepdims=True)
        others_total = np.maximum(others_total, _TINY)
        mean_of_others = others * left / others_total
        mean = np.where(is_own, mean, mean_of_others)
        # The uniform prior expects nothing of the rest.
        uniform = np.append(np.ones(size), 0.0)
        prior: np.ndarray = (1 - share) * uniform + share * self.worth * mean
        prior[:, :size] = np.maximum(prior[:, :size], _TINY)
        return prior


def _family_means(
    hits: np.ndarray,
    picks: np.ndarray,
    classes: np.ndarray,
    family: np.ndarray,
) -> np.ndarray:
    """(M, C): the family's mean on each arm's own class, and on every other class over the arms for
    which it is one.

    hits, picks (M, C); classes, family (M,). A part that a family knows nothing of gets 1/2.
    """
    mean = np.empty(hits.shape)
    parts = np.arange(hits.shape[1])
    for number in np.unique(family):
        rows = np.flatnonzero(family == number)
        own_classes = classes[rows]
        is_own = own_classes[:, None] == parts
        family_hits = hits[rows]
        family_picks = picks[rows]
        other_hits = np.where(is_own, 0, family_hits)
        other_picks = np.where(is_own, 0, family_picks)
        other_means = _ratio(other_hits.sum(axis=0), other_picks.sum(axis=0))
        # An arm has but one own class, so those of all arms of the family are pooled.
        own_hits = np.where(is_own, family_hits, 0)
        own_picks = np.where(is_own, family_picks, 0)
        own_mean = _ratio(own_hits.sum(), own_picks.sum())
        mean[rows] = np.where(is_own, own_mean, other_means)
    return mean


def _ratio(hits: np.ndarray, picks: np.ndarray) -> np.ndarray:
    shares = hits / np.maximum(picks, _TINY)
    ratio = np.where(picks > 0, shares, 0.5)
    return np.clip(ratio, _TINY, 1 - _TINY)
