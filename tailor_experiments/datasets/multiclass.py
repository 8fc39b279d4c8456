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
    """A dataset by the K-class rule.

    names        the classes before any merging, in order
    keep         K: classes 0 to K-2 are kept, the others are merged
    train, test  a pool and its classes (n,) int64, before any merging
    """
    pool, classes = train
    merged, merged_names = merge_classes(classes, names, keep)
    task = MultiClass(merged_names)
    labels = one_hot(merged, keep)
    if test is None:
        return Dataset(name, task, pool, labels)
    test_pool, test_classes = test
    merged_test, _ = merge_classes(test_classes, names, keep)
    return Dataset(
        name,
        task,
        pool,
        labels,
        test_pool,
        one_hot(merged_test, keep),
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
    train, test = open_splits(
        path,
        label=label,
        max_side=max_side,
        tests=tests,
    )
    class_names = train.names or names
    train_part = (train.pool, train.indices(class_names))
    test_part = None if test is None else (test.pool, test.indices(class_names))
    return build(name, class_names, keep, train_part, test_part)
