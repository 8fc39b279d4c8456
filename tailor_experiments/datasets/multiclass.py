"""What the multi-class loaders share: arrays or Parquet splits -> a Dataset by the K-class rule."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tailor.task import MultiClass
from tailor_experiments.datasets.base import Dataset, merge_classes, one_hot
from tailor_experiments.datasets.hugging import TESTS, open_splits
from tailor_experiments.datasets.parts import Part, assemble, with_classes


def build(
    name: str,
    names: Sequence[str],
    keep: int,
    train: Part,
    test: Part | None,
) -> Dataset:
    """A dataset by the K-class rule.

    names        the classes before any merging, in order
    keep         K: classes 0 to K-2 are kept, the others are merged
    train, test  a pool and its classes (n,) int64, before any merging
    """
    train_part, merged_names = _merged(train, names, keep)
    test_part: Part | None = None
    if test is not None:
        test_part, _ = _merged(test, names, keep)
    task = MultiClass(merged_names)
    return assemble(name, task, (train_part, test_part))


def _merged(part: Part, names: Sequence[str], keep: int) -> tuple[Part, tuple[str, ...]]:
    """A part with labels (n, K) after merging, and the names of the K classes."""
    pool, classes = part
    merged, merged_names = merge_classes(classes, names, keep)
    labels = one_hot(merged, keep)
    return (pool, labels), merged_names


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
    # Both splits by the training split's names: a test split may lack a class.
    class_names = train.names or names
    train_part, test_part = with_classes(train, test, class_names)
    return build(
        name,
        class_names,
        keep,
        train_part,
        test_part,
    )
