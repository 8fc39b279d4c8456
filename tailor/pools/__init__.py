"""Where examples come from. `open_pool` opens what it is given; `registry` finds the kinds of pool
by name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailor.common.checks import check_text
from tailor.errors import InputError
from tailor.pools.base import Pool, Unreadable, check_positions, check_unique
from tailor.registry import Registry

registry: Registry[Pool] = Registry(
    "pool",
    "tailor.pools",
    {
        "image-folder": "tailor.pools.image_folder:ImageFolder",
        "parquet": "tailor.pools.parquet:ParquetPool",
        "arrays": "tailor.pools.arrays:Arrays",
        "text": "tailor.pools.text:TextFile",
        "torch": "tailor.pools.torch_dataset:TorchDataset",
        "huggingface": "tailor.pools.hf:HuggingFace",
        "remote": "tailor.pools.remote:RemotePool",
    },
)

#: Which pool opens a file, by how its name ends.
BY_SUFFIX = {
    ".parquet": "parquet",
    ".npy": "arrays",
    ".npz": "arrays",
    ".csv": "text",
    ".tsv": "text",
    ".jsonl": "text",
    ".ndjson": "text",
}


def open_pool(given: Any, *, kind: str | None = None, **options: Any) -> Pool:
    """The pool for what is given: a Pool, a path or address (s3://...), an array, a torch or
    Hugging Face Dataset, or what `describe` gave.

    kind names the pool where it should not be found out (see `registry`); options go to that pool.

    >>> import numpy as np
    >>> pool = open_pool(np.eye(3))
    >>> len(pool), pool.kind, pool.ids[2]
    (3, 'vector', '2')
    """
    if kind is not None:
        check_text(kind, "kind")
    if isinstance(given, Mapping) and not hasattr(given, "column_names"):
        described = dict(given)
        if "path" not in described:
            raise InputError(
                f"a pool's description needs 'path', got only {', '.join(described) or 'nothing'}"
            )
        return open_pool(described.pop("path"), **{"kind": kind} | described | options)
    if isinstance(given, Pool):
        if options:
            raise InputError(
                f"{type(given).__name__} is open already: option {min(options)!r} can't be set "
                "any more"
            )
        return given
    return registry.make(kind or find_kind(given), given, **options)


def find_kind(given: Any) -> str:
    """The name of the pool that opens this, or an error that says what could be opened."""
    if isinstance(given, str) and "://" in given:
        return "remote"
    if isinstance(given, (str, os.PathLike)):
        return _kind_of_path(Path(given))
    if isinstance(given, np.ndarray):
        return "arrays"
    if hasattr(
        given, "column_names"
    ):  # a Dataset, a DatasetDict or a stream; the pool says which it can't take
        return "huggingface"
    if (
        isinstance(given, Sequence)
        and given
        and all(isinstance(one, (str, os.PathLike)) for one in given)
    ):
        kinds = {_kind_of_path(Path(one)) for one in given}
        if kinds == {"parquet"}:
            return "parquet"
        raise InputError(
            f"several paths at once must all be Parquet, these are {', '.join(sorted(kinds))}"
        )
    by_index = hasattr(given, "__getitem__") and hasattr(given, "__len__")
    if (
        by_index and not isinstance(given, (Sequence, set)) and not hasattr(given, "iloc")
    ):  # iloc: a pandas table
        return "torch"
    raise InputError(
        f"can't open a {type(given).__name__} as a pool: give a path, a numpy array, a torch "
        "Dataset (with items by "
        "index) or a datasets.Dataset"
    )


def _kind_of_path(path: Path) -> str:
    from tailor.pools.image_folder import SUFFIXES

    if path.is_dir():
        return _kind_of_folder(path)
    suffix = path.suffix.lower()
    if not path.exists():
        import difflib

        parent = path.absolute().parent
        there = sorted(p.name for p in parent.iterdir()) if parent.is_dir() else []
        near = difflib.get_close_matches(path.name, there, n=3, cutoff=0.5)
        hint = (
            f"; did you mean {' or '.join(map(repr, near))}?"
            if near
            else ": give an existing file or folder"
        )
        raise InputError(f"nothing at {path}{hint}")
    if suffix in BY_SUFFIX:
        return BY_SUFFIX[suffix]
    if suffix in SUFFIXES:
        raise InputError(
            f"{path} is one image: give the folder that holds them, {path.absolute().parent}"
        )
    raise InputError(
        f"{path.name} ends in {suffix!r}: known are {', '.join(BY_SUFFIX)}, or a folder of images"
    )


def _kind_of_folder(folder: Path) -> str:
    """By the first image or Parquet file met, files before folders; the walk stops there."""
    from tailor.pools.image_folder import SUFFIXES

    others = 0
    seen = set()
    for here, folders, files in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(here)) in seen:  # a link that leads back
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        suffixes = {os.path.splitext(f)[1].lower() for f in files if not f.startswith(".")}
        if ".parquet" in suffixes:
            return "parquet"
        if suffixes & SUFFIXES:
            return "image-folder"
        others += len(files)
    what = f"holds {others} files, none of them" if others else "is empty: there is not"
    raise InputError(f"{folder} {what} an image ({', '.join(sorted(SUFFIXES))}) or a .parquet file")


__all__ = [
    "BY_SUFFIX",
    "Pool",
    "Unreadable",
    "check_positions",
    "check_unique",
    "find_kind",
    "open_pool",
    "registry",
]
