"""Checks of what a view of the pool is made of: probabilities, features, positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.common.checks import check_array
from tailor.errors import InputError
from tailor.task import SUM_TOLERANCE, MultiClass, Task

if TYPE_CHECKING:
    import torch

#: rows that are checked at once: what is made of them for that stays small
CHECKED_ROWS = 16384


def full_precision(tensor: torch.Tensor) -> torch.Tensor:
    """Half precision becomes single precision; wider numbers stay as they are."""
    if tensor.element_size() < 4:
        return tensor.float()
    return tensor


def as_matrix(array: Any, name: str, device: str) -> torch.Tensor:
    """A NumPy array or a tensor as a floating-point matrix on a device.

    A tensor that is on a GPU stays there, where `device` is "cpu". Raises InputError, with `name`
    in it, where the array is not a floating-point matrix.
    """
    import torch

    # What has no tensor's methods is taken for an array, a list of lists too.
    if not isinstance(array, torch.Tensor):
        numpy_array = check_array(array, name)
        array = _from_numpy(numpy_array, name)
    if array.ndim != 2 or not array.is_floating_point():
        shape = tuple(array.shape)
        raise InputError(
            f"{name} must be a floating-point matrix, got {array.dtype} of shape {shape}"
        )
    array = array.detach()  # a model's output may still hang on its graph; nothing here is trained
    if array.is_cuda and device == "cpu":
        return array
    return array.to(device)


def _from_numpy(array: np.ndarray, name: str) -> torch.Tensor:
    import torch

    dtype = array.dtype
    if dtype.kind != "f" or dtype.itemsize > 8:
        raise InputError(f"{name} must be floating point, 16 to 64 bits wide, got dtype {dtype}")
    # torch neither shares read-only memory without a warning nor knows foreign byte orders.
    is_foreign = dtype.byteorder == ">"
    if is_foreign or not array.flags.writeable:
        native = dtype.newbyteorder("=")
        array = array.astype(native)
    contiguous = np.ascontiguousarray(array)
    return torch.from_numpy(contiguous)


def check_probabilities(probs: torch.Tensor, task: Task, first: int = 0) -> torch.Tensor:
    """probs (n, K), whose first row is the pool's example `first` -> the same, in [0, 1].

    Rounding may put a value a little outside, as it may put a row's sum a little off 1: by no more
    than SUM_TOLERANCE. Raises InputError that names the first example beyond that.
    """
    if probs.shape[1] != task.size:
        raise InputError(
            f"probabilities have shape {tuple(probs.shape)}: {task.size} columns are needed, one "
            "a class"
        )
    # As given, and not as widened below: half precision rounds more.
    tolerance = SUM_TOLERANCE[probs.element_size()]
    lowest = -tolerance
    highest = 1 + tolerance
    outside = False
    for start in range(0, len(probs), CHECKED_ROWS):
        stop = start + CHECKED_ROWS
        part = full_precision(probs[start:stop])
        first_of_part = first + start
        low, high = part.aminmax()
        if low < 0 or high > 1:
            outside = True
        is_within = low >= lowest and high <= highest  # a NaN fails too
        if not is_within:
            _raise_outside(
                part,
                task,
                first_of_part,
                tolerance,
            )
        if isinstance(task, MultiClass):
            _check_sums(part, first_of_part, tolerance)
    # Only where it is needed: clamping copies the whole pool.
    if outside:
        return probs.clamp(0, 1)
    return probs


def _raise_outside(
    part: torch.Tensor,
    task: Task,
    first: int,
    tolerance: float,
) -> None:
    """Name the first value of a part that is no probability."""
    is_high_enough = part >= -tolerance
    is_low_enough = part <= 1 + tolerance
    # A NaN is neither: so what is good is asked for, and the rest is bad.
    is_bad = ~(is_high_enough & is_low_enough)
    first_bad = is_bad.nonzero()[0]
    row, column = first_bad.tolist()
    example = first + row
    name = task.classes[column]
    value = float(part[row, column])
    reason = "not finite"
    if np.isfinite(value):
        reason = f"outside [0, 1] (by more than {tolerance:g})"
    raise InputError(f"probability {value:g} of example {example}, class {name!r}, is {reason}")


def _check_sums(part: torch.Tensor, first: int, tolerance: float) -> None:
    sums = part.sum(1)
    # No NaN is left here to slip through: the range of every number was checked before.
    off_by = (sums - 1).abs()
    if off_by.max() > tolerance:
        row = int(off_by.argmax())
        example = first + row
        total = float(part[row].sum())
        raise InputError(
            f"probabilities of example {example} sum to {total:g}: "
            f"multi-class rows sum to 1 (within {tolerance:g}); use MultiLabel for independent "
            "classes"
        )


def check_features(features: torch.Tensor, size: int, first: int = 0) -> None:
    """features (n, d), whose first row is the pool's example `first`: n is `size`, all finite."""
    rows = len(features)
    if rows != size:
        raise InputError(f"features have {rows} rows, probabilities {size}: they must agree")
    for start in range(0, size, CHECKED_ROWS):
        stop = start + CHECKED_ROWS
        part = features[start:stop]
        if part.numel() == 0:
            continue
        low, high = part.aminmax()  # both are NaN where there is one
        # Two numbers speak for the part, so that no mask of its size is made.
        extremes = [float(low), float(high)]
        if not np.isfinite(extremes).all():
            row = _first_not_finite(part)
            example = first + start + row
            raise InputError(f"features of example {example} are not finite")


def _first_not_finite(part: torch.Tensor) -> int:
    """The first row of a part (n, d) that has one."""
    is_finite = part.isfinite().all(1)
    bad_rows = (~is_finite).nonzero()
    return int(bad_rows[0])


def check_distinct_positions(positions: Any, size: int, name: str) -> np.ndarray:
    """(n,) int64: positions in a pool of `size` examples, each once. Raises InputError."""
    array = check_array(positions, name)
    # An empty list is an array of floats, and none the less a list of positions.
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be a list of positions, got {array.dtype} of shape {array.shape}"
        )
    last = size - 1
    if array.min() < 0 or array.max() > last:
        is_outside = (array < 0) | (array > last)
        outside = array[is_outside]
        position = int(outside[0])
        raise InputError(f"{name} holds position {position}: positions run from 0 to {last}")
    _check_unique(array, name)
    return array.astype(np.int64)


def _check_unique(positions: np.ndarray, name: str) -> None:
    unique, counts = np.unique(positions, return_counts=True)
    if len(unique) != len(positions):
        repeated = unique[counts > 1]
        position = repeated[0]
        raise InputError(f"{name} holds position {position} more than once")


def check_free(
    free: Any,
    size: int,
    labelled: np.ndarray,
    pending: np.ndarray,
) -> np.ndarray:
    """(N,) bool, a copy: what may be offered; by default all that is neither labelled nor pending.

    free      (N,) bool, or None
    labelled  (n,) int64
    pending   (m,) int64
    """
    is_known = np.zeros(size, bool)
    is_known[labelled] = True
    is_both = is_known[pending]
    if is_both.any():
        example = pending[is_both][0]
        raise InputError(f"example {example} is both labelled and pending")
    is_known[pending] = True
    if free is None:
        return ~is_known
    free = check_array(free, "free")
    if free.shape != (size,) or free.dtype != bool:
        raise InputError(
            f"free must be a bool array of shape ({size},), got {free.dtype} {free.shape}"
        )
    is_wrong = free & is_known
    if is_wrong.any():
        example = np.argmax(is_wrong)
        raise InputError(f"example {example} is marked free but is labelled or pending")
    return free.copy()


def check_distances(distances: Any, count: int) -> np.ndarray:
    """(count,) float64 from what a function for boundary_distances= gave.

    Raises InputError where there are more or fewer, or one is not a number of at least 0.
    """
    array = check_array(distances, "boundary distances")
    if array.shape != (count,) or array.dtype.kind not in "fiu":
        raise InputError(
            f"boundary_distances gave {array.dtype} of shape {array.shape} for {count} positions: "
            "one number each is needed"
        )
    # A NaN is not at least 0 either.
    is_right = array >= 0
    if not is_right.all():
        wrong = array[~is_right]
        raise InputError(f"boundary_distances gave {wrong[0]}: a distance is at least 0")
    return array.astype(np.float64)
