"""Features that a backbone computed before, with the labels of the examples: one .npz a split.

Experiments on them run where the pictures and the backbone are not.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tailor.errors import InputError
from tailor.pools.arrays import Arrays
from tailor.task import MultiClass, MultiLabel, Task
from tailor_experiments.datasets.base import Dataset, merge_classes, need, one_hot

WHERE = "`python benchmarks/embed.py`, which writes it"
#: how far copies of an example lie from it, in deviations of each feature
JITTER = 0.05
#: examples of a class that a long tail leaves, at least, where there are so many
SMALLEST_CLASS = 8


def load_features(
    path: str | os.PathLike[str],
    *,
    classes: int | None = None,
    examples: int | None = None,
    long_tail: float = 1.0,
    copies: int = 1,
    junk: float = 0.0,
    development: bool = False,
) -> Dataset:
    """The pool in train.npz and the test set in test.npz of a folder.

    Each file holds `x` (N, d), as int8 with the `scale` (d,) of each feature or as floats, `y` (N,)
    class numbers or (N, K) of 0 and 1, and `classes` (K,), their names.

    classes    keep so many, all others become one, as the paper's K-class versions do
    examples   a random sample of so many from the pool; the test set stays as it is
    long_tail  the pool's largest class is so many times the smallest, exponentially in between;
               the test set stays as it is
    copies     every example of the pool this often, jittered
    junk       share of the pool that is of no class at all, and can only be skipped: rows whose
               features are shuffled
    development  the test set stays shut: a random half of the pool takes its place, and the other
               half is the pool. For choosing defaults on what no table reports
    """
    folder = Path(path)
    train, names = _read(folder / "train.npz")
    if development:
        # The test set's file is not even opened.
        train, test = _halves(train)
    else:
        test, _ = _read(folder / "test.npz")
    if examples is not None:
        sample = _sample(len(train.vectors), examples)
        train = train.part(sample)
    task, labels = _labels(train.targets, names, classes)
    _, test_labels = _labels(test.targets, names, classes)
    vectors, labels = _changed_pool(
        train.vectors,
        labels,
        long_tail,
        copies,
        junk,
    )
    return Dataset(
        name=folder.name,
        task=task,
        pool=Arrays(vectors),
        labels=labels,
        test_pool=Arrays(test.vectors),
        test_labels=test_labels,
    )


@dataclass(frozen=True)
class _FeatureSplit:
    """One split: vectors (N, d) float32, and targets (N,) or (N, K) as its file holds them."""

    vectors: np.ndarray
    targets: np.ndarray

    def part(self, rows: np.ndarray) -> _FeatureSplit:
        """Some rows, by their positions (n,) or as (N,) bool."""
        return _FeatureSplit(self.vectors[rows], self.targets[rows])


def _changed_pool(
    vectors: np.ndarray,
    labels: np.ndarray,
    long_tail: float,
    copies: int,
    junk: float,
) -> tuple[np.ndarray, np.ndarray]:
    """The pool's vectors and labels after all that load_features() can do to them."""
    # One generator for all that follows: the order of these steps decides what each draws.
    rng = np.random.default_rng(0)
    if long_tail > 1:
        rows = long_tail_rows(labels, long_tail, rng)
        vectors = vectors[rows]
        labels = labels[rows]
    if copies > 1:
        vectors = _jittered(vectors, copies, rng)
        labels = np.repeat(labels, copies, axis=0)
    if junk > 0:
        vectors, labels = _with_junk(
            vectors,
            labels,
            junk,
            rng,
        )
    return vectors, labels


def _halves(split: _FeatureSplit) -> tuple[_FeatureSplit, _FeatureSplit]:
    """A pool and a test set, both of the same split."""
    is_pool = _random_half(len(split.vectors))
    return split.part(is_pool), split.part(~is_pool)


def _random_half(count: int) -> np.ndarray:
    """(count,) bool: the same half each time."""
    rng = np.random.default_rng(1)
    # A seed of its own: the half stays the same whatever else is drawn.
    luck = rng.random(count)
    return luck < 0.5


def _sample(count: int, examples: int) -> np.ndarray:
    """(examples,) positions of a pool of `count`, the same each time."""
    if not 1 <= examples <= count:
        raise InputError(f"examples is {examples}: take 1 to {count}, which the pool has")
    rng = np.random.default_rng(2)
    return np.sort(rng.permutation(count)[:examples])


def _labels(targets: np.ndarray, names: list[str], classes: int | None) -> tuple[Task, np.ndarray]:
    """The task, and labels (N, K) of 0 and 1, from targets as a file holds them.

    classes  as load_features() has it; a multi-label task keeps all
    """
    if targets.ndim > 1:
        return MultiLabel(names), targets.astype(np.uint8)
    # Both splits are merged in the same way, so their columns mean the same.
    keep = classes or len(names)
    merged, kept_names = merge_classes(targets, names, keep)
    return MultiClass(kept_names), one_hot(merged, keep)


def _read(path: Path) -> tuple[_FeatureSplit, list[str]]:
    """A split, and the names of the classes."""
    need(path, "features and labels of a split", WHERE)
    with np.load(path) as arrays:
        # Whatever they are stored as: models take single precision.
        vectors = arrays["x"].astype(np.float32)
        if "scale" in arrays:
            vectors *= arrays["scale"]
        targets = arrays["y"].astype(np.int64)
        names = [str(name) for name in arrays["classes"]]
    return _FeatureSplit(vectors, targets), names


def long_tail_rows(labels: np.ndarray, ratio: float, rng: np.random.Generator) -> np.ndarray:
    """Positions of a pool whose classes fall exponentially, in a random order of the classes.

    The largest class keeps as many examples as the median class has, and none fewer than 8.
    Raises InputError for labels (N, K) with several classes an example.
    """
    labels_per_example = labels.sum(1)
    if (labels_per_example != 1).any():
        raise InputError("long_tail is for examples of exactly one class each")
    sizes = _long_tail_sizes(labels.sum(0), ratio)
    order = rng.permutation(len(sizes))
    kept = []
    for size, klass in zip(sizes, order):
        members = np.flatnonzero(labels[:, klass])
        shuffled = rng.permutation(members)
        kept.append(shuffled[:size])
    rows = np.concatenate(kept)
    # Not class by class: where an example lies must not tell its class.
    return rng.permutation(rows)


def _long_tail_sizes(counts: np.ndarray, ratio: float) -> list[int]:
    """How many examples the largest class keeps, the second largest, and so on."""
    largest = float(np.median(counts))
    # A pool of one class has no last rank to divide by.
    last_rank = max(1, len(counts) - 1)
    sizes = []
    for rank in range(len(counts)):
        share = ratio ** (-rank / last_rank)
        size = int(largest * share)
        sizes.append(max(SMALLEST_CLASS, size))
    return sizes


def _jittered(vectors: np.ndarray, copies: int, rng: np.random.Generator) -> np.ndarray:
    repeated = np.repeat(vectors, copies, axis=0)
    noise = rng.standard_normal(repeated.shape, np.float32)
    # By each feature's own spread: their scales differ widely.
    scale = JITTER * vectors.std(0)
    jittered: np.ndarray = repeated + scale * noise
    return jittered


def _with_junk(
    vectors: np.ndarray,
    labels: np.ndarray,
    share: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """With so many more rows of no class that they are this share of all."""
    size, classes = labels.shape
    count = round(size * share / (1 - share))
    # A row may be the original of several.
    originals = rng.choice(size, count)
    # Each row's own features in another order: such a vector belongs to nothing in the pool.
    junk = rng.permuted(vectors[originals], axis=1)
    no_class = np.zeros((count, classes), labels.dtype)
    return (
        np.concatenate([vectors, junk]),
        np.concatenate([labels, no_class]),
    )
