"""What the network imitates: in many states of a pool, the best of many candidate batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailor.selection.array_view import ArrayView
from tailor.strategies.policy_inputs import INPUTS, PolicyInputs
from tailor_experiments.policy.pools import LabelledPool
from tailor_experiments.policy.trial_head import TrialHead

#: candidate batches of a state, and examples in each
BATCHES = 24
BATCH = 8
#: how much chance there is in a candidate batch, in deviations of its rule; the first batches go by
#: one input alone, the last by chance alone
NOISE = (0.1, 0.5, 1.0)


@dataclass(frozen=True)
class State:
    """A state of a pool: candidate batches, and what each was worth."""

    inputs: np.ndarray  # (m, b, 11) float32: each example's inputs, the batch before it taken
    gains: np.ndarray  # (m,) the test score after each batch, less the one before


def draw_states(
    pool: LabelledPool,
    count: int,
    rng: np.random.Generator,
) -> list[State]:
    """Random states of a pool: from a few labels to all of its budget, drawn at random or half of
    them near the head's borders.
    """
    states = []
    for _ in range(count):
        labelled = _draw_labelled(pool, rng)
        state = _state(pool, labelled, rng)
        states.append(state)
    return states


def _draw_labelled(pool: LabelledPool, rng: np.random.Generator) -> np.ndarray:
    """Positions (n,): of few labels as often as of many, by the logarithm of their number."""
    fewest = max(4, pool.budget // 20)
    log_size = rng.uniform(np.log(fewest), np.log(pool.budget))
    size = int(np.exp(log_size))
    labelled = rng.choice(len(pool.features), size, replace=False)
    if rng.random() < 0.5 and size >= 8:
        labelled = _moved_to_borders(pool, labelled)
    return labelled


def _moved_to_borders(pool: LabelledPool, labelled: np.ndarray) -> np.ndarray:
    """Half of the labelled, and as many of which a head on those is least sure."""
    half = len(labelled) // 2
    kept = labelled[:half]
    head = TrialHead(pool).fit(kept)
    probs = head.predict(pool.features)
    from_border = np.abs(probs - 1 / 2).min(1)
    from_border[kept] = np.inf
    by_distance = np.argsort(from_border)
    nearest = by_distance[: len(labelled) - half]
    return np.concatenate([kept, nearest])


def _state(
    pool: LabelledPool,
    labelled: np.ndarray,
    rng: np.random.Generator,
) -> State:
    """What a head on these labels sees, and what each candidate batch would bring it."""
    head = TrialHead(pool).fit(labelled)
    score_before = head.test_score()
    view = ArrayView(
        pool.task,
        head.predict(pool.features),
        pool.features,
        labelled=labelled,
        labels=pool.labels[labelled],
    )
    candidates = view.free_ids
    start = PolicyInputs(view, candidates, pool.budget, rng)
    inputs = []
    gains = []
    for number in range(BATCHES):
        batch, batch_inputs = _batch(start, candidates, number, rng)
        labelled_after = np.concatenate([labelled, batch])
        head_after = TrialHead(pool, head).fit(labelled_after)
        gain = head_after.test_score() - score_before
        inputs.append(batch_inputs)
        gains.append(gain)
    stacked_inputs = np.stack(inputs)
    return State(stacked_inputs.astype(np.float32), np.array(gains))


def _batch(
    start: PolicyInputs,
    candidates: np.ndarray,
    number: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions (b,) by a random rule, and their inputs (b, 11)."""
    inputs = start.copy()
    rule = _draw_rule(number, rng)
    noise = rng.choice(NOISE)
    matrix = inputs.matrix.numpy()
    deviation = matrix.std(0) + 1e-9
    count = len(candidates)
    chance = noise * rng.standard_normal(count)
    is_free = np.ones(count, bool)
    positions = []
    rows = []
    for _ in range(min(BATCH, count)):
        # The distances, a column of the matrix, change with every take.
        standardised = matrix / deviation
        worth = standardised @ rule + chance
        worth[~is_free] = -np.inf
        best = int(worth.argmax())
        is_free[best] = False
        positions.append(candidates[best])
        rows.append(matrix[best].copy())
        inputs.take(candidates[[best]])
    return np.array(positions), np.stack(rows)


def _draw_rule(number: int, rng: np.random.Generator) -> np.ndarray:
    """(11,) how much each input counts in the candidate batch of this number."""
    rule = np.zeros(len(INPUTS))
    is_by_chance = number >= BATCHES - 4
    if number < len(INPUTS):
        rule[number] = rng.choice([-1, 1])
    elif not is_by_chance:
        rule = rng.standard_normal(len(INPUTS))
    return rule
