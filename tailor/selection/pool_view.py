"""All that an arm may see in one round. A hidden label is not in it.

PoolView is the interface. It has three implementations: ArrayView over arrays in memory
(tailor.selection.array_view), ShardedView over shards on disk, and PartView over a part of one
shard, which is what a worker sees (both in tailor.compute).
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from tailor.common.checks import check_instance, check_whole
from tailor.common.linear_head import LinearHead
from tailor.errors import InputError
from tailor.selection.ledger import Ledger
from tailor.selection.model_answers import ModelAnswers
from tailor.selection.view_checks import check_distinct_positions, check_free
from tailor.task import Task

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

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
    GRADIENTS = "distances through a network (boundary_distances=)"


@dataclass(frozen=True)
class PoolState:
    """What is known of the pool's examples as a round begins."""

    labelled: np.ndarray  # (n,) int64, positions whose labels are known, each once
    labels: np.ndarray | None  # (n, K) of 0 and 1, in that order; None: kept elsewhere
    pending: np.ndarray  # (m,) int64, positions asked earlier and not answered yet
    free: np.ndarray  # (N,) bool: what may be offered

    @classmethod
    def checked(
        cls,
        task: Task,
        size: int,
        *,
        labelled: Any,
        labels: Any,
        free: Any,
        pending: Any,
    ) -> PoolState:
        """From what a user gave. Raises InputError where it does not fit a pool of `size`."""
        labelled = check_distinct_positions(labelled, size, "labelled")
        if labels is None:
            labels = np.zeros((0, task.size))
        labels = task.check_labels(labels)
        position_count = len(labelled)
        label_count = len(labels)
        if label_count != position_count:
            raise InputError(f"{position_count} labelled positions but {label_count} labels")
        pending = check_distinct_positions(pending, size, "pending")
        free = check_free(
            free,
            size,
            labelled,
            pending,
        )
        return cls(
            labelled,
            labels,
            pending,
            free,
        )


class PoolView(ModelAnswers):
    """The pool as the arms see it: predictions, features, the labels told so far, and what is free.

    N is the number of examples in the view, K of classes, d of features. Positions are the view's
    own, 0 to N - 1; those of a part of the pool begin at the pool's position `start`.

    size      N
    start     the pool's position of the first example: 0, unless the view is a part of the pool
    device    where tensors are
    labelled  (n,) int64, positions whose labels are known, each once
    pending   (m,) int64, positions asked earlier and not answered yet
    free      (N,) bool: what could be offered as the round began
    ledger    what has happened in the round so far
    head      the model's last layer, on the features of this view; None where nobody knows it
    skipped   (s,) int64, positions that annotators skipped, where the round knows of them
    """

    start: int = 0
    head: LinearHead | None = None

    def __init__(
        self,
        task: Task,
        size: int,
        device: torch.device,
        state: PoolState,
        seed: int,
    ) -> None:
        self.task = task
        self.size = size
        self.device = device
        self.labelled = state.labelled
        self.pending = state.pending
        self.free = state.free
        self.ledger = Ledger(state.free)
        self.skipped = np.empty(0, np.int64)
        # What follows from `free`, once it was asked for.
        self._free_ids: np.ndarray | None = None
        self._closed: torch.Tensor | None = None
        self._labels = state.labels
        largest_seed = 2**64 - 1
        self._seed = check_whole(
            seed,
            "seed",
            0,
            largest_seed,
        )

    # ------------------------------------------------------------------ what a view has to give

    @property
    @abstractmethod
    def predictions(self) -> Any:
        """The model's predictions as the view holds them: an (N, K) tensor, or shards."""

    @abstractmethod
    def rows(
        self, which: slice | torch.Tensor, classes: slice | Sequence[int] | np.ndarray | None = None
    ) -> torch.Tensor:
        """(n, K) probabilities at a slice or an index tensor (n,), in single precision or better.

        classes: of these alone, (n, c).
        """

    @abstractmethod
    def feature_rows(self, which: slice | torch.Tensor) -> torch.Tensor:
        """(n, d) features at a slice or an index tensor (n,), in single precision or better."""

    @abstractmethod
    def has(self, need: Need) -> bool:
        """Whether a family finds here what it reads."""

    @property
    def shards(self) -> ShardVisitor | None:
        """Asks every shard of the pool at once; None where the rows are in this process."""
        return None

    def offering(self, free: np.ndarray) -> PoolView:
        """The same pool with a ledger of its own, and with only free (N,) bool on offer.

        For arms that propose from a part of the pool and do not see each other's takes.
        """
        part = copy(self)
        part.free = free
        part.ledger = Ledger(free)
        part._free_ids = None
        part._closed = None
        return part

    # ------------------------------------------------------------------ what follows from that

    @property
    def labels(self) -> np.ndarray:
        """(n, K) of 0 and 1, in the order of `labelled`. A part of the pool does not have them."""
        if self._labels is None:
            raise InputError("the labels told so far are not sent to the shards")
        return self._labels

    @cached_property
    def ties(self) -> np.ndarray:
        """(N,) int64, all different: the order among examples that are otherwise equal, smallest
        first. A hash of seed and position, so that the order of files never decides.
        """
        return tie_keys(self.size, self._seed, self.start)

    @property
    def free_ids(self) -> np.ndarray:
        """(F,) int64, ascending: what was free when the round began."""
        if self._free_ids is None:
            self._free_ids = np.flatnonzero(self.free)
        return self._free_ids

    @property
    def closed(self) -> torch.Tensor:
        """(N,) bool on the device: what was not free when the round began."""
        if self._closed is None:
            self._closed = self.to_device(~self.free)
        return self._closed

    @cached_property
    def row_max(self) -> torch.Tensor:
        """(N,) the largest probability of each row."""
        return self.per_row(largest_of_rows)

    @cached_property
    def labelled_rows(self) -> np.ndarray:
        """(n, K) the probabilities of the labelled examples, on the host."""
        positions = self.to_device(self.labelled)
        rows = self.rows(positions)
        return rows.cpu().numpy()

    def to_device(self, array: np.ndarray) -> torch.Tensor:
        """The array as a tensor where the view's tensors are."""
        import torch

        return torch.from_numpy(array).to(self.device)

    def chunks(self) -> Iterable[slice]:
        """The view's rows, up to CHUNK at a time."""
        for start in range(0, self.size, CHUNK):
            stop = min(start + CHUNK, self.size)
            yield slice(start, stop)

    def per_row(self, function: RowFunction) -> torch.Tensor:
        """(N,) what function(view, part) -> (n,) gives for every chunk, joined.

        A row's number may depend on nothing but that row: over shards the function is called where
        the rows are.
        """
        import torch

        values = []
        for part in self.chunks():
            part_values = function(self, part)
            values.append(part_values)
        return torch.cat(values)

    def count_predicted(self, among: np.ndarray) -> np.ndarray:
        """(K,) int64: how many of among (N,) bool the model puts in each class."""
        import torch

        counts = []
        for part in self.chunks():
            counted = count_predicted_in(self, part, among[part])
            counts.append(counted)
        # Joined on the device: each number that is sent to the host on its own would wait for it.
        total = torch.stack(counts).sum(0)
        on_host: np.ndarray = total.cpu().numpy()
        return on_host

    def columns(self, classes: list[int]) -> Iterable[tuple[int, torch.Tensor]]:
        """(class, its probabilities (N,) contiguous), reading the matrix a block of columns at a
        time.
        """
        all_rows = slice(None)
        for first in range(0, len(classes), COLUMNS):
            last = first + COLUMNS
            block = classes[first:last]
            low = min(block)
            high = max(block) + 1
            if high - low <= 2 * COLUMNS:
                # Transposing a few neighbouring columns together reads each row of memory once.
                neighbours = self.rows(all_rows, slice(low, high))
                turned = neighbours.T.contiguous()
                for klass in block:
                    column = turned[klass - low]
                    yield klass, column
            else:
                for klass in block:
                    class_alone = slice(klass, klass + 1)
                    narrow = self.rows(all_rows, class_alone)
                    column = narrow.squeeze(1)
                    yield klass, column.contiguous()


#: (view, part) -> (n,): a number for each row of a part of the view
RowFunction = Callable[[PoolView, slice], "torch.Tensor"]


class ShardJob(Protocol[T]):
    """A question that every part of a pool in shards answers by itself."""

    def __call__(self, part: PoolView) -> T:
        """The answer of one part, which begins at the pool's position part.start."""

    def join(self, answers: list[T]) -> T:
        """The answer of several parts, in order, from the answer of each. Called within a shard
        and then across shards.
        """


class ShardVisitor(Protocol):
    """Takes a question to all shards of a pool."""

    def visit(
        self,
        job: ShardJob[T],
        *,
        finetune_epochs: int | None = None,
        dropout: bool = False,
    ) -> T:
        """The answer of the whole pool.

        finetune_epochs  the parts can give finetuned() of so many epochs
        dropout          the parts can give dropout_passes()
        """


class PredictionSource(ABC):
    """Predictions that are no arrays and bring a view of their own: hand one to Learner.ask."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(N, K)"""

    @abstractmethod
    def round_view(
        self,
        task: Task,
        *,
        labelled: Any = (),
        labels: Any = None,
        free: Any = None,
        pending: Any = (),
        seed: int = 0,
        device: str = "cpu",
    ) -> PoolView:
        """The view of a round; the arguments are those of ArrayView."""


def check_need(need: Need) -> Need:
    return check_instance(
        need,
        Need,
        "need",
        "a Need (tailor.selection.pool_view)",
    )


def largest_of_rows(view: PoolView, part: slice) -> torch.Tensor:
    """(n,) the largest probability of each row of a part."""
    return view.rows(part).amax(1)


def count_predicted_in(view: PoolView, part: slice, among: np.ndarray) -> torch.Tensor:
    """(K,) int64: of some of a part's rows, how many the model puts in each class. among (n,)
    bool.
    """
    rows = view.rows(part)
    predicted: torch.Tensor = view.task.predicted(rows)
    is_counted = view.to_device(among)
    return predicted[is_counted].sum(0)


def tie_keys(size: int, seed: int, start: int = 0) -> np.ndarray:
    """(size,) int64 for positions from `start` on: splitmix64 of position + seed, a bijection, so
    no two are equal.
    """
    golden_ratio = 0x9E3779B97F4A7C15
    # Python's integers do not overflow: the offset is brought into 64 bits by hand.
    offset = seed * golden_ratio + 1
    offset %= 2**64
    stop = start + size
    keys = np.arange(start, stop, dtype=np.uint64)
    # In place from here on: no second array of the pool's size stays.
    keys += np.uint64(offset)
    keys *= np.uint64(golden_ratio)
    keys ^= keys >> np.uint64(30)
    keys *= np.uint64(0xBF58476D1CE4E5B9)
    keys ^= keys >> np.uint64(27)
    keys *= np.uint64(0x94D049BB133111EB)
    keys ^= keys >> np.uint64(31)
    return keys.view(np.int64)
