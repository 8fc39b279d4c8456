"""The pool as arrays in memory, on the host or on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.common.checks import check_device, check_function, check_instance
from tailor.errors import InputError
from tailor.selection.pool_view import (
    Need,
    PoolState,
    PoolView,
    PredictionSource,
    check_need,
)
from tailor.selection.view_checks import (
    as_matrix,
    check_features,
    check_probabilities,
    full_precision,
)
from tailor.task import Task

if TYPE_CHECKING:
    import torch

#: (soft targets (N, K) tensor, epochs) -> probabilities (N, K) of a fine-tuned copy of the model
FineTune = Callable[[Any, int], Any]
#: () -> the probabilities (N, K) of each pass with dropout on
Dropout = Callable[[], Iterable[Any]]


class ArrayView(PoolView):
    """A view of predictions that are in memory.

    probs     (N, K) float in [0, 1], numpy or torch; rows sum to 1 in a multi-class task. Both
              within 0.001, or 0.02 in half precision; what is beyond 0 or 1 by less counts as 0 or
              1
    features  (N, d) float, or None
    labelled  (n,) int, positions whose labels are known, each once
    labels    (n, K) of 0 and 1, in the order of `labelled`
    free      (N,) bool, what may be offered; by default all that is neither labelled nor pending
    pending   (m,) int, asked earlier and not answered yet
    finetune  (targets (N, K), epochs) -> probabilities (N, K), for weak-supervision
    dropout   () -> the probabilities (N, K) of each pass, for bald
    seed      settles ties between examples: a hash of (seed, position), so that file order never
              decides
    device    "cpu", "cuda" or "cuda:0"; predictions that are on a GPU already stay there

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> view = ArrayView(MultiClass(2), np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]]),
    ...                  labelled=[0], labels=[[1, 0]])
    >>> view.free_ids.tolist()
    [1, 2]
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
        check_instance(task, Task, "task", "a MultiClass or a MultiLabel")
        self.finetune = check_function(finetune, "finetune", optional=True)
        self.dropout = check_function(dropout, "dropout", optional=True)
        device = check_device(device)
        self.probs = check_probabilities(as_matrix(probs, "probabilities", device), task)
        size = len(self.probs)
        self.features: torch.Tensor | None = None
        if features is not None:
            self.features = as_matrix(features, "features", device)
            check_features(self.features, size)
        state = PoolState.checked(
            task,
            size,
            labelled=labelled,
            labels=labels,
            free=free,
            pending=pending,
        )
        super().__init__(task, size, self.probs.device, state, seed)

    @property
    def predictions(self) -> torch.Tensor:
        return self.probs

    def rows(
        self,
        which: slice | torch.Tensor,
        classes: slice | Sequence[int] | np.ndarray | None = None,
    ) -> torch.Tensor:
        return select(self.probs, which, classes)

    def feature_rows(self, which: slice | torch.Tensor) -> torch.Tensor:
        assert self.features is not None
        return full_precision(self.features[which])

    def finetuned(self, epochs: int) -> torch.Tensor:
        assert self.finetune is not None
        targets = self.rows(slice(None)).clone()
        labels = self.to_device(self.labels).to(targets.dtype)
        targets[self.to_device(self.labelled)] = labels
        probs = as_matrix(
            self.finetune(targets, epochs),
            "probabilities after fine-tuning",
            str(self.device),
        )
        if probs.shape != self.probs.shape:
            raise InputError(
                f"finetune gave shape {tuple(probs.shape)}, the pool has {tuple(self.probs.shape)}"
            )
        return check_probabilities(probs, self.task)

    def dropout_passes(self) -> Iterator[torch.Tensor]:
        assert self.dropout is not None
        for predicted in self.dropout():
            probs = as_matrix(predicted, "dropout probabilities", str(self.device))
            if probs.shape != self.probs.shape:
                raise InputError(
                    f"a dropout pass has shape {tuple(probs.shape)}, not {tuple(self.probs.shape)}"
                )
            yield check_probabilities(probs, self.task)

    def has(self, need: Need) -> bool:
        match check_need(need):
            case Need.PROBABILITIES:
                return True
            case Need.FEATURES:
                return self.features is not None
            case Need.FINETUNE:
                return self.finetune is not None
            case Need.DROPOUT:
                return self.dropout is not None


def select(
    matrix: torch.Tensor,
    which: slice | torch.Tensor,
    columns: slice | Sequence[int] | np.ndarray | None,
) -> torch.Tensor:
    """Rows (n, K) of a matrix, or some of their columns (n, c), in single precision or better."""
    rows = matrix[which]
    if columns is not None:
        rows = rows[:, columns]  # before they are widened: that costs the most
    return full_precision(rows)


def make_view(
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
) -> PoolView:
    """The view of a model's predictions. The arguments are those of ArrayView.

    probs: arrays, or a PredictionSource. That brings a view of its own, and with it its own
    features, fine-tuning and dropout passes: those given here are not used then.
    """
    if isinstance(probs, PredictionSource):
        return probs.round_view(
            task,
            labelled=labelled,
            labels=labels,
            free=free,
            pending=pending,
            seed=seed,
            device=device,
        )
    return ArrayView(
        task,
        probs,
        features,
        labelled=labelled,
        labels=labels,
        free=free,
        pending=pending,
        finetune=finetune,
        dropout=dropout,
        seed=seed,
        device=device,
    )
