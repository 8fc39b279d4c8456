"""The first batch of a run, chosen before there is a model to ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tailor.run.model_runner import ModelRunner
from tailor.run.state import RunState
from tailor.selection.coverage_start import coverage_start


class FirstBatch(NamedTuple):
    """What a run begins with."""

    positions: np.ndarray  # (n,) in the order in which they are asked
    coverage: np.ndarray  # those of them that were chosen to cover the pool; the others are random


def is_first_batch(run_state: RunState, model_runner: ModelRunner) -> bool:
    """Whether the next round is a start: nothing can be learned from yet, or the random part of a
    first batch was asked while the pool was still being read, and its cover is still to come.
    """
    if not model_runner.can_train(run_state):
        return True
    if run_state.settings.start == "random":
        return False
    return 0 < _asked_at_start(run_state) < run_state.settings.batch


def first_size(run_state: RunState, size: int, read: bool) -> int:
    """Picks of a round that is a start, of `size` that a round has.

    Where it cannot wait until the pool has been read, the first half of the batch is random, and
    the next start completes the cover around it.
    """
    if run_state.settings.start == "random":
        return size
    missing = run_state.settings.batch - _asked_at_start(run_state)
    if missing > 0:
        size = min(size, missing)
    if read:
        return size
    # Rounded up: a batch of one is asked at once.
    return (size + 1) // 2


def _asked_at_start(run_state: RunState) -> int:
    """Picks of the starts so far; 0 where the run has gone beyond them."""
    if not all(record.seed_round for record in run_state.rounds):
        return 0
    return sum(record.size for record in run_state.rounds)


def draw_first_batch(
    run_state: RunState,
    free: np.ndarray,
    count: int,
    rng: np.random.Generator,
    rows: Callable[[np.ndarray], np.ndarray] | None,
) -> FirstBatch:
    """`count` of free (F,) positions.

    rows  positions (n,) -> features (n, d); None where there are none, and all are random then
    """
    for_cover = 0
    if rows is not None:
        for_cover = _size_of_cover(run_state.settings.start, count)
    random = rng.choice(free, count - for_cover, replace=False)
    if rows is None or for_cover == 0:
        no_positions = random[:0]
        return FirstBatch(random, no_positions)
    table = run_state.label_table
    # What is asked already covers its surroundings, whether it is answered or not.
    around = np.concatenate([table.labelled, table.pending, random])
    remaining = np.setdiff1d(free, random)
    seed = int(rng.integers(2**62))
    covering = coverage_start(
        rows,
        remaining,
        for_cover,
        around=around,
        seed=seed,
    )
    # Mixed, so that a batch that is answered in part is a sample of both.
    both = np.concatenate([random, covering])
    positions = rng.permutation(both)
    return FirstBatch(positions, covering)


def _size_of_cover(start: str, count: int) -> int:
    """How many of `count` picks cover the pool; the others are random."""
    if start == "coverage":
        return count
    if start == "half":
        return count // 2
    return 0
