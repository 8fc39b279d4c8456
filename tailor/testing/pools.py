"""Small made-up pools and the views of them, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailor.selection.pool_view import Need, PoolView
from tailor.task import MultiClass, Task

EVERYTHING = frozenset(Need)


@dataclass(frozen=True)
class Pool:
    """A pool whose true labels are known to the test, never to the arms."""

    task: Task
    probs: np.ndarray  # (N, K)
    features: np.ndarray  # (N, d)
    truth: np.ndarray  # (N, K) float32 of 0 and 1

    def __len__(self) -> int:
        return len(self.probs)

    def finetune(self, targets: Any, epochs: int) -> Any:
        """Stands for a model: half of what it is taught, half of what it said before."""
        return (targets.double().numpy() + self.probs) / 2

    def dropout(self) -> Iterable[np.ndarray]:
        """Three passes: as it is, flattened towards uniform, and with the examples' features mixed
        in.
        """
        flat = 1 / self.task.size if isinstance(self.task, MultiClass) else 0.5
        yield self.probs
        yield (self.probs + flat) / 2
        weight = 1 / (1 + np.exp(-self.features[:, :1]))
        yield weight * self.probs + (1 - weight) * flat


def make_pool(
    task: Task, size: int, seed: int, *, grid: int | None = None, copies: float = 0.0, dims: int = 3
) -> Pool:
    """`size` examples with `dims` features.

    grid    probabilities are multiples of 1/grid (many ties; exact sums for a power of two); None:
            any number
    copies  the share of examples that are exact copies of another one
    """
    rng = np.random.default_rng(seed)
    if isinstance(task, MultiClass):
        probs = rng.dirichlet(np.full(task.size, 0.7), size)
        truth: Any = np.eye(task.size)[[rng.choice(task.size, p=row / row.sum()) for row in probs]]
        if grid is not None:
            probs = np.stack([rng.multinomial(grid, row / row.sum()) for row in probs]) / grid
    else:
        probs = rng.random((size, task.size))
        truth = rng.random(probs.shape) < probs
        if grid is not None:
            probs = np.round(probs * grid) / grid
    features = rng.normal(size=(size, dims))
    if grid is not None:
        features = np.round(features * 4) / 4
    copy = rng.random(size) < copies
    original = np.where(copy, rng.integers(size, size=size), np.arange(size))
    return Pool(
        task, probs[original], features[original], truth.astype(np.float32).reshape(size, task.size)
    )


def make_view(
    pool: Pool,
    seed: int,
    *,
    labelled: float = 0.3,
    pending: float = 0.0,
    skipped: float = 0.0,
    never: int | None = None,
    needs: frozenset[Need] = EVERYTHING,
    dtype: Any = np.float64,
) -> PoolView:
    """A view of the pool; one example at least stays free.

    labelled, pending, skipped  the shares of the pool in each state
    never                       a class that no labelled example is in
    needs                       what is handed in besides the probabilities
    """
    rng = np.random.default_rng((seed, 1))
    state = rng.choice(
        4, len(pool), p=[max(0.0, 1 - labelled - pending - skipped), labelled, pending, skipped]
    )
    state[rng.integers(len(pool))] = 0
    if never is not None:
        state[(state == 1) & (pool.truth[:, never] == 1)] = 0
    known = np.flatnonzero(state == 1)
    return PoolView(
        pool.task,
        pool.probs.astype(dtype),
        pool.features.astype(dtype) if Need.FEATURES in needs else None,
        labelled=known,
        labels=pool.truth[known],
        pending=np.flatnonzero(state == 2),
        free=state == 0,
        finetune=pool.finetune if Need.FINETUNE in needs else None,
        dropout=pool.dropout if Need.DROPOUT in needs else None,
        seed=seed,
    )
