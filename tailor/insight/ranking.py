"""How well a ranking puts first what belongs there."""

from __future__ import annotations

import numpy as np


def average_precision(is_positive: np.ndarray, scores: np.ndarray) -> float | None:
    """The mean over all positives of the precision among what scores at least as high; None where
    nothing is positive, or everything.

    Examples with the same score come together, as in scikit-learn.

    is_positive  (n,) bool
    scores       (n,) higher first
    """
    positives = int(is_positive.sum())
    if positives in (0, len(is_positive)):
        return None
    order = np.argsort(-scores, kind="stable")
    ranked_scores = scores[order]
    hits = np.cumsum(is_positive[order])
    ranks = np.arange(1, len(order) + 1)
    # Only the last of those that score the same counts: all of them are taken at once.
    differs_from_next = ranked_scores[1:] != ranked_scores[:-1]
    is_last = np.append(differs_from_next, True)
    hits = hits[is_last]
    precisions = hits / ranks[is_last]
    new_hits = np.diff(hits, prepend=0)
    of_new_hits = precisions * new_hits
    return float(of_new_hits.sum() / positives)
