"""Running totals of what the arms were asked for and what they found, so that nobody has to count
again.
"""

from __future__ import annotations

from collections import Counter

import numpy as np


class ArmStatistics:
    """By arm, numbered as in an "asked" event: below 0 stand the hold-out, a random start and
    nobody.
    """

    def __init__(self, classes: int) -> None:
        self._classes = classes
        self.pulls: Counter[int] = Counter()
        self.pulls_now: Counter[int] = Counter()  # in the round that is open
        self.found: dict[int, np.ndarray] = {}  # (K,) labels

    def copy(self) -> ArmStatistics:
        twin = ArmStatistics(self._classes)
        twin.pulls = self.pulls.copy()
        twin.pulls_now = self.pulls_now.copy()
        twin.found = {arm: counts.copy() for arm, counts in self.found.items()}
        return twin

    def new_round(self) -> None:
        self.pulls_now.clear()

    def asked(self, arm: int) -> None:
        """A pick of this arm was handed out."""
        self.pulls[arm] += 1
        self.pulls_now[arm] += 1

    def move(self, arm: int, to: int, in_this_round: bool) -> None:
        """A pick was another arm's."""
        self.pulls[arm] -= 1
        self.pulls[to] += 1
        if in_this_round:
            self.pulls_now[arm] -= 1
            self.pulls_now[to] += 1

    def count(self, arm: int, label: np.ndarray, sign: int) -> None:
        """label (K,) came (sign 1) or went (-1)."""
        counts = self.found.setdefault(arm, np.zeros(self._classes, np.int64))
        counts += sign * label.astype(np.int64)

    def reclass(self, arms: np.ndarray, classes: int) -> None:
        """The classes are others from now on. arms (M,): what each arm has become. What was found
        has to be counted again.
        """
        self._classes = classes
        self.pulls = _renumbered(self.pulls, arms)
        self.pulls_now = _renumbered(self.pulls_now, arms)
        self.found = {}


def _renumbered(pulls: Counter[int], arms: np.ndarray) -> Counter[int]:
    renumbered: Counter[int] = Counter()
    for arm, count in pulls.items():
        renumbered[int(arms[arm]) if arm >= 0 else arm] += count
    return renumbered
