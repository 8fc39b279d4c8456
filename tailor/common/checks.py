"""Checks of single arguments. Each returns the value in its plain form, or raises an InputError
that names the argument and the value.
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
#: characters of a value that an error shows
LONGEST_SHOWN = 80
DEVICE = re.compile(r"(cpu|cuda|mps|xpu)(:\d+)?")


def check_whole(
    value: Any,
    name: str,
    least: int = 1,
    most: int | None = None,
) -> int:
    """A whole number from `least` to `most`, of NumPy's types too, but no bool."""
    try:
        # To Python True is a whole number.
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise _refused(value, name, f"a whole number from {least} is needed") from None
    if most is not None:
        if not least <= number <= most:
            raise InputError(f"{name} is {number}: it must lie in [{least}, {most}]")
        return number
    if number < least:
        raise InputError(f"{name} is {number}: at least {least} is needed")
    return number


def check_seed(value: Any) -> int:
    return check_whole(
        value,
        "seed",
        least=0,
        most=LARGEST_SEED,
    )


def check_number(value: Any, name: str, what: str) -> float:
    """A finite number.

    what  its limits, in words, for the message
    """
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    # To Python True is a whole number.
    if isinstance(value, bool):
        is_number = False
    if not is_number or not math.isfinite(value):
        raise _refused(value, name, what)
    return float(value)


def check_flag(value: Any, name: str) -> bool:
    """True or False, NumPy's too."""
    if not isinstance(value, (bool, np.bool_)):
        raise _refused(value, name, "True or False is needed")
    return bool(value)


def check_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise _refused(value, name, "a text is needed")
    return str(value)


def check_instance(
    value: T,
    kind: type[Any] | tuple[type[Any], ...],
    name: str,
    what: str,
) -> T:
    """An object of a kind, or of one of several.

    what  such an object in words, for the message
    """
    if not isinstance(value, kind):
        raise _refused(value, name, f"{what} is needed")
    return value


def check_function(value: T, name: str, *, optional: bool = False) -> T:
    """Something that can be called, or None where that is optional."""
    if callable(value):
        return value
    is_left_out = optional and value is None
    if is_left_out:
        return value
    if optional:
        raise _refused(value, name, "a function or None is needed")
    raise _refused(value, name, "a function is needed")


def check_list(
    value: Any,
    name: str,
    of: str,
    *,
    ordered: bool = True,
) -> list[Any]:
    """A list of anything that can be gone through, but no text, bytes or mapping.

    of       what is in it, in words, for the message
    ordered  whether the order matters, so that a set is refused; otherwise it is sorted
    """
    refused: tuple[type, ...] = (str, bytes, Mapping)
    if ordered:
        refused = (*refused, Set)
    is_refused = isinstance(value, refused)
    if is_refused or not isinstance(value, Iterable):
        raise _refused(value, name, f"a list of {of} is needed")
    # The order of a set may change from one process to the next.
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    return list(value)


def check_array(value: Any, name: str) -> np.ndarray:
    """An array, as NumPy's asarray() makes it; a torch tensor on any device too.

    Raises InputError for rows of unequal length, and for what NumPy has no type for.
    """
    try:
        # By its method: torch is not imported for this.
        if hasattr(value, "detach"):
            value = value.detach().cpu()
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        message = f"{name} can't be made an array: {error}"
        is_ragged = "inhomogeneous" in str(error)
        if is_ragged:
            message += "; its rows must be of one length"
        raise InputError(message) from None


def check_device_name(value: Any) -> str:
    """A device by the form of its name alone: whether it is there shows when it is used, and torch
    is not imported for this.
    """
    if not isinstance(value, str) or not DEVICE.fullmatch(value):
        raise _refused(value, "device", "cpu, cuda or cuda:NUMBER is needed")
    return value


def _refused(value: Any, name: str, needed: str) -> InputError:
    """The error for an argument that is not what it must be. needed: what that is, in words."""
    value_text = shown(value)
    return InputError(f"{name} is {value_text}: {needed}")


def shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value)
    if len(text) <= LONGEST_SHOWN:
        return text
    beginning = text[: LONGEST_SHOWN - 3]
    return f"{beginning}..."
