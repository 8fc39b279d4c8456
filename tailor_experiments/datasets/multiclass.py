"""What the multi-class loaders share: arrays or Parquet splits -> a Dataset by the K-class rule."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from tailor.pools.base import Pool
from tailor.task import MultiClass
from tailor_experiments.datasets.base import Dataset, merge_classes, one_hot
from tailor_experiments.datasets.hugging import TESTS, open_splits


def build(
    name: str,
    names: Sequence[str],
    keep: int,
    train: tuple[Pool, np.ndarray],
    test: tuple[Pool, np.ndarray] | None,
) -> Dataset:
    """train, test: a pool and its classes (n,) int64, before any merging."""
    classes, kept = merge_classes(train[1], names, keep)
    test_labels = None if test is None else one_hot(merge_classes(test[1], names, keep)[0], keep)
    labels = one_hot(classes, keep)
    return Dataset(
        name, MultiClass(kept), train[0], labels, None if test is None else test[0], test_labels
    )


def from_parquet(
    name: str,
    path: str | os.PathLike[str],
    names: Sequence[str],
    keep: int,
    *,
    label: str | None = None,
    max_side: int | None = None,
    tests: Sequence[str] = TESTS,
) -> Dataset:
    """Class names come from the files where they have them; their order is the dataset's own."""
    train, test = open_splits(path, label=label, max_side=max_side, tests=tests)
    named = train.names or names
    tested = None if test is None else (test.pool, test.indices(named))
    return build(name, named, keep, (train.pool, train.indices(named)), tested)
