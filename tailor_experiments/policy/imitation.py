"""What the network imitates: in many states of a pool, the best of many candidate batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailor.selection.array_view import ArrayView
from tailor.strategies.policy_inputs import INPUTS, PolicyInputs
from tailor_experiments.policy.linear_head import LinearHead
from tailor_experiments.policy.pools import LabelledPool

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
        fewest = max(4, pool.budget // 20)
        size = int(np.exp(rng.uniform(np.log(fewest), np.log(pool.budget))))
        labelled = rng.choice(len(pool.features), size, replace=False)
        if rng.random() < 0.5 and size >= 8:
            labelled = _moved_to_borders(pool, labelled)
        states.append(_state(pool, labelled, rng))
    return states


def _moved_to_borders(pool: LabelledPool, labelled: np.ndarray) -> np.ndarray:
    """Half of the labelled, and as many of which a head on those is least sure."""
    half = len(labelled) // 2
    kept = labelled[:half]
    probs = LinearHead(pool).fit(kept).predict(pool.features)
    surest = np.abs(probs - 1 / 2).min(1)
    surest[kept] = np.inf
    nearest = np.argsort(surest)[: len(labelled) - half]
    return np.concatenate([kept, nearest])


def _state(
    pool: LabelledPool,
    labelled: np.ndarray,
    rng: np.random.Generator,
) -> State:
    head = LinearHead(pool).fit(labelled)
    before = head.test_score()
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
        after = LinearHead(pool, head).fit(np.concatenate([labelled, batch]))
        inputs.append(batch_inputs)
        gains.append(after.test_score() - before)
    return State(np.stack(inputs).astype(np.float32), np.array(gains))


def _batch(
    start: PolicyInputs,
    candidates: np.ndarray,
    number: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions (b,) by a random rule, and their inputs (b, 11)."""
    inputs = start.copy()
    rule = np.zeros(len(INPUTS))
    is_by_chance = number >= BATCHES - 4
    if number < len(INPUTS):
        rule[number] = rng.choice([-1, 1])
    elif not is_by_chance:
        rule = rng.standard_normal(len(INPUTS))
    noise = rng.choice(NOISE)
    matrix = inputs.matrix.numpy()
    deviation = matrix.std(0) + 1e-9
    chance = noise * rng.standard_normal(len(candidates))
    is_free = np.ones(len(candidates), bool)
    positions = []
    rows = []
    for _ in range(min(BATCH, len(candidates))):
        # The distances, a column of the matrix, change with every take.
        worth = (matrix / deviation) @ rule + chance
        worth[~is_free] = -np.inf
        best = int(worth.argmax())
        is_free[best] = False
        positions.append(candidates[best])
        rows.append(matrix[best].copy())
        inputs.take(candidates[[best]])
    return np.array(positions), np.stack(rows)
