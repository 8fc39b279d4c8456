"""Reading .mat files: numbers, texts, and arrays of structs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tailor_experiments.datasets.base import damaged, need


def read_mat(path: Path, names: tuple[str, ...], what: str, where: str) -> dict[str, np.ndarray]:
    """The named variables of a .mat file; a missing or damaged file, or one without them, is
    named.
    """
    from scipy.io import loadmat

    need(path, what, where)
    try:
        variables: dict[str, Any] = loadmat(str(path), variable_names=list(names))
    except Exception as problem:  # scipy raises nearly anything on broken bytes, and on version 7.3
        raise damaged(
            path,
            problem or type(problem).__name__,
            what,
            where,
        ) from None
    missing = [name for name in names if name not in variables]
    if missing:
        raise damaged(path, f"no variable {missing[0]!r}", what, where)
    return variables


def records(
    array: np.ndarray, fields: tuple[str, ...], path: Path, where: str
) -> list[dict[str, Any]]:
    """An array of structs -> one dict each of the named fields, as plain text or number."""
    flat = array.reshape(-1)
    missing = [field for field in fields if field not in (flat.dtype.names or ())]
    if missing:
        raise damaged(
            path,
            f"no field {missing[0]!r}",
            f"structs with {', '.join(fields)}",
            where,
        )
    try:
        return [{field: scalar(struct[field]) for field in fields} for struct in flat]
    except (IndexError, TypeError, ValueError) as problem:
        raise damaged(
            path,
            problem,
            f"structs with {', '.join(fields)}",
            where,
        ) from None


def scalar(value: Any) -> Any:
    """MATLAB has no plain values: what is wrapped in arrays of one comes out."""
    while isinstance(value, np.ndarray):
        if value.size != 1:
            if value.size == 0:
                return ""
            raise ValueError(f"{value.size} values where one belongs")
        value = value.reshape(-1)[0]
    return value.item() if isinstance(value, np.generic) else value
