"""Reading .mat files: numbers, texts, and arrays of structs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tailor_experiments.datasets.base import damaged, need


def read_mat(
    path: Path,
    names: tuple[str, ...],
    what: str,
    source: str,
) -> dict[str, np.ndarray]:
    """The named variables of a .mat file; a missing or damaged file, or one without them, is
    named.
    """
    from scipy.io import loadmat

    need(path, what, source)
    try:
        # Only what is asked for: other variables of the kits are large.
        variables: dict[str, Any] = loadmat(str(path), variable_names=list(names))
    except Exception as problem:  # scipy raises nearly anything on broken bytes, and on version 7.3
        raise damaged(
            path,
            problem or type(problem).__name__,
            what,
            source,
        ) from None
    for name in names:
        if name not in variables:
            problem_text = f"no variable {name!r}"
            raise damaged(
                path,
                problem_text,
                what,
                source,
            )
    return variables


def records(
    array: np.ndarray,
    fields: tuple[str, ...],
    path: Path,
    source: str,
) -> list[dict[str, Any]]:
    """An array of structs -> one dict each of the named fields, as plain text or number."""
    expected = f"structs with {', '.join(fields)}"
    # MATLAB's arrays have two axes at least.
    flat = array.reshape(-1)
    names = flat.dtype.names or ()
    for field in fields:
        if field not in names:
            raise damaged(
                path,
                f"no field {field!r}",
                expected,
                source,
            )
    try:
        return [_record(struct, fields) for struct in flat]
    except (IndexError, TypeError, ValueError) as problem:
        raise damaged(
            path,
            problem,
            expected,
            source,
        ) from None


def _record(struct: Any, fields: tuple[str, ...]) -> dict[str, Any]:
    return {field: scalar(struct[field]) for field in fields}


def scalar(value: Any) -> Any:
    """MATLAB has no plain values: what is wrapped in arrays of one comes out."""
    # A struct's field is an array that holds an array that holds the value.
    while isinstance(value, np.ndarray):
        if value.size != 1:
            if value.size == 0:
                return ""
            raise ValueError(f"{value.size} values where one belongs")
        value = value.reshape(-1)[0]
    return value.item() if isinstance(value, np.generic) else value
