"""Datasets as Parquet in the Hugging Face layout: images as bytes, classes named in the schema."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools import open_pool
from tailor.pools.base import Pool

#: Splits that can serve as the test set, the best first.
TESTS = (
    "test",
    "validation",
    "valid",
    "val",
)


@dataclass(frozen=True)
class Split:
    """One split of a dataset.

    answers  a class name, or a list of them, in the order of the pool; None where there is none
    names    the classes in order, where the files name them
    """

    pool: Pool
    answers: list[Any]
    names: list[str] | None

    def indices(self, names: Sequence[str]) -> np.ndarray:
        """(n,) int64 the class of each by its place in names; an example without one is an
        error.
        """
        places = _places(self, names)
        indices = np.empty(len(self.answers), np.int64)
        for row, answer in enumerate(self.answers):
            indices[row] = _place(places, answer, row)
        return indices

    def subsets(self, names: Sequence[str]) -> np.ndarray:
        """(n, K) uint8: which of names each example has."""
        places = _places(self, names)
        labels = np.zeros((len(self.answers), len(names)), np.uint8)
        for row, answer in enumerate(self.answers):
            if answer is None:
                continue
            classes = [answer] if isinstance(answer, str) else answer
            for name in classes:
                column = _place(places, name, row)
                labels[row, column] = 1
        return labels


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """A Parquet file, or a folder that holds some, itself or in a folder of its own (no deeper:
    ImageNet is large).
    """
    root = Path(path)
    if root.is_file():
        return root.suffix == ".parquet"
    # The first file that is seen decides: no folder is listed to its end.
    for pattern in ("*.parquet", "*/*.parquet"):
        for _ in root.glob(pattern):
            return True
    return False


def open_split(
    path: str | os.PathLike[str],
    split: str | None,
    *,
    label: str | None = None,
    max_side: int | None = None,
) -> Split:
    """One split of a folder ("train", "test", "all"; None: whatever is there), opened through
    `open_pool`.
    """
    # What is not asked for is left to open_pool's own defaults.
    options: dict[str, Any] = {}
    if label is not None:
        options["label"] = label
    if split is not None:
        options["split"] = split
    if max_side is not None:
        options["max_side"] = max_side
    pool: Any = open_pool(path, kind="parquet", **options)
    known_labels = pool.labels()
    if known_labels is None:
        raise InputError(
            f"the Parquet files in {path} have no column 'label' or 'labels': name it (label=)"
        )
    answers = [known_labels.get(example_id) for example_id in pool.ids]
    return Split(pool, answers, pool.class_names())


def open_splits(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    max_side: int | None = None,
    tests: Sequence[str] = TESTS,
) -> tuple[Split, Split | None]:
    """The training split, and the first test split there is."""
    open_named = partial(
        open_split,
        path,
        label=label,
        max_side=max_side,
    )
    if Path(path).is_file():
        return open_named(None), None
    names = splits(path)
    if names and "train" not in names:
        listed = ", ".join(sorted(names))
        raise InputError(f"no split 'train' in {path}: there are {listed}")
    # Files in no split at all are the training split.
    train_name = "train" if names else None
    train = open_named(train_name)
    for name in tests:
        if name in names:
            return train, open_named(name)
    return train, None


def splits(path: str | os.PathLike[str]) -> set[str]:
    """The splits of a folder, by how its files or their folders begin."""
    root = Path(path)
    names: set[str] = set()
    for file in root.rglob("*.parquet"):
        for part in file.relative_to(root).parts:
            for name in ("train", *TESTS):
                if _begins_with(part.lower(), name):
                    names.add(name)
    return names


def _begins_with(part: str, split: str) -> bool:
    """As a word of its own: "training" is no split called "train"."""
    if not part.startswith(split):
        return False
    next_character = part.removeprefix(split)[:1]
    return not next_character.isalpha()


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The columns of the first file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    root = Path(path)
    # The first by name: all files of a dataset have the same columns.
    file = root if root.is_file() else min(root.rglob("*.parquet"))
    try:
        return list(pq.read_schema(file).names)
    except (OSError, pa.ArrowException) as problem:
        raise InputError(
            f"damaged file {file} ({problem}): it is no whole Parquet file; write or get it again"
        ) from None


def _places(split: Split, names: Sequence[str]) -> dict[str, int]:
    """Both ways a class may be stored: by name, and where the schema has no names by number."""
    if split.names is not None:
        if len(split.names) != len(names):
            raise InputError(
                f"the Parquet files name {len(split.names)} classes, expected {len(names)}"
            )
        return {name: k for k, name in enumerate(split.names)}
    by_number = {str(k): k for k in range(len(names))}
    by_name = {name: k for k, name in enumerate(names)}
    # A class that is called "3" is that class, whatever its number.
    return by_number | by_name


def _place(places: dict[str, int], answer: Any, row: int) -> int:
    if not isinstance(answer, str) or answer not in places:
        raise InputError(
            f"label {answer!r} in row {row} of the Parquet files is none of the {len(places)} "
            "classes"
        )
    return places[answer]
