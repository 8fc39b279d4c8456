"""The difficulty reward: classes that the model does not know are worth more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailor.bandits.base import Outcomes
from tailor.bandits.rewards.base import LabelSummary, Reward

#: what a round counts for the difficulty beside the one after it
FADES = 0.8


class Difficulty(Reward):
    """A class is worth what the model gets wrong of it: v_k in proportion to its difficulty, the
    hardest 1 / K.

    For balanced data, where counting labels says nothing; together with evidence="surprise" arms
    are pulled that find what the model does not know of the classes it knows least.

    Formula: v_k = d_k / (K · max_j d_j), with d_k the share of a class's labels that was news to
    the model when they were picked, recent rounds before older ones.

    Cost: next to nothing: K numbers a round.

    When to use: balanced data, with `evidence="surprise"`. It was ahead on one of ten settings.
    """

    needs_difficulty = True

    def class_weights(self, summary: LabelSummary) -> np.ndarray:
        size = summary.task.size
        difficulty = summary.difficulty
        if difficulty is None:
            # In the first rounds no class is known to be harder than another.
            equal = 1 / size
            return np.full(size, equal)
        hardest = max(difficulty.max(), 1e-9)
        divisor = hardest * size
        v: np.ndarray = difficulty / divisor
        return v


def class_difficulty(rounds: Sequence[Outcomes], size: int) -> np.ndarray:
    """(K,) in (0, 1): how much of each class's labels was news when they were picked, the latest
    rounds first of all.

    rounds  the outcomes of all rounds, the oldest first, with their predictions
    size    K

    As if each class had been seen twice before, once as news: a class that was never found is hard
    by half.
    """
    # Two made-up labels a class, one of them news: nothing is divided by 0.
    news = np.ones(size)
    seen = np.full(size, 2.0)
    for age, outcomes in enumerate(reversed(rounds)):
        fading = FADES**age
        y = np.asarray(outcomes.labels, np.float64)
        p = outcomes.probabilities()
        not_expected = 1 - p
        surprise = y * not_expected
        round_news = surprise.sum(axis=0)
        round_seen = y.sum(axis=0)
        news += fading * round_news
        seen += fading * round_seen
    share: np.ndarray = news / seen
    return share
