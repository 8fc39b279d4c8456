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
        doubled = taught + self.probs
        return doubled / 2

    def dropout(self) -> Iterable[np.ndarray]:
        """Three passes: as it is, flattened towards uniform, and with the examples' features mixed
        in.
        """
        uniform = uninformed_probability(self.task)
        yield self.probs
        doubled = self.probs + uniform
        yield doubled / 2
        first_feature = self.features[:, :1]
        odds_against = np.exp(-first_feature)
        weight = 1 / (1 + odds_against)
        of_model = weight * self.probs
        of_nothing = (1 - weight) * uniform
        yield of_model + of_nothing

    def boundary_distances(self, positions: np.ndarray, steps: int) -> np.ndarray:
        """Stands for a network: the length of the features, shorter with every step."""
        lengths = np.linalg.norm(self.features[positions], axis=1)
        return lengths / (1 + steps)


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
        features = _rounded(features, 4)
    original = _originals(size, copies, rng)
    # Copies look the same, and may have another label.
    labels = truth.astype(np.float32)
    return SimulatedPool(
        task=task,
        probs=probs[original],
        features=features[original],
        truth=labels.reshape(size, task.size),
    )


def _originals(size: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """(N,) the example that each one looks like: itself, or for this share any example."""
    luck = rng.random(size)
    copied = rng.integers(size, size=size)
    itself = np.arange(size)
    return np.where(luck < share, copied, itself)


def _rounded(numbers: np.ndarray, grid: int) -> np.ndarray:
    """To multiples of 1 / grid."""
    steps = np.round(numbers * grid)
    return steps / grid


def _multi_class(
    task: Task,
    size: int,
    grid: int | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (N, K), and labels (N, K) drawn from them."""
    # Below 1: probabilities lean to few classes, as those of a model that has learned something.
    concentration = np.full(task.size, 0.7)
    probs = rng.dirichlet(concentration, size)
    # Divided by their sum once more: rounding takes some of them further from 1 than choice() lets
    # pass.
    rows = [row / row.sum() for row in probs]
    classes = []
    for row in rows:
        drawn_class = rng.choice(task.size, p=row)
        classes.append(drawn_class)
    one_hot = np.eye(task.size)
    truth = one_hot[classes]
    if grid is None:
        return probs, truth
    counts = []
    for row in rows:
        drawn_counts = rng.multinomial(grid, row)
        counts.append(drawn_counts)
    return np.stack(counts) / grid, truth


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
        probs = _rounded(probs, grid)
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
    head: Any = None,
) -> ArrayView:
    """A view of the pool; one example at least stays free.

    labelled, pending, skipped  the shares of the pool in each state
    never                       a class that no labelled example is in
    needs                       what is handed in besides the probabilities
    dtype                       of probabilities and features
    head                        (weights (K, d), bias (K,) or None), or None where nobody knows it
    """
    size = len(pool)
    rng = np.random.default_rng((seed, 1))
    free = 1 - labelled - pending - skipped
    # In the order of the states' numbers. Rounding may take what is left below 0.
    shares = [
        max(0.0, free),
        labelled,
        pending,
        skipped,
    ]
    state = rng.choice(4, size, p=shares)
    # A view without a free example would have nothing to check.
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
    finetune = None
    if Need.FINETUNE in needs:
        finetune = pool.finetune
    dropout = None
    if Need.DROPOUT in needs:
        dropout = pool.dropout
    boundary_distances = None
    if Need.GRADIENTS in needs:
        boundary_distances = pool.boundary_distances
    return ArrayView(
        pool.task,
        pool.probs.astype(dtype),
        features,
        labelled=labelled_positions,
        labels=pool.truth[labelled_positions],
        pending=np.flatnonzero(state == PENDING),
        free=state == FREE,
        finetune=finetune,
        dropout=dropout,
        head=head,
        boundary_distances=boundary_distances,
        seed=seed,
    )
