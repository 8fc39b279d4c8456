"""The training and the test part of a dataset: from splits of Parquet files, or drawn from one
pool; and the Dataset of both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailor.pools.base import Pool
from tailor.task import Task
from tailor_experiments.datasets.base import Dataset, fixed_split
from tailor_experiments.datasets.files import Subset
from tailor_experiments.datasets.hugging import Split

#: a pool, and of each example its class (n,) or its labels (n, K)
Part = tuple[Pool, np.ndarray]
#: the training part, and the test part where there is one
Parts = tuple[Part, Part | None]


def with_classes(train: Split, test: Split | None, names: Sequence[str]) -> Parts:
    """Splits of a multi-class dataset: the class (n,) of each example is its place in names."""
    train_part = (train.pool, train.indices(names))
    if test is None:
        return train_part, None
    test_part = (test.pool, test.indices(names))
    return train_part, test_part


def with_subsets(train: Split, test: Split | None, names: Sequence[str]) -> Parts:
    """Splits of a multi-label dataset: labels (n, K) say which of names each example has."""
    train_part = (train.pool, train.subsets(names))
    if test is None:
        return train_part, None
    test_part = (test.pool, test.subsets(names))
    return train_part, test_part


def rows_of(part: Part, rows: np.ndarray) -> Part:
    """Some examples of a part, by their positions."""
    pool, labels = part
    return Subset(pool, rows), labels[rows]


def split_in_two(part: Part, salt: str, share: float) -> Parts:
    """A share of a part for training and the others for testing, by base.fixed_split()."""
    pool, _ = part
    in_train, in_test = fixed_split(pool.ids, salt, share)
    train = rows_of(part, in_train)
    # Of very few examples the share may be all.
    if len(in_test) == 0:
        return train, None
    return train, rows_of(part, in_test)


def assemble(name: str, task: Task, parts: Parts) -> Dataset:
    """The dataset of parts that have labels (n, K)."""
    train, test = parts
    if test is None:
        return Dataset(name, task, *train)
    return Dataset(
        name,
        task,
        *train,
        *test,
    )
