"""Checks of single arguments. Each gives back the value in its plain form, or an InputError that
names it.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping, Set
from typing import Any, TypeVar

import numpy as np

from tailor.errors import InputError

T = TypeVar("T")

#: seeds go into NumPy's SeedSequence and into eight bytes of a hash
LARGEST_SEED = 2**63 - 1


def check_whole(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """A whole number, NumPy's too, but no bool."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(
            f"{name} is {shown(value)}: a whole number from {least} is needed"
        ) from None
    if most is not None and not least <= number <= most:
        raise InputError(f"{name} is {number}: it must lie in [{least}, {most}]")
    if number < least:
        raise InputError(f"{name} is {number}: at least {least} is needed")
    return number


def check_seed(value: Any) -> int:
    return check_whole(value, "seed", 0, LARGEST_SEED)


def check_number(value: Any, name: str, what: str) -> float:
    """A finite number. what: the limits, in words."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, bool
    )
    if not is_number or not math.isfinite(value):
        raise InputError(f"{name} is {shown(value)}: {what}")
    return float(value)


def check_flag(value: Any, name: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} is {shown(value)}: True or False is needed")
    return bool(value)


def check_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name} is {shown(value)}: a text is needed")
    return str(value)


def check_instance(value: T, kind: type[Any] | tuple[type[Any], ...], name: str, what: str) -> T:
    """what: an object of that kind, or of one of those kinds, in words."""
    if not isinstance(value, kind):
        raise InputError(f"{name} is {shown(value)}: {what} is needed")
    return value


def check_function(value: T, name: str, *, optional: bool = False) -> T:
    if not callable(value) and not (optional and value is None):
        raise InputError(
            f"{name} is {shown(value)}: a function{' or None' if optional else ''} is needed"
        )
    return value


def check_list(value: Any, name: str, of: str, *, ordered: bool = True) -> list[Any]:
    """Several. A text is one thing, not its letters; a set has no order, and will do where none is
    needed. of: what is in it.
    """
    refused = (str, bytes, Mapping, Set) if ordered else (str, bytes, Mapping)
    if isinstance(value, refused) or not isinstance(value, Iterable):
        raise InputError(f"{name} is {shown(value)}: a list of {of} is needed")
    return sorted(value, key=repr) if isinstance(value, (set, frozenset)) else list(value)


def check_array(value: Any, name: str) -> np.ndarray:
    """As NumPy's asarray; rows of unequal length are an error, and so is what NumPy has no type
    for.
    """
    try:
        return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except (ValueError, TypeError) as error:
        ragged = "; its rows must be of one length" if "inhomogeneous" in str(error) else ""
        raise InputError(f"{name} can't be made an array: {error}{ragged}") from None


def check_device(value: Any) -> str:
    """By its form alone: whether it is there shows when it is used, and torch is not imported for
    this.
    """
    if not isinstance(value, str) or not re.fullmatch(r"(cpu|cuda|mps|xpu)(:\d+)?", value):
        raise InputError(f"device is {shown(value)}: cpu, cuda or cuda:NUMBER is needed")
    return value


def shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
