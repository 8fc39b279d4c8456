"""Datasets as Parquet in the Hugging Face layout: images as bytes, classes named in the schema."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools import open_pool
from tailor.pools.base import Pool

#: Splits that can serve as the test set, the best first.
TESTS = ("test", "validation", "valid", "val")


@dataclass(frozen=True)
class Split:
    """One split: its examples, what is known of each, and the classes in order."""

    pool: Pool
    answers: list[
        Any
    ]  # a class name, or a list of them, in the order of the pool; None where there is none
    names: list[str] | None

    def indices(self, names: Sequence[str]) -> np.ndarray:
        """(n,) int64 the class of each by its place in names; an example without one is an
        error.
        """
        return _indices(self, names)

    def subsets(self, names: Sequence[str]) -> np.ndarray:
        """(n, K) uint8: which of names each example has."""
        places = _places(self, names)
        labels = np.zeros((len(self.answers), len(names)), np.uint8)
        for row, answer in enumerate(self.answers):
            given = [] if answer is None else [answer] if isinstance(answer, str) else answer
            for one in given:
                labels[row, _place(places, one, row)] = 1
        return labels


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """A Parquet file, or a folder that holds some, itself or in a folder of its own (no deeper:
    ImageNet is large).
    """
    root = Path(path)
    if root.is_file():
        return root.suffix == ".parquet"
    return any(
        next(root.glob(pattern), None) is not None for pattern in ("*.parquet", "*/*.parquet")
    )


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
    options: dict[str, Any] = {"label": label, "split": split, "max_side": max_side}
    pool: Any = open_pool(
        path, kind="parquet", **{k: v for k, v in options.items() if v is not None}
    )
    known = pool.labels()
    if known is None:
        raise InputError(
            f"the Parquet files in {path} have no column 'label' or 'labels': name it (label=)"
        )
    return Split(pool, [known.get(one) for one in pool.ids], pool.class_names())


def open_splits(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    max_side: int | None = None,
    tests: Sequence[str] = TESTS,
) -> tuple[Split, Split | None]:
    """The training split, and the first test split there is."""
    if Path(path).is_file():
        return open_split(path, None, label=label, max_side=max_side), None
    found = splits(path)
    train = "train" if "train" in found else None
    if found and train is None:
        raise InputError(f"no split 'train' in {path}: there are {', '.join(sorted(found))}")
    test = next((one for one in tests if one in found), None)
    return (
        open_split(path, train, label=label, max_side=max_side),
        None if test is None else open_split(path, test, label=label, max_side=max_side),
    )


def splits(path: str | os.PathLike[str]) -> set[str]:
    """The splits of a folder, by how its files or their folders begin."""
    root = Path(path)
    parts = {
        part.lower() for file in root.rglob("*.parquet") for part in file.relative_to(root).parts
    }
    begins = {
        name: [
            p for p in parts if p.startswith(name) and not p[len(name) : len(name) + 1].isalpha()
        ]
        for name in ("train", *TESTS)
    }
    return {name for name, found in begins.items() if found}


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The columns of the first file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    root = Path(path)
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
    return {str(k): k for k in range(len(names))} | {name: k for k, name in enumerate(names)}


def _place(places: dict[str, int], answer: Any, row: int) -> int:
    if not isinstance(answer, str) or answer not in places:
        raise InputError(
            f"label {answer!r} in row {row} of the Parquet files is none of the {len(places)} "
            "classes"
        )
    return places[answer]


def _indices(split: Split, names: Sequence[str]) -> np.ndarray:
    places = _places(split, names)
    return np.array(
        [_place(places, answer, row) for row, answer in enumerate(split.answers)], dtype=np.int64
    )
