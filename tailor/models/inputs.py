"""Checks of what a model is called with: a device, positions, labelled examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailor.errors import InputError, UnknownName


def find_device(name: str) -> str:
    """The device that torch is told: "auto" is "cuda" where there is one, else "cpu".

    Raises UnknownName for another name, InputError where there is no CUDA device.
    """
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "cpu"
    device_kind, _, _ = name.partition(":")
    if device_kind not in ("cpu", "cuda"):
        raise UnknownName("device", name, ["auto", "cpu", "cuda"])
    if name != "cpu" and not torch.cuda.is_available():
        raise InputError(
            f"device {name!r} was asked for, but torch finds no CUDA device here: use cpu"
        )
    return name


def check_position_array(positions: Any, size: int) -> np.ndarray:
    """Positions (n,) as int64.

    Raises InputError where they are not whole numbers from 0 to size - 1.
    """
    array = np.asarray(positions)
    # An empty list becomes an array of floats, and is no mistake.
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"positions must be a list of whole numbers, got {array.dtype} of shape {array.shape}"
        )
    outside = (array < 0) | (array >= size)
    if outside.any():
        first_outside = array[outside][0]
        last = size - 1
        raise InputError(
            f"position {first_outside} is not in the pool: positions run from 0 to {last}"
        )
    return array.astype(np.int64)


def keep_readable(
    positions: np.ndarray, labels: np.ndarray, readable: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Leave out labelled examples that can't be read: positions (n,), labels (n, K) -> (m,),
    (m, K).

    readable  (N,) bool, of the whole pool

    Raises InputError where lengths differ or nothing is left.
    """
    if len(positions) != len(labels):
        raise InputError(f"{len(positions)} positions but {len(labels)} labels")
    usable = readable[positions]
    if not usable.any():
        raise InputError(
            f"none of the {len(positions)} labelled examples can be read: at least one is needed "
            "to train"
        )
    return positions[usable], labels[usable]
