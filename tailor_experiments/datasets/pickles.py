"""Reading the pickles of the CIFAR archives without running them.

A pickle can name any function and have it called. Here the four names that these files need are
answered by stand-ins that only record what they are given, every other name is refused, and the
arrays are built from the recorded bytes.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, Literal

import numpy as np

from tailor.errors import InputError

_BAD_STATE = "an array's state is not shape, kind and bytes"


class _Kind:
    """Stands for numpy.dtype: bytes from 0 to 255, and nothing else."""

    def __init__(self, code: Any = None, *_: Any) -> None:
        if isinstance(code, bytes):
            code = code.decode("ascii", "replace")
        # An array of objects could hold anything.
        if code not in ("u1", "|u1", "uint8"):
            raise pickle.UnpicklingError(f"an array of {code!r} where only bytes (u1) belong")

    def __setstate__(self, state: Any) -> None:
        return


class _Array:
    """Stands for numpy.ndarray, until its state arrives."""

    value: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise pickle.UnpicklingError("an array's state is not five values")
        _, shape, kind, fortran, raw = state
        if not isinstance(kind, _Kind) or not isinstance(raw, bytes):
            raise pickle.UnpicklingError(_BAD_STATE)
        _check_shape(shape)
        order: Literal["F", "C"] = "F" if fortran else "C"
        try:
            values = np.frombuffer(raw, np.uint8)
            self.value = values.reshape(shape, order=order)
        except ValueError as problem:
            # The shape does not fit the bytes.
            raise pickle.UnpicklingError(str(problem)) from None


def _check_shape(shape: Any) -> None:
    if not isinstance(shape, tuple):
        raise pickle.UnpicklingError(_BAD_STATE)
    for length in shape:
        # A length of -1 would make NumPy find one by itself.
        if not isinstance(length, int) or length < 0:
            raise pickle.UnpicklingError(f"an array of shape {shape}")


def _start(*_: Any) -> _Array:
    """Stands for numpy's _reconstruct, which makes the empty array that the state then fills."""
    return _Array()


def _latin(text: Any, encoding: Any = None) -> bytes:
    """Stands for _codecs.encode: how Python 3 writes bytes into the pickles that Python 2 could
    read.
    """
    if not isinstance(text, str) or encoding not in ("latin1", b"latin1"):
        raise pickle.UnpicklingError(f"encoding {encoding!r} where only latin1 belongs")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Any] = {
    # The published files have the first name; files written by NumPy 2 have the second.
    ("numpy.core.multiarray", "_reconstruct"): _start,
    ("numpy._core.multiarray", "_reconstruct"): _start,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Kind,
    ("_codecs", "encode"): _latin,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no such file needs")
        return _ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to objects outside the file")


def read_pickle(raw: bytes, path: str) -> dict[str, Any]:
    """A dict of arrays of bytes, lists, texts and numbers; InputError for anything else, and
    nothing is run.

    Keys and texts written by Python 2 come as bytes: keys are given as str.

    >>> read_pickle(pickle.dumps({b"labels": [3, 1]}, 2), "data_batch_1")
    {'labels': [3, 1]}
    """
    # As bytes: Python 2's texts are pixels here, which no encoding fits.
    reader = _Reader(io.BytesIO(raw), encoding="bytes")
    try:
        content = reader.load()
    except Exception as problem:
        # A broken pickle raises nearly anything: EOFError, IndexError, struct.error, ...
        reason = str(problem) or type(problem).__name__
        raise InputError(f"damaged or unsafe file {path}: {reason}") from None
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise InputError(f"damaged file {path}: it holds a {kind}, expected a dict")
    return {_key_text(key): _plain(value, path) for key, value in content.items()}


def _key_text(key: Any) -> str:
    if isinstance(key, bytes):
        return key.decode("latin1")
    return str(key)


def _plain(value: Any, path: str) -> Any:
    """A value of the pickle without stand-ins."""
    if isinstance(value, _Array):
        return _content(value, path)
    if isinstance(value, list):
        return [_plain(member, path) for member in value]
    if value is None or isinstance(value, (int, float, str, bytes)):
        return value
    kind = type(value).__name__
    raise InputError(f"damaged file {path}: a {kind} where arrays, lists, texts and numbers belong")


def _content(array: _Array, path: str) -> np.ndarray:
    if array.value is None:
        raise InputError(f"damaged file {path}: an array without content")
    return array.value
