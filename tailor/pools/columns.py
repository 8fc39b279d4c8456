"""Which column of a table holds the examples, and what the schema says of its classes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tailor.errors import InputError, UnknownName
from tailor.pools.base import some

#: Columns taken for labels when the user names none.
LABELS = ("label", "labels")


def column_kind(schema: Any, name: str, *, strict: bool = True) -> str | None:
    """ "image", "vector" or "text", by the type of the column in a pyarrow schema; None for
    anything else.

    strict: only what is an example beyond doubt; not a list of whole numbers, nor bytes under any
    name.
    """
    import pyarrow.types as t

    kind = schema.field(name).type
    if t.is_dictionary(kind):
        kind = kind.value_type
    if t.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        return "image"
    if (t.is_binary(kind) or t.is_large_binary(kind)) and (not strict or name in ("image", "img")):
        return "image"
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        inner = kind.value_type
        numbers = t.is_floating(inner) or (
            not strict and (t.is_integer(inner) or t.is_boolean(inner))
        )
        return "vector" if numbers else None
    return "text" if t.is_string(kind) or t.is_large_string(kind) else None


def choose_column(
    schema: Any, column: str | None, key: str | None, label: str | None
) -> tuple[str, str]:
    """The examples' column and their kind: the one named, or the only one it can be."""
    names = list(schema.names)
    for given in (column, key, label):
        if given is not None and given not in names:
            raise UnknownName("column", given, names)
    if column is not None:
        kind = column_kind(schema, column, strict=False)
        if kind is None:
            raise InputError(
                f"column {column!r} is of type {schema.field(column).type}: it must hold images "
                "(a struct of bytes and "
                "path), lists of numbers, or text"
            )
        return column, kind
    found: dict[str, list[str]] = {"image": [], "vector": [], "text": []}
    for name in dict.fromkeys(names):
        one = None if name in (key, label, *LABELS) else column_kind(schema, name)
        if one is not None:
            found[one].append(name)
    if "text" in found["text"]:
        found["text"] = ["text"]
    # Texts beside images or embeddings are taken for notes on them, unless the column is called
    # just "text".
    several = found["image"] + found["vector"]
    if found["text"] == ["text"] and not found["image"]:
        several.append("text")
    candidates = several or found["text"]
    if not candidates:
        raise InputError(
            f"no column holds images, lists of floats or text among {some(names)}: name one "
            "(column=)"
        )
    if len(candidates) > 1:
        raise InputError(
            f"columns {', '.join(candidates)} could all hold the examples: name one of them "
            "(column=)"
        )
    return candidates[0], next(kind for kind, its in found.items() if candidates[0] in its)


def choose_label(names: Sequence[str], label: str | None) -> str | None:
    """The labels' column: the one named, or `label`, or `labels`; None where there is none."""
    if label is not None:
        if label not in names:
            raise UnknownName("column", label, names)
        return label
    found = [name for name in LABELS if name in names]
    if len(found) > 1:
        raise InputError(
            "there is a column 'label' and a column 'labels': name one of them (label=)"
        )
    return found[0] if found else None


def class_names(metadata: dict[bytes, bytes] | None, column: str) -> list[str] | None:
    """The classes' names from a schema's metadata: a Hugging Face ClassLabel, or a plain list
    `class_names`.
    """
    metadata = metadata or {}
    try:
        feature: Any = json.loads(metadata[b"huggingface"])["info"]["features"][column]
        while isinstance(feature, list) or (isinstance(feature, dict) and "feature" in feature):
            feature = feature[0] if isinstance(feature, list) else feature["feature"]
        names = feature["names"]
    except (KeyError, IndexError, TypeError, ValueError):
        try:
            names = json.loads(metadata[b"class_names"]) if column in LABELS else None
        except (KeyError, ValueError):
            return None
    if isinstance(names, dict):
        names = [names[k] for k in sorted(names, key=int)]
    return [str(n) for n in names] if isinstance(names, list) else None
