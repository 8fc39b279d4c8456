"""Pools of vectors with known labels, small enough that a linear head is fitted in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tailor.errors import InputError
from tailor.pools.base import Pool
from tailor.task import MultiClass, MultiLabel, Task
from tailor_experiments.comparison.data import digits, known_pool
from tailor_experiments.datasets.base import Dataset
from tailor_experiments.datasets.features import load_features

#: examples of a pool, and of its test set, that are used at most
MOST_EXAMPLES = 2500
MOST_TESTS = 1000
#: of a pool without a test set of its own, the share that is one
TEST_SHARE = 0.3
#: of the pools that are made up
EXAMPLES = 1200
DIMS = 16
CLASSES = 6


@dataclass(frozen=True)
class LabelledPool:
    """A pool and a test set, features standardised by the pool's mean and deviation."""

    name: str
    task: Task
    features: np.ndarray  # (N, d) float32
    labels: np.ndarray  # (N, K) float64 of 0 and 1
    test_features: np.ndarray  # (n, d) float32
    test_labels: np.ndarray  # (n, K)

    @property
    def budget(self) -> int:
        """Labels that are collected here in all: five a class, 60 at least and 300 at most."""
        wanted = 5 * self.task.size
        return int(np.clip(wanted, 60, 300))


def built_in_pools() -> list[LabelledPool]:
    """scikit-learn's digits, in both kinds of task, and clusters that are made up."""
    return [
        from_dataset(digits(classes=10), "digits"),
        from_dataset(digits(multilabel=True), "digits-multilabel"),
        skewed_clusters(np.random.default_rng(0)),
        overlapping_regions(np.random.default_rng(1)),
    ]


def read_pool(folder: Path) -> LabelledPool:
    """The pool in a folder: features as `benchmarks/embed.py` writes them (train.npz, test.npz), or
    Parquet files of vectors with labels.

    Raises InputError where the examples are no vectors.
    """
    if (folder / "train.npz").exists():
        dataset = load_features(folder)
    else:
        dataset = known_pool(str(folder))
    return from_dataset(dataset, folder.name)


def from_dataset(dataset: Dataset, name: str) -> LabelledPool:
    """A sample of the dataset, where it is large."""
    rng = np.random.default_rng(0)
    features, labels = _sample(dataset.pool, dataset.labels, MOST_EXAMPLES, rng)
    if dataset.test_pool is None or dataset.test_labels is None:
        test_size = int(TEST_SHARE * len(features))
        return _standardised(
            name,
            dataset.task,
            features[test_size:],
            labels[test_size:],
            features[:test_size],
            labels[:test_size],
        )
    test_features, test_labels = _sample(
        dataset.test_pool,
        dataset.test_labels,
        MOST_TESTS,
        rng,
    )
    return _standardised(
        name,
        dataset.task,
        features,
        labels,
        test_features,
        test_labels,
    )


def _sample(
    pool: Pool,
    labels: np.ndarray,
    most: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors (n, d) and labels (n, K) of random examples."""
    positions = rng.permutation(len(pool))[:most]
    vectors = np.asarray(pool.read(positions.tolist()))
    if vectors.dtype.kind not in "fiu" or vectors.ndim != 2:
        raise InputError(
            "the learned family is trained on vectors, these examples are none: write their "
            "features with benchmarks/embed.py and give that folder"
        )
    return vectors.astype(np.float32), labels[positions]


def _standardised(
    name: str,
    task: Task,
    features: np.ndarray,
    labels: np.ndarray,
    test_features: np.ndarray,
    test_labels: np.ndarray,
) -> LabelledPool:
    mean = features.mean(0)
    deviation = features.std(0)
    # A feature that never changes has no deviation.
    deviation[deviation == 0] = 1
    return LabelledPool(
        name,
        task,
        ((features - mean) / deviation).astype(np.float32),
        labels.astype(np.float64),
        ((test_features - mean) / deviation).astype(np.float32),
        test_labels.astype(np.float64),
    )


def skewed_clusters(rng: np.random.Generator) -> LabelledPool:
    """Each class is two Gaussian clusters, the largest class twenty times the smallest."""
    shares = np.geomspace(20, 1, CLASSES)
    shares /= shares.sum()
    classes = rng.choice(CLASSES, EXAMPLES, p=shares)
    centres = 1.5 * rng.standard_normal((CLASSES, 2, DIMS))
    cluster = rng.integers(0, 2, EXAMPLES)
    noise = rng.standard_normal((EXAMPLES, DIMS))
    labels = np.eye(CLASSES)[classes]
    return _split("skewed-clusters", MultiClass(CLASSES), centres[classes, cluster] + noise, labels)


def overlapping_regions(rng: np.random.Generator) -> LabelledPool:
    """An example has a class where it lies in that class's half-space; from one in two to one in
    twenty does.
    """
    features = rng.standard_normal((EXAMPLES, DIMS))
    directions = rng.standard_normal((DIMS, CLASSES))
    projections = features @ directions + 0.5 * rng.standard_normal((EXAMPLES, CLASSES))
    shares = np.linspace(0.5, 0.05, CLASSES)
    thresholds = [np.quantile(column, 1 - share) for column, share in zip(projections.T, shares)]
    labels = (projections > np.array(thresholds)).astype(float)
    return _split("overlapping-regions", MultiLabel(CLASSES), features, labels)


def _split(
    name: str,
    task: Task,
    features: np.ndarray,
    labels: np.ndarray,
) -> LabelledPool:
    test_size = int(TEST_SHARE * len(features))
    return _standardised(
        name,
        task,
        features[test_size:],
        labels[test_size:],
        features[:test_size],
        labels[:test_size],
    )
