"""All that an arm may see in one round. A hidden label is not in it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.common.checks import (
    check_array,
    check_device,
    check_function,
    check_instance,
    check_whole,
)
from tailor.errors import InputError
from tailor.task import SUM_TOLERANCE, MultiClass, Task

if TYPE_CHECKING:
    import torch

#: Rows that a streaming pass over the pool holds at once.
CHUNK = 16384
#: Columns of the probabilities that are turned into contiguous rows at once.
COLUMNS = 32


class Need(enum.Enum):
    """What a family reads besides the labels so far. Computed once a round and shared."""

    PROBABILITIES = "probabilities"
    FEATURES = "features"
    FINETUNE = "a model to fine-tune (finetune=)"
    DROPOUT = "dropout passes (dropout=)"


#: (soft targets (N, K) tensor, epochs) -> probabilities (N, K) of a fine-tuned copy of the model
FineTune = Callable[[Any, int], Any]
#: () -> the probabilities (N, K) of each pass with dropout on
Dropout = Callable[[], Iterable[Any]]
#: a family (a Strategy), its pulled arms, how often each is pulled, and a generator for each
Opening = tuple[Any, Sequence[Any], Sequence[int], Sequence[np.random.Generator]]


class Ledger:
    """What has happened in this round so far: who is free, what was taken in which order, what was
    revealed.

    Arms read it when they are asked, so that a take costs the same however many arms are open.
    """

    def __init__(self, free: np.ndarray) -> None:
        self.free = free.copy()  # (N,) bool
        self.left = int(free.sum())
        self._taken = np.empty(64, np.int64)
        self.count = 0
        self.revealed: list[
            tuple[int, np.ndarray | None]
        ] = []  # labels (K,) as they came; None: withdrawn

    @property
    def taken(self) -> np.ndarray:
        """(count,) int64, in the order of taking."""
        return self._taken[: self.count]

    def take(self, index: int) -> None:
        if not self.free[index]:
            raise InputError(f"example {index} is not free: it is labelled, taken or set aside")
        if self.count == len(self._taken):
            self._taken = np.concatenate([self._taken, np.empty_like(self._taken)])
        self._taken[self.count] = index
        self.count += 1
        self.left -= 1
        self.free[index] = False

    def reveal(self, index: int, label: np.ndarray) -> None:
        self.revealed.append((index, label))

    def withdraw(self, index: int) -> None:
        """Its label is no more, whether it came in this round or before."""
        self.revealed.append((index, None))


class PoolView:
    """The pool as the arms see it: predictions, features, the labels told so far, and what is free.

    probs     (N, K) float in [0, 1], numpy or torch; rows sum to 1 in a multi-class task. Both
              within 0.001, or 0.02 in half precision; what is beyond 0 or 1 by less counts as 0 or
              1
    features  (N, d) float, or None
    labelled  (n,) int, positions whose labels are known, each once
    labels    (n, K) of 0 and 1, in the order of `labelled`
    free      (N,) bool, what may be offered; by default all that is neither labelled nor pending
    pending   (m,) int, asked earlier and not answered yet
    seed      settles ties between examples: a hash of (seed, position), so that file order never
              decides
    """

    def __init__(
        self,
        task: Task,
        probs: Any,
        features: Any = None,
        *,
        labelled: Any = (),
        labels: Any = None,
        free: Any = None,
        pending: Any = (),
        finetune: FineTune | None = None,
        dropout: Dropout | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.task = check_instance(task, Task, "task", "a MultiClass or a MultiLabel")
        self.finetune = check_function(finetune, "finetune", optional=True)
        self.dropout = check_function(dropout, "dropout", optional=True)
        device = check_device(device)
        self.probs = check_probabilities(as_matrix(probs, "probabilities", device), task)
        self.size = len(self.probs)
        self.device = self.probs.device
        self.features = None
        if features is not None:
            self.features = as_matrix(features, "features", device)
            check_features(self.features, self.size)
        self._settle(labelled, labels, free, pending, seed)

    def _settle(self, labelled: Any, labels: Any, free: Any, pending: Any, seed: int) -> None:
        """What is known of the pool as the round begins."""
        task = self.task
        self.labelled = check_positions(labelled, self.size, "labelled")
        self.labels = task.check_labels(labels if labels is not None else np.zeros((0, task.size)))
        if len(self.labels) != len(self.labelled):
            raise InputError(
                f"{len(self.labelled)} labelled positions but {len(self.labels)} labels"
            )
        self.pending = check_positions(pending, self.size, "pending")
        self.free = self._check_free(free)
        self.ledger = Ledger(self.free)
        self._seed = check_whole(seed, "seed", 0, 2**64 - 1)

    def _check_free(self, free: Any) -> np.ndarray:
        known = np.zeros(self.size, bool)
        known[self.labelled] = True
        if known[self.pending].any():
            raise InputError(
                f"example {self.pending[known[self.pending]][0]} is both labelled and pending"
            )
        known[self.pending] = True
        if free is None:
            return ~known
        free = check_array(free, "free")
        if free.shape != (self.size,) or free.dtype != bool:
            raise InputError(
                f"free must be a bool array of shape ({self.size},), got {free.dtype} {free.shape}"
            )
        if (free & known).any():
            where = int(np.flatnonzero(free & known)[0])
            raise InputError(f"example {where} is marked free but is labelled or pending")
        return free.copy()

    def has(self, need: Need) -> bool:
        check_instance(need, Need, "need", "a Need (tailor.selection.pool_view)")
        return {
            Need.PROBABILITIES: True,
            Need.FEATURES: self.features is not None,
            Need.FINETUNE: self.finetune is not None,
            Need.DROPOUT: self.dropout is not None,
        }[need]

    @cached_property
    def ties(self) -> np.ndarray:
        """(N,) int64, all different: the order among examples that are otherwise equal, smallest
        first.
        """
        return tie_keys(self.size, self._seed)

    @cached_property
    def free_ids(self) -> np.ndarray:
        """(F,) int64, ascending: what was free when the round began."""
        return np.flatnonzero(self.free)

    @cached_property
    def closed(self) -> torch.Tensor:
        """(N,) bool on the device: what was not free when the round began."""
        import torch

        return torch.from_numpy(~self.free).to(self.device)

    @cached_property
    def row_max(self) -> torch.Tensor:
        """(N,) the largest probability of each row."""
        return self.per_row(_largest)

    @cached_property
    def labelled_rows(self) -> np.ndarray:
        """(n, K) the probabilities of the labelled examples, on the host."""
        import torch

        return self.rows(torch.from_numpy(self.labelled).to(self.device)).cpu().numpy()

    @cached_property
    def labelled_max(self) -> np.ndarray:
        """(n,) the largest probability of each labelled example, on the host."""
        return self.labelled_rows.max(1)

    def chunks(self) -> Iterable[slice]:
        return (slice(start, min(start + CHUNK, self.size)) for start in range(0, self.size, CHUNK))

    def per_row(self, function: Callable[[PoolView, slice], torch.Tensor]) -> torch.Tensor:
        """(N,) what function(view, part) -> (n,) gives for every chunk, joined.

        A row's number may depend on nothing but that row: an engine calls the function where the
        rows are.
        """
        import torch

        return torch.cat([function(self, part) for part in self.chunks()])

    def count_predicted(self, among: np.ndarray) -> np.ndarray:
        """(K,) int64: how many of among (N,) bool the model puts in each class."""
        import torch

        found: np.ndarray = (
            torch.stack([predicted_in(self, p, among[p]) for p in self.chunks()])
            .sum(0)
            .cpu()
            .numpy()
        )
        return found

    def open(self, families: Sequence[Opening]) -> list[list[Any]]:
        """The cursors of each family's pulled arms."""
        return [strategy.open(arms, self, pulls, rngs) for strategy, arms, pulls, rngs in families]

    def rows(self, which: Any) -> torch.Tensor:
        """(n, K) probabilities of a slice or an index tensor, in single precision or better."""
        return full_precision(self.probs[which])

    def feature_rows(self, which: Any) -> torch.Tensor:
        """(n, d) features of a slice or an index tensor, in single precision or better."""
        assert self.features is not None
        return full_precision(self.features[which])

    def columns(self, classes: list[int]) -> Iterable[tuple[int, torch.Tensor]]:
        """(class, its probabilities (N,) contiguous), reading the matrix a block of columns at a
        time.
        """
        for start in range(0, len(classes), COLUMNS):
            block = classes[start : start + COLUMNS]
            low = min(block)
            high = max(block) + 1
            if high - low <= 2 * COLUMNS:
                turned = full_precision(self.probs[:, low:high]).T.contiguous()
                yield from ((k, turned[k - low]) for k in block)
            else:
                yield from ((k, full_precision(self.probs[:, k]).contiguous()) for k in block)


def make_view(task: Task, probs: Any, features: Any = None, **state: Any) -> PoolView:
    """The view of a model's predictions: arrays, or an object that has them in shards and brings a
    view of its own.
    """
    if hasattr(probs, "round_view"):
        view: PoolView = probs.round_view(task, **state)
        return view
    return PoolView(task, probs, features, **state)


def _largest(view: PoolView, part: slice) -> torch.Tensor:
    return view.rows(part).amax(1)


def predicted_in(view: PoolView, part: slice, among: np.ndarray) -> torch.Tensor:
    """(K,) int64: of some of a part's rows, how many the model puts in each class. among (n,)
    bool.
    """
    import torch

    counted: torch.Tensor = view.task.predicted(view.rows(part))[
        torch.from_numpy(among).to(view.device)
    ].sum(0)
    return counted


def tie_keys(size: int, seed: int, start: int = 0) -> np.ndarray:
    """(size,) int64 for positions from `start` on: splitmix64 of position + seed, a bijection, so
    no two are equal.
    """
    x = np.arange(start, start + size, dtype=np.uint64) + np.uint64(
        (seed * 0x9E3779B97F4A7C15 + 1) % 2**64
    )
    x *= np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))).view(np.int64)


def full_precision(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.element_size() < 4 else tensor


def as_matrix(array: Any, name: str, device: str) -> torch.Tensor:
    import torch

    if not isinstance(array, torch.Tensor):
        array = check_array(array, name)
        if array.dtype.kind != "f" or array.dtype.itemsize > 8:
            raise InputError(
                f"{name} must be floating point, 16 to 64 bits wide, got dtype {array.dtype}"
            )
        if not array.flags.writeable or array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("="))
        array = torch.from_numpy(np.ascontiguousarray(array))
    if array.ndim != 2 or not array.is_floating_point():
        raise InputError(
            f"{name} must be a floating-point matrix, got {array.dtype} of shape "
            f"{tuple(array.shape)}"
        )
    array = array.detach()  # a model's output may still hang on its graph; nothing here is trained
    if array.is_cuda and device == "cpu":
        return array
    return array.to(device)


def check_probabilities(probs: torch.Tensor, task: Task, first: int = 0) -> torch.Tensor:
    """probs (n, K), whose first row is the pool's example `first` -> the same, in [0, 1].

    Rounding may put a value a little outside, as it may put a row's sum a little off 1: by no more
    than SUM_TOLERANCE.
    """
    if probs.shape[1] != task.size:
        raise InputError(
            f"probabilities have shape {tuple(probs.shape)}: {task.size} columns are needed, one "
            "a class"
        )
    tolerance = SUM_TOLERANCE[probs.element_size()]
    outside = False
    for start in range(0, len(probs), CHUNK):
        part = full_precision(probs[start : start + CHUNK])
        low, high = part.aminmax()
        outside = outside or bool(low < 0) or bool(high > 1)
        if not (low >= -tolerance and high <= 1 + tolerance):  # NaN fails too
            bad = ~((part >= -tolerance) & (part <= 1 + tolerance))
            row, column = (int(i) for i in bad.nonzero()[0])
            value = float(part[row, column])
            why = (
                f"outside [0, 1] (by more than {tolerance:g})"
                if np.isfinite(value)
                else "not finite"
            )
            raise InputError(
                f"probability {value:g} of example {first + start + row}, class "
                f"{task.classes[column]!r}, is {why}"
            )
        if isinstance(task, MultiClass):
            off = (part.sum(1) - 1).abs()
            if off.max() > tolerance:
                row = int(off.argmax())
                raise InputError(
                    f"probabilities of example {first + start + row} sum to "
                    f"{float(part[row].sum()):g}: multi-class "
                    f"rows sum to 1 (within {tolerance:g}); use MultiLabel for independent classes"
                )
    return probs.clamp(0, 1) if outside else probs


def check_features(features: torch.Tensor, size: int, first: int = 0) -> None:
    if len(features) != size:
        raise InputError(
            f"features have {len(features)} rows, probabilities {size}: they must agree"
        )
    for start in range(0, size, CHUNK):
        part = features[start : start + CHUNK]
        if part.numel() and not all(
            np.isfinite(float(end)) for end in part.aminmax()
        ):  # a NaN is both ends
            where = first + start + int((~part.isfinite().all(1)).nonzero()[0])
            raise InputError(f"features of example {where} are not finite")


def check_positions(positions: Any, size: int, name: str) -> np.ndarray:
    array = check_array(positions, name)
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be a list of positions, got {array.dtype} of shape {array.shape}"
        )
    if array.min() < 0 or array.max() >= size:
        bad = int(array[(array < 0) | (array >= size)][0])
        raise InputError(f"{name} holds position {bad}: positions run from 0 to {size - 1}")
    unique, counts = np.unique(array, return_counts=True)
    if len(unique) != len(array):
        raise InputError(f"{name} holds position {unique[counts > 1][0]} more than once")
    return array.astype(np.int64)
