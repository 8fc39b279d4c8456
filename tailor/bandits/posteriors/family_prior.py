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
            picks = evidence.sum(axis=(1, 2))
        else:
            picks = evidence.sum(axis=2).max(axis=1)
        family_picks = np.bincount(family, weights=picks, minlength=len(names))[family]
        share = (family_picks / (family_picks + self.worth))[:, None]
        if is_dirichlet:
            return self._dirichlet(evidence[:, :, 0], classes, family, share)
        mean = _family_means(evidence[:, :, 0], evidence.sum(axis=2), classes, family)
        return self._mixed(share, mean), self._mixed(share, 1 - mean)

    def _mixed(self, share: np.ndarray, mean: np.ndarray) -> np.ndarray:
        mixed: np.ndarray = (1 - share) + share * self.worth * mean
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
        picks = np.broadcast_to(hits.sum(axis=1, keepdims=True), hits.shape)
        mean = _family_means(hits, picks, classes, family)
        is_own = np.zeros_like(mean, bool)
        is_own[np.flatnonzero(classes >= 0), classes[classes >= 0]] = True
        # What is left after the own class is shared out as the others were found.
        others = np.where(is_own, 0, mean)
        left = 1 - np.where(is_own, mean, 0).sum(axis=1, keepdims=True)
        others_total = np.maximum(others.sum(axis=1, keepdims=True), _TINY)
        mean = np.where(is_own, mean, others * left / others_total)
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
        is_own = classes[rows][:, None] == parts
        other_hits = np.where(is_own, 0, hits[rows]).sum(axis=0)
        other_picks = np.where(is_own, 0, picks[rows]).sum(axis=0)
        own_hits = np.where(is_own, hits[rows], 0).sum()
        own_picks = np.where(is_own, picks[rows], 0).sum()
        own_mean = _ratio(own_hits, own_picks)
        mean[rows] = np.where(is_own, own_mean, _ratio(other_hits, other_picks))
    return mean


def _ratio(hits: np.ndarray, picks: np.ndarray) -> np.ndarray:
    ratio = np.where(picks > 0, hits / np.maximum(picks, _TINY), 0.5)
    return np.clip(ratio, _TINY, 1 - _TINY)
