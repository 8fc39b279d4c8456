"""A selector that has learned from a round already, as measurements of a later round need it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailor.bandits import Contest, Outcomes, Selector, ThompsonSampling
from tailor.capacity.synthetic_pool import PoolSize
from tailor.strategies import Arm

#: rounds that the selector is told it will have; TAILOR does not use it
ROUNDS = 10


def experienced_selector(
    size: PoolSize,
    labels: np.ndarray,
    arms: Sequence[Arm],
    weights: np.ndarray,
    device: str,
) -> Selector:
    """TAILOR after one round in which the arms took turns.

    Sampling from the flat prior of a first round costs less than from what later rounds have
    learned, so a measurement that began without a round's answers would be too fast.

    labels   (B, K), what the examples of that round turned out to be
    weights  (K,), the reward's weight of each class
    """
    names = tuple(arm.name for arm in arms)
    families = tuple(arm.family for arm in arms)
    no_classes = (-1,) * len(arms)
    contest = Contest(
        size.task,
        names,
        families,
        no_classes,
        ROUNDS,
        size.batch,
    )
    selector = ThompsonSampling(device=device)
    selector.begin(contest)
    turns = np.arange(size.batch) % len(arms)
    outcomes = Outcomes(
        0,
        weights,
        turns,
        labels.astype(np.float32),
    )
    selector.learn(outcomes)
    return selector
