"""Running totals of what the arms were asked for and what they found, so that nobody has to count
again.
"""

from __future__ import annotations

from collections import Counter

import numpy as np


class ArmStatistics:
    """By arm, numbered as in an "asked" event."""

    def __init__(self, classes: int) -> None:
        self._classes = classes
        self.pulls: Counter[int] = Counter()
        self.pulls_now: Counter[int] = Counter()  # in the round that is open
        self.found: dict[int, np.ndarray] = {}  # (K,) labels

    def copy(self) -> ArmStatistics:
        twin = ArmStatistics(self._classes)
        twin.pulls, twin.pulls_now = self.pulls.copy(), self.pulls_now.copy()
        twin.found = {arm: counts.copy() for arm, counts in self.found.items()}
        return twin

    def new_round(self) -> None:
        self.pulls_now.clear()

    def asked(self, arm: int) -> None:
        self.pulls[arm] += 1
        self.pulls_now[arm] += 1

    def move(self, arm: int, to: int, in_this_round: bool) -> None:
        """A pick was another arm's."""
        self.pulls[arm] -= 1
        self.pulls[to] += 1
        if in_this_round:
            self.pulls_now[arm] -= 1
            self.pulls_now[to] += 1

    def count(self, arm: int, label: np.ndarray, times: int) -> None:
        """label (K,) came (times = 1) or went (times = -1)."""
        found = self.found.setdefault(arm, np.zeros(self._classes, np.int64))
        found += times * label.astype(np.int64)
