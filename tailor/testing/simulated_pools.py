"""Small made-up pools, with the predictions of a model that doesn't exist, and views of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailor.models.uninformed import uninformed_probability
from tailor.selection.array_view import ArrayView
from tailor.selection.pool_view import Need
from tailor.task import MultiClass, Task

EVERYTHING = frozenset(Need)

# States of an example in a view.
FREE = 0
LABELLED = 1
PENDING = 2
SKIPPED = 3


@dataclass(frozen=True)
class SimulatedPool:
    """A pool whose true labels are known to the test, never to the arms."""

    task: Task
    probs: np.ndarray  # (N, K)
    features: np.ndarray  # (N, d)
    truth: np.ndarray  # (N, K) float32 of 0 and 1

    def __len__(self) -> int:
        return len(self.probs)

    def finetune(self, targets: Any, epochs: int) -> Any:
        """Stands for a model: half of what it is taught, half of what it said before."""
        taught = targets.double().numpy()
        return (taught + self.probs) / 2

    def dropout(self) -> Iterable[np.ndarray]:
        """Three passes: as it is, flattened towards uniform, and with the examples' features mixed
        in.
        """
        uniform = uninformed_probability(self.task)
        yield self.probs
        yield (self.probs + uniform) / 2
        first_feature = self.features[:, :1]
        weight = 1 / (1 + np.exp(-first_feature))
        yield weight * self.probs + (1 - weight) * uniform


def make_pool(
    task: Task,
    size: int,
    seed: int,
    *,
    grid: int | None = None,
    copies: float = 0.0,
    dims: int = 3,
) -> SimulatedPool:
    """A pool of `size` examples with `dims` features.

    grid    probabilities are multiples of 1/grid (many ties; exact sums for a power of two); None:
            any number
    copies  the share of examples that are exact copies of another one
    """
    rng = np.random.default_rng(seed)
    if isinstance(task, MultiClass):
        probs, truth = _multi_class(task, size, grid, rng)
    else:
        probs, truth = _multi_label(task, size, grid, rng)
    features = rng.normal(size=(size, dims))
    if grid is not None:
        features = np.round(features * 4) / 4
    is_copy = rng.random(size) < copies
    copied = rng.integers(size, size=size)
    itself = np.arange(size)
    original = np.where(is_copy, copied, itself)
    # Copies look the same, and may have another label.
    labels = truth.astype(np.float32).reshape(size, task.size)
    return SimulatedPool(
        task,
        probs[original],
        features[original],
        labels,
    )


def _multi_class(
    task: Task,
    size: int,
    grid: int | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (N, K), and labels (N, K) drawn from them."""
    concentration = np.full(task.size, 0.7)
    probs = rng.dirichlet(concentration, size)
    # Divided by their sum once more: rounding takes some of them further from 1 than choice() lets
    # pass.
    rows = [row / row.sum() for row in probs]
    classes = [rng.choice(task.size, p=row) for row in rows]
    one_hot = np.eye(task.size)
    truth = one_hot[classes]
    if grid is not None:
        counts = [rng.multinomial(grid, row) for row in rows]
        probs = np.stack(counts) / grid
    return probs, truth


def _multi_label(
    task: Task,
    size: int,
    grid: int | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (N, K), and labels (N, K) drawn from them."""
    probs = rng.random((size, task.size))
    truth = rng.random(probs.shape) < probs
    if grid is not None:
        probs = np.round(probs * grid) / grid
    return probs, truth


def make_view(
    pool: SimulatedPool,
    seed: int,
    *,
    labelled: float = 0.3,
    pending: float = 0.0,
    skipped: float = 0.0,
    never: int | None = None,
    needs: frozenset[Need] = EVERYTHING,
    dtype: Any = np.float64,
) -> ArrayView:
    """A view of the pool; one example at least stays free.

    labelled, pending, skipped  the shares of the pool in each state
    never                       a class that no labelled example is in
    needs                       what is handed in besides the probabilities
    dtype                       of probabilities and features
    """
    size = len(pool)
    rng = np.random.default_rng((seed, 1))
    free = max(0.0, 1 - labelled - pending - skipped)
    shares = [free, labelled, pending, skipped]  # in the order of the states' numbers
    state = rng.choice(4, size, p=shares)
    left_free = rng.integers(size)
    state[left_free] = FREE
    if never is not None:
        has_class = pool.truth[:, never] == 1
        is_labelled = state == LABELLED
        state[is_labelled & has_class] = FREE
    labelled_positions = np.flatnonzero(state == LABELLED)
    features = None
    if Need.FEATURES in needs:
        features = pool.features.astype(dtype)
    return ArrayView(
        pool.task,
        pool.probs.astype(dtype),
        features,
        labelled=labelled_positions,
        labels=pool.truth[labelled_positions],
        pending=np.flatnonzero(state == PENDING),
        free=state == FREE,
        finetune=pool.finetune if Need.FINETUNE in needs else None,
        dropout=pool.dropout if Need.DROPOUT in needs else None,
        seed=seed,
    )
