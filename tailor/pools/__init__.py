"""Pools: where examples come from. `open_pool` opens any of them; `registry` lists their kinds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tailor.common.checks import check_text
from tailor.errors import InputError
from tailor.pools.base import (
    Pool,
    Unreadable,
    check_positions,
    check_unique,
    without_none,
)
from tailor.pools.detect import KIND_BY_SUFFIX, find_kind
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


def open_pool(
    source: Any,
    *,
    kind: str | None = None,
    column: str | None = None,
    key: str | None = None,
    label: str | None = None,
    labels: Any = None,
    label_separator: str | None = None,
    ids: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    array: str | None = None,
    split: str | None = None,
    order: Sequence[tuple[str, int]] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
    max_side: int | None = None,
    threads: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_bytes: int | None = None,
    storage: Mapping[str, Any] | None = None,
    **plugin_options: Any,
) -> Pool:
    """Open a source of examples.

    source  a path or several Parquet paths; an address such as s3://bucket/folder; a numpy array; a
            torch Dataset; a Hugging Face Dataset; what `Pool.describe` gave; or a Pool, which is
            returned as it is
    kind    the name of the pool in `registry`, where it should not be found out from the source

    The other options go to that pool. None leaves an option at the pool's own default.

    | option | pools that take it | meaning |
    |---|---|---|
    | column | parquet, text, huggingface, remote | the column of the examples |
    | key | parquet, text, huggingface, remote | the column of the ids |
    | label | parquet, text, huggingface, remote | the column of the labels |
    | labels | image-folder, remote | "folder": the first folder of a path is the class |
    | labels | arrays | labels (N,) or (N, K), a .npy file, or a name in the .npz |
    | label_separator | text, remote | the text between labels in one cell |
    | ids | arrays, torch | (N,) the ids |
    | classes | torch | names for labels that are numbers |
    | array | arrays | the name of the examples' array in an .npz |
    | split | parquet | "train", "test", ... or "all" |
    | order | parquet, remote | (name, rows) of the files of an earlier time |
    | delimiter | text, remote | the character between the cells of a CSV |
    | encoding | text, remote | of a text file; by default utf-8 |
    | format | text | "csv" or "jsonl" |
    | max_side | image-folder, parquet, huggingface, remote | pixels to shrink images to |
    | threads | image-folder, parquet, huggingface | images decoded at once |
    | cache | remote | the folder for local copies |
    | cache_bytes | parquet, remote | bytes kept in memory; bytes of local copies |
    | storage | remote | options for fsspec, such as endpoint_url |
    | plugin_options | pools of other packages | whatever they take besides |

    Raises InputError where the source can't be opened, and UnknownName (an InputError that lists
    the right names) for an option that this kind of pool does not take.

    >>> import numpy as np
    >>> pool = open_pool(np.eye(3))
    >>> len(pool), pool.kind, pool.ids[2]
    (3, 'vector', '2')
    """
    if kind is not None:
        check_text(kind, "kind")
    named_options = {
        "column": column,
        "key": key,
        "label": label,
        "labels": labels,
        "label_separator": label_separator,
        "ids": ids,
        "classes": classes,
        "array": array,
        "split": split,
        "order": order,
        "delimiter": delimiter,
        "encoding": encoding,
        "format": format,
        "max_side": max_side,
        "threads": threads,
        "cache": cache,
        "cache_bytes": cache_bytes,
        "storage": storage,
    }
    options = without_none(named_options)
    options.update(plugin_options)
    if isinstance(source, Pool):
        if options:
            raise InputError(
                f"{type(source).__name__} is open already: option {min(options)!r} can't be set "
                "any more"
            )
        return source
    # A DatasetDict of Hugging Face is a Mapping too.
    if isinstance(source, Mapping) and not hasattr(source, "column_names"):
        return _open_described(source, kind, options)
    if not kind:
        kind = find_kind(source)
    return registry.make(kind, source, **options)


def _open_described(
    description: Mapping[str, Any], kind: str | None, options: Mapping[str, Any]
) -> Pool:
    """Open what `Pool.describe` gave. Options given beside it win over those described."""
    described = dict(description)
    if "path" not in described:
        raise InputError(
            f"a pool's description needs 'path', got only {', '.join(described) or 'nothing'}"
        )
    path = described.pop("path")
    described_kind = described.pop("kind", kind)
    if described_kind is not None:
        check_text(described_kind, "kind")
    described.update(options)
    if not described_kind:
        described_kind = find_kind(path)
    return registry.make(described_kind, path, **described)


__all__ = [
    "KIND_BY_SUFFIX",
    "Pool",
    "Unreadable",
    "check_positions",
    "check_unique",
    "find_kind",
    "open_pool",
    "registry",
]
