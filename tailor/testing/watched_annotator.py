"""An annotator who notices when a label is wanted too early."""

from __future__ import annotations

import numpy as np

from tailor.testing.arm_pulls import require


class WatchedAnnotator:
    """Knows all labels, and raises AssertionError if one is wanted that was not asked for.

    truth  (N, K)
    asked  positions that were asked for
    """

    def __init__(self, truth: np.ndarray) -> None:
        self._truth = truth
        self.asked = set[int]()

    def answer(self, positions: np.ndarray) -> np.ndarray:
        """(n, K) the labels of positions (n,)."""
        early = []
        for index in positions.tolist():
            if index not in self.asked:
                early.append(index)
        require(not early, f"the label of example {early[:1]} was read before it was asked")
        return self._truth[positions]
