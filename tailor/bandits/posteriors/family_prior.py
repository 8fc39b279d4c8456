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

    def __call__(
        self,
        round: int,
        contest: Contest,
        evidence: np.ndarray,
    ) -> Any:
        """evidence (M, K + R, P) -> a prior by arm and part; for Beta, a pair of these."""
        classes = np.array(contest.classes)
        families = np.array(contest.families)
        _, family = np.unique(families, return_inverse=True)
        is_dirichlet = evidence.shape[2] == 1
        if is_dirichlet:
            return self._dirichlet(evidence, classes, family)
        return self._beta(evidence, classes, family)

    def _share(self, picks: np.ndarray, family: np.ndarray) -> np.ndarray:
        """picks, family (M,) -> (M, 1): how far each arm's family has taken the uniform prior's
        place.
        """
        picks_by_family = np.bincount(family, weights=picks)
        family_picks = picks_by_family[family]
        with_prior = family_picks + self.worth
        share: np.ndarray = family_picks / with_prior
        return share[:, None]

    def _mixed(
        self,
        share: np.ndarray,
        mean: np.ndarray,
        uniform: np.ndarray | float = 1.0,
    ) -> np.ndarray:
        """share (M, 1), mean (M, C), uniform (C,) -> (M, C)."""
        from_uniform = (1 - share) * uniform
        from_family = share * self.worth * mean
        mixed: np.ndarray = from_uniform + from_family
        return mixed

    def _beta(
        self,
        evidence: np.ndarray,
        classes: np.ndarray,
        family: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """evidence (M, K, 2) -> what speaks for each class and against it, (M, K) each."""
        hits = evidence[:, :, 0]
        # Every pick adds 1 to each class, for or against it.
        picks_by_class = evidence.sum(axis=2)
        picks = picks_by_class.max(axis=1)
        share = self._share(picks, family)
        mean = _family_means(
            hits,
            picks_by_class,
            classes,
            family,
        )
        prior_for = self._mixed(share, mean)
        prior_against = self._mixed(share, 1 - mean)
        return prior_for, prior_against

    def _dirichlet(
        self,
        evidence: np.ndarray,
        classes: np.ndarray,
        family: np.ndarray,
    ) -> np.ndarray:
        """evidence (M, K + 1, 1), the rest last -> (M, K + 1)."""
        # Every pick adds 1 over all parts.
        picks_by_arm = evidence.sum(axis=(1, 2))
        share = self._share(picks_by_arm, family)
        hits = evidence[:, :, 0]
        totals = hits.sum(axis=1, keepdims=True)
        picks = np.broadcast_to(totals, hits.shape)
        mean = _family_means(
            hits,
            picks,
            classes,
            family,
        )
        parts = np.arange(hits.shape[1])
        # No part is numbered -1, so an arm that works for no class has no class of its own.
        is_own_class = classes[:, None] == parts
        mean = _summing_to_one(mean, is_own_class)
        # The uniform prior expects nothing of the rest.
        uniform = np.ones(len(parts))
        uniform[-1] = 0.0
        prior = self._mixed(share, mean, uniform)
        # A Dirichlet's parameters are above 0; only the rest may be 0.
        of_classes = prior[:, :-1]
        np.maximum(of_classes, _TINY, out=of_classes)
        return prior


def _summing_to_one(mean: np.ndarray, is_own_class: np.ndarray) -> np.ndarray:
    """mean, is_own_class (M, C) -> (M, C): an arm's own class keeps its mean, and what is left to 1
    is shared out among the others in proportion to theirs.
    """
    of_others = np.where(is_own_class, 0, mean)
    of_own_class = np.where(is_own_class, mean, 0)
    left = 1 - of_own_class.sum(axis=1, keepdims=True)
    others_total = of_others.sum(axis=1, keepdims=True)
    others_total = np.maximum(others_total, _TINY)
    scaled_others = of_others * left / others_total
    return np.where(is_own_class, mean, scaled_others)


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
        classes_of_rows = classes[rows]
        is_own_class = classes_of_rows[:, None] == parts
        mean[rows] = _means_in_family(hits[rows], picks[rows], is_own_class)
    return mean


def _means_in_family(hits: np.ndarray, picks: np.ndarray, is_own_class: np.ndarray) -> np.ndarray:
    """hits, picks, is_own_class (m, C) of one family's arms -> (m, C)."""
    # Every other class by itself, over the arms that do not work for it.
    other_hits = np.where(is_own_class, 0, hits)
    other_picks = np.where(is_own_class, 0, picks)
    hits_by_class = other_hits.sum(axis=0)
    picks_by_class = other_picks.sum(axis=0)
    other_means = _ratio(hits_by_class, picks_by_class)
    # An arm has but one own class, so those of all arms of the family are pooled.
    own_hits = np.where(is_own_class, hits, 0)
    own_picks = np.where(is_own_class, picks, 0)
    own_mean = _ratio(own_hits.sum(), own_picks.sum())
    return np.where(is_own_class, own_mean, other_means)


def _ratio(hits: np.ndarray, picks: np.ndarray) -> np.ndarray:
    divisor = np.maximum(picks, _TINY)
    shares = hits / divisor
    is_seen = picks > 0
    ratio = np.where(is_seen, shares, 0.5)
    return np.clip(ratio, _TINY, 1 - _TINY)
