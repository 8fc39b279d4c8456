"""Features that a backbone computed before, with the labels of the examples: one .npz a split.

Experiments on them run where the pictures and the backbone are not.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tailor.errors import InputError
from tailor.pools.arrays import Arrays
from tailor.task import MultiClass, MultiLabel, Task
from tailor_experiments.datasets.base import Dataset, merge_classes, need, one_hot

WHERE = "`python benchmarks/embed.py`, which writes it"
#: how far copies of an example lie from it, in deviations of each feature
JITTER = 0.05


def load_features(
    path: str | os.PathLike[str],
    *,
    classes: int | None = None,
    long_tail: float = 1.0,
    copies: int = 1,
    junk: float = 0.0,
    development: bool = False,
) -> Dataset:
    """The pool in train.npz and the test set in test.npz of a folder.

    Each file holds `x` (N, d), as int8 with the `scale` (d,) of each feature or as floats, `y` (N,)
    class numbers or (N, K) of 0 and 1, and `classes` (K,), their names.

    classes    keep so many, all others become one, as the paper's K-class versions do
    long_tail  the pool's largest class is so many times the smallest, exponentially in between;
               the test set stays as it is
    copies     every example of the pool this often, jittered
    junk       share of the pool that is of no class at all, and can only be skipped: rows whose
               features are shuffled
    development  the test set stays shut: a random half of the pool takes its place, and the other
               half is the pool. For choosing defaults on what no table reports
    """
    folder = Path(path)
    vectors, targets, names = _read(folder / "train.npz")
    if development:
        is_pool = np.random.default_rng(1).random(len(vectors)) < 0.5
        test_vectors = vectors[~is_pool]
        test_targets = targets[~is_pool]
        vectors = vectors[is_pool]
        targets = targets[is_pool]
    else:
        test_vectors, test_targets, _ = _read(folder / "test.npz")
    if targets.ndim == 1:
        keep = classes or len(names)
        targets, kept_names = merge_classes(targets, names, keep)
        test_targets, _ = merge_classes(test_targets, names, keep)
        task: Task = MultiClass(kept_names)
        labels = one_hot(targets, keep)
        test_labels = one_hot(test_targets, keep)
    else:
        task = MultiLabel(names)
        labels = targets.astype(np.uint8)
        test_labels = test_targets.astype(np.uint8)
    rng = np.random.default_rng(0)
    if long_tail > 1:
        rows = long_tail_rows(labels, long_tail, rng)
        vectors = vectors[rows]
        labels = labels[rows]
    if copies > 1:
        vectors = _jittered(vectors, copies, rng)
        labels = np.repeat(labels, copies, axis=0)
    if junk > 0:
        vectors, labels = _with_junk(vectors, labels, junk, rng)
    return Dataset(
        folder.name,
        task,
        Arrays(vectors),
        labels,
        Arrays(test_vectors),
        test_labels,
    )


def _read(path: Path) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """(vectors (N, d) float32, targets, class names)"""
    need(path, "features and labels of a split", WHERE)
    with np.load(path) as arrays:
        vectors = arrays["x"].astype(np.float32)
        if "scale" in arrays:
            vectors *= arrays["scale"]
        return vectors, arrays["y"].astype(np.int64), [str(name) for name in arrays["classes"]]


def long_tail_rows(labels: np.ndarray, ratio: float, rng: np.random.Generator) -> np.ndarray:
    """Positions of a pool whose classes fall exponentially, in a random order of the classes.

    The largest class keeps as many examples as the median class has, and none fewer than 8.
    Raises InputError for labels (N, K) with several classes an example.
    """
    if (labels.sum(1) != 1).any():
        raise InputError("long_tail is for examples of exactly one class each")
    counts = labels.sum(0)
    largest = float(np.median(counts))
    rows = []
    for rank, klass in enumerate(rng.permutation(len(counts))):
        share = ratio ** (-rank / max(1, len(counts) - 1))
        wanted = max(8, int(largest * share))
        members = np.flatnonzero(labels[:, klass])
        rows.append(rng.permutation(members)[:wanted])
    return rng.permutation(np.concatenate(rows))


def _jittered(vectors: np.ndarray, copies: int, rng: np.random.Generator) -> np.ndarray:
    repeated = np.repeat(vectors, copies, axis=0)
    noise = rng.standard_normal(repeated.shape, np.float32)
    jittered: np.ndarray = repeated + JITTER * vectors.std(0) * noise
    return jittered


def _with_junk(
    vectors: np.ndarray,
    labels: np.ndarray,
    share: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """With so many more rows of no class that they are this share of all."""
    count = round(len(vectors) * share / (1 - share))
    originals = rng.choice(len(vectors), count)
    # Each row's own features in another order: such a vector belongs to nothing in the pool.
    junk = rng.permuted(vectors[originals], axis=1)
    no_class = np.zeros((count, labels.shape[1]), labels.dtype)
    return np.concatenate([vectors, junk]), np.concatenate([labels, no_class])
