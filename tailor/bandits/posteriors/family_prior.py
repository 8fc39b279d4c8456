"""A prior that arms inherit from their family, for contests with more arms than there are pulls to
try each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tailor.bandits.base import Contest
from tailor.errors import InputError


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
        seen = (
            evidence.sum(axis=(1, 2))
            if evidence.shape[2] == 1
            else evidence.sum(axis=2).max(axis=1)
        )  # (M,) picks
        pulled = np.bincount(family, weights=seen, minlength=len(names))[family]
        share = (pulled / (pulled + self.worth))[:, None]
        if evidence.shape[2] == 1:
            return self._dirichlet(evidence[:, :, 0], classes, family, share, contest.task.size)
        mean = _means(evidence[:, :, 0], evidence.sum(axis=2), classes, family)
        return tuple((1 - share) + share * self.worth * part for part in (mean, 1 - mean))

    def _dirichlet(
        self,
        found: np.ndarray,
        classes: np.ndarray,
        family: np.ndarray,
        share: np.ndarray,
        size: int,
    ) -> np.ndarray:
        mean = _means(
            found, np.broadcast_to(found.sum(axis=1, keepdims=True), found.shape), classes, family
        )
        own = np.zeros_like(mean, bool)
        own[np.flatnonzero(classes >= 0), classes[classes >= 0]] = True
        others = np.where(
            own, 0, mean
        )  # what is left after the own class is shared out as the others were found
        left = 1 - np.where(own, mean, 0).sum(axis=1, keepdims=True)
        mean = np.where(
            own, mean, others * left / np.maximum(others.sum(axis=1, keepdims=True), _TINY)
        )
        uniform = np.append(np.ones(size), 0.0)
        prior: np.ndarray = (1 - share) * uniform + share * self.worth * mean
        prior[:, :size] = np.maximum(prior[:, :size], _TINY)
        return prior


_TINY = 1e-9


def _means(
    found: np.ndarray, seen: np.ndarray, classes: np.ndarray, family: np.ndarray
) -> np.ndarray:
    """(M, C): the family's mean on each arm's own class, and on every other class over the arms for
    which it is one.

    A part that a family knows nothing of gets 1/2.
    """
    mean = np.empty(found.shape)
    parts = np.arange(found.shape[1])
    for one in np.unique(family):
        rows = np.flatnonzero(family == one)
        own = classes[rows][:, None] == parts
        other = _ratio(
            np.where(own, 0, found[rows]).sum(axis=0), np.where(own, 0, seen[rows]).sum(axis=0)
        )
        mine = _ratio(np.where(own, found[rows], 0).sum(), np.where(own, seen[rows], 0).sum())
        mean[rows] = np.where(own, mine, other)
    return mean


def _ratio(found: np.ndarray, seen: np.ndarray) -> np.ndarray:
    return np.clip(np.where(seen > 0, found / np.maximum(seen, _TINY), 0.5), _TINY, 1 - _TINY)
