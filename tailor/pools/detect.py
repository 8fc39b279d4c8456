"""Finding out which kind of pool opens what a user gives."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.pools.addresses import is_address
from tailor.pools.image_decoding import IMAGE_SUFFIXES

#: The kind of pool for a file, by the end of its name.
KIND_BY_SUFFIX = {
    ".parquet": "parquet",
    ".npy": "arrays",
    ".npz": "arrays",
    ".csv": "text",
    ".tsv": "text",
    ".jsonl": "text",
    ".ndjson": "text",
}


def find_kind(source: Any) -> str:
    """The name, in the registry, of the pool that opens this source.

    Raises InputError where none does; the message says what could be opened.
    """
    if isinstance(source, str) and is_address(source):
        return "remote"
    if isinstance(source, (str, os.PathLike)):
        return _kind_of_path(Path(source))
    if isinstance(source, np.ndarray):
        return "arrays"
    # A Hugging Face Dataset, DatasetDict or stream; the pool itself refuses those it can't take.
    if hasattr(source, "column_names"):
        return "huggingface"
    if _are_paths(source):
        paths = [Path(path) for path in source]
        return _kind_of_paths(paths)
    if _is_dataset(source):
        return "torch"
    raise InputError(
        f"can't open a {type(source).__name__} as a pool: its source is a path, a numpy array, "
        "a torch Dataset (with items by index) or a datasets.Dataset"
    )


def _is_dataset(source: Any) -> bool:
    """Whether it may be a map-style Dataset: told by its methods, as torch is slow to import."""
    # Lists and pandas objects have these methods too, and are no datasets.
    if isinstance(source, (Sequence, set)):
        return False
    if hasattr(source, "iloc"):
        return False
    has_items = hasattr(source, "__getitem__")
    return has_items and hasattr(source, "__len__")


def _are_paths(source: Any) -> bool:
    if not isinstance(source, Sequence) or not source:
        return False
    return all(isinstance(item, (str, os.PathLike)) for item in source)


def _kind_of_paths(paths: Sequence[Path]) -> str:
    kinds = {_kind_of_path(path) for path in paths}
    if kinds == {"parquet"}:
        return "parquet"
    listed = ", ".join(sorted(kinds))
    raise InputError(f"several paths at once must all be Parquet, these are {listed}")


def _kind_of_path(path: Path) -> str:
    if path.is_dir():
        return _kind_of_folder(path)
    if not path.exists():
        raise InputError(f"nothing at {path}{_nearby_names(path)}")
    suffix = path.suffix.lower()
    if suffix in KIND_BY_SUFFIX:
        return KIND_BY_SUFFIX[suffix]
    if suffix in IMAGE_SUFFIXES:
        raise InputError(
            f"{path} is one image: give the folder that holds them, {path.absolute().parent}"
        )
    raise InputError(
        f"{path.name} ends in {suffix!r}: known are {', '.join(KIND_BY_SUFFIX)}, or a folder of "
        "images"
    )


def _nearby_names(path: Path) -> str:
    """The end of the message about a missing path: names beside it that look alike."""
    folder = path.absolute().parent
    neighbours: list[str] = []
    # The folder may be missing too.
    if folder.is_dir():
        neighbours = sorted(neighbour.name for neighbour in folder.iterdir())
    similar = difflib.get_close_matches(
        path.name,
        neighbours,
        n=3,
        cutoff=0.5,
    )
    if not similar:
        return ": give an existing file or folder"
    suggestions = " or ".join(map(repr, similar))
    return f"; did you mean {suggestions}?"


def _kind_of_folder(folder: Path) -> str:
    """By the first image or Parquet file met; the search stops there, as a folder may hold
    millions.
    """
    other_files = 0
    visited: set[str] = set()
    for current, subfolders, files in os.walk(folder, followlinks=True):
        real_path = os.path.realpath(current)
        if real_path in visited:  # a link that leads back up
            subfolders.clear()
            continue
        visited.add(real_path)
        subfolders[:] = _visible(subfolders)
        suffixes = set()
        for name in _visible(files):
            _, suffix = os.path.splitext(name)
            suffixes.add(suffix.lower())
        if ".parquet" in suffixes:
            return "parquet"
        if suffixes & IMAGE_SUFFIXES:
            return "image-folder"
        other_files += len(files)
    content = "is empty: there is not"
    if other_files:
        content = f"holds {other_files} files, none of them"
    image_suffixes = ", ".join(sorted(IMAGE_SUFFIXES))
    raise InputError(f"{folder} {content} an image ({image_suffixes}) or a .parquet file")


def _visible(names: Sequence[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith("."))
