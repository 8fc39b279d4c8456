"""Choosing the columns of a table that hold the examples and the labels, from its schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tailor.errors import InputError, UnknownName
from tailor.pools.base import shortened

#: Columns taken for labels when the user names none.
LABEL_COLUMNS = ("label", "labels")


def column_kind(schema: Any, name: str, *, strict: bool = True) -> str | None:
    """What a column of a pyarrow schema holds, by its type: "image", "vector" or "text"; None for
    anything else.

    strict  only what is an example beyond doubt: no list of whole numbers, and bytes only in a
            column called image or img
    """
    import pyarrow.types as arrow_types

    arrow_type = schema.field(name).type
    if arrow_types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    # Hugging Face writes an image as a struct of bytes and path.
    if arrow_types.is_struct(arrow_type) and arrow_type.get_field_index("bytes") >= 0:
        return "image"
    # Bytes may be anything; by its name a column says that they are pictures.
    may_be_image = not strict or name in ("image", "img")
    if may_be_image and _is_bytes(arrow_type):
        return "image"
    is_list = (
        arrow_types.is_list(arrow_type)
        or arrow_types.is_large_list(arrow_type)
        or arrow_types.is_fixed_size_list(arrow_type)
    )
    if is_list:
        if _holds_numbers(arrow_type.value_type, strict):
            return "vector"
        return None
    if arrow_types.is_string(arrow_type) or arrow_types.is_large_string(arrow_type):
        return "text"
    return None


def _is_bytes(arrow_type: Any) -> bool:
    import pyarrow.types as arrow_types

    if arrow_types.is_binary(arrow_type):
        return True
    return bool(arrow_types.is_large_binary(arrow_type))


def _holds_numbers(arrow_type: Any, strict: bool) -> bool:
    import pyarrow.types as arrow_types

    if arrow_types.is_floating(arrow_type):
        return True
    # A list of whole numbers may be tokens or indices: a vector only where the user says so.
    if strict:
        return False
    if arrow_types.is_integer(arrow_type):
        return True
    return bool(arrow_types.is_boolean(arrow_type))


def choose_column(
    schema: Any,
    column: str | None,
    key: str | None,
    label: str | None,
) -> tuple[str, str]:
    """The column of the examples and their kind: the column named, or the only one it can be.

    Raises UnknownName for a column that is not there, and InputError where the column named holds
    no examples, or where none or several could.
    """
    names = list(schema.names)
    for name in (column, key, label):
        if name is not None and name not in names:
            raise UnknownName("column", name, names)
    if column is not None:
        kind = column_kind(schema, column, strict=False)
        if kind is None:
            raise InputError(
                f"column {column!r} is of type {schema.field(column).type}: it must hold images "
                "(a struct of bytes and path), lists of numbers, or text"
            )
        return column, kind
    not_examples = (key, label, *LABEL_COLUMNS)
    kinds = _column_kinds(schema, not_examples)
    candidates = _example_columns(kinds)
    if not candidates:
        raise InputError(
            f"no column holds images, lists of floats or text among {shortened(names)}: name one "
            "(column=)"
        )
    if len(candidates) > 1:
        raise InputError(
            f"columns {', '.join(candidates)} could all hold the examples: name one of them "
            "(column=)"
        )
    chosen = candidates[0]
    return chosen, kinds[chosen]


def _column_kinds(schema: Any, left_out: Sequence[str | None]) -> dict[str, str]:
    """The kinds of the columns that are examples beyond doubt, by name."""
    kinds = {}
    # A schema may have two columns of one name.
    for name in dict.fromkeys(schema.names):
        if name in left_out:
            continue
        kind = column_kind(schema, name)
        if kind is not None:
            kinds[name] = kind
    return kinds


def _example_columns(kinds: dict[str, str]) -> list[str]:
    """The columns that may hold the examples, given the kind of each.

    Texts beside images or vectors are taken for notes on them, unless the column is called "text"
    and there are no images.
    """
    images = []
    vectors = []
    texts = []
    for name, kind in kinds.items():
        if kind == "image":
            images.append(name)
        elif kind == "vector":
            vectors.append(name)
        else:
            texts.append(name)
    candidates = images + vectors
    if "text" not in texts:
        return candidates or texts
    if not images:
        candidates.append("text")
    return candidates


def check_columns(
    schema: Any,
    path: Path,
    *,
    column: str,
    kind: str,
    key: str | None,
) -> None:
    """Raises InputError unless the schema of a further file has these columns, the examples of
    this kind.
    """
    for name in (column, key):
        if name is not None and name not in schema.names:
            listed = shortened(schema.names)
            raise InputError(f"no column {name!r} in {path}: there are {listed}")
    if column_kind(schema, column, strict=False) != kind:
        raise InputError(
            f"column {column!r} of {path} is of type {schema.field(column).type}, in the other "
            f"files {kind}"
        )


def choose_label(names: Sequence[str], label: str | None) -> str | None:
    """The column of the labels: the one named, else `label` or `labels`; None where there is
    neither.

    Raises UnknownName for a column that is not there, InputError where both are.
    """
    if label is not None:
        if label not in names:
            raise UnknownName("column", label, names)
        return label
    candidates = []
    for name in LABEL_COLUMNS:
        if name in names:
            candidates.append(name)
    if len(candidates) > 1:
        raise InputError(
            "there is a column 'label' and a column 'labels': name one of them (label=)"
        )
    if not candidates:
        return None
    return candidates[0]


def schema_class_names(schema: Any, column: str | None) -> list[str] | None:
    """The names of the classes of a label column, in order, from the metadata of a pyarrow schema:
    a Hugging Face ClassLabel, or a JSON list under `class_names`. None where there are none.
    """
    if column is None:
        return None
    metadata = schema.metadata or {}
    names = _hugging_face_names(metadata, column)
    if names is None and column in LABEL_COLUMNS:
        names = _listed_names(metadata)
    if isinstance(names, dict):  # {"0": "cat", "1": "dog"}
        indices = sorted(names, key=int)
        names = [names[index] for index in indices]
    if not isinstance(names, list):
        return None
    return [str(name) for name in names]


def _hugging_face_names(metadata: dict[bytes, bytes], column: str) -> Any:
    try:
        dataset = json.loads(metadata[b"huggingface"])
        features = dataset["info"]["features"]
        feature: Any = features[column]
        # A list of labels is written as [feature] or as {"feature": feature}.
        while True:
            if isinstance(feature, list):
                feature = feature[0]
            elif isinstance(feature, dict) and "feature" in feature:
                feature = feature["feature"]
            else:
                return feature["names"]
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def _listed_names(metadata: dict[bytes, bytes]) -> Any:
    try:
        return json.loads(metadata[b"class_names"])
    except (KeyError, ValueError):
        return None
