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
        #: in the round that is open
        self.pulls_now: Counter[int] = Counter()
        #: arm -> (K,) how many labels of each class
        self.found: dict[int, np.ndarray] = {}

    def copy(self) -> ArmStatistics:
        twin = ArmStatistics(self._classes)
        twin.pulls = self.pulls.copy()
        twin.pulls_now = self.pulls_now.copy()
        for arm, counts in self.found.items():
            twin.found[arm] = counts.copy()
        return twin

    def new_round(self) -> None:
        self.pulls_now.clear()

    def asked(self, arm: int) -> None:
        """A pick of this arm was handed out."""
        self.pulls[arm] += 1
        self.pulls_now[arm] += 1

    def move(
        self,
        arm: int,
        to: int,
        in_this_round: bool,
    ) -> None:
        """A pick was another arm's."""
        self.pulls[arm] -= 1
        self.pulls[to] += 1
        if not in_this_round:
            return
        self.pulls_now[arm] -= 1
        self.pulls_now[to] += 1

    def count(
        self,
        arm: int,
        label: np.ndarray,
        sign: int,
    ) -> None:
        """label (K,) came (sign 1) or went (-1)."""
        if arm not in self.found:
            self.found[arm] = np.zeros(self._classes, np.int64)
        counts = self.found[arm]
        # Whole numbers, so that what came and went leaves exactly 0.
        label_counts = label.astype(np.int64)
        counts += sign * label_counts

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
        # Below 0 is no arm of the learner's: the hold-out is the same in any class list.
        if arm < 0:
            renumbered[arm] = count
            continue
        # Arms that have become one have asked for what they asked for together.
        new_arm = int(arms[arm])
        renumbered[new_arm] += count
    return renumbered
