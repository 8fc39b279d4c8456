"""The pool as arrays in memory, on the host or on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.common.checks import check_device_name, check_function, check_instance
from tailor.common.linear_head import LinearHead
from tailor.errors import InputError
from tailor.selection.matrix_view import MatrixView
from tailor.selection.pool_view import (
    Need,
    PoolState,
    PoolView,
    PredictionSource,
    check_need,
)
from tailor.selection.view_checks import (
    as_matrix,
    check_distances,
    check_features,
    check_probabilities,
)
from tailor.task import Task

if TYPE_CHECKING:
    import torch

#: (soft targets (N, K) tensor, epochs) -> probabilities (N, K) of a fine-tuned copy of the model
FineTune = Callable[[Any, int], Any]
#: () -> the probabilities (N, K) of each pass with dropout on
Dropout = Callable[[], Iterable[Any]]
#: (positions (n,), steps) -> distances (n,) to the nearest boundary between two classes
BoundaryDistances = Callable[[np.ndarray, int], Any]


class ArrayView(MatrixView):
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
    head      (weights (K, d), bias (K,) or None) of the model's last layer on these features, or a
              LinearHead; families that measure distances or refit heads are closer to the model
              with it
    boundary_distances  (positions (n,), steps) -> distances (n,), for deepfool with steps
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
        head: Any = None,
        boundary_distances: BoundaryDistances | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        check_instance(
            task,
            Task,
            "task",
            "a MultiClass or a MultiLabel",
        )
        self.finetune = check_function(finetune, "finetune", optional=True)
        self.dropout = check_function(dropout, "dropout", optional=True)
        self._measure = check_function(boundary_distances, "boundary_distances", optional=True)
        device = check_device_name(device)
        matrix = as_matrix(probs, "probabilities", device)
        self._probs = check_probabilities(matrix, task)
        self._features: torch.Tensor | None = None
        size = len(matrix)
        if features is not None:
            self._features = as_matrix(features, "features", device)
            check_features(self._features, size)
        if head is not None:
            width = None
            if self._features is not None:
                width = self._features.shape[1]
            self.head = LinearHead.checked(head, task.size, width)
        state = PoolState.checked(
            task,
            size,
            labelled=labelled,
            labels=labels,
            free=free,
            pending=pending,
        )
        super().__init__(
            task,
            size,
            matrix.device,
            state,
            seed,
        )

    @property
    def probs(self) -> torch.Tensor:
        return self._probs

    @property
    def features(self) -> torch.Tensor | None:
        return self._features

    def finetuned(self, epochs: int) -> torch.Tensor:
        assert self.finetune is not None
        targets = self._soft_targets()
        predicted = self.finetune(targets, epochs)
        probs = as_matrix(predicted, "probabilities after fine-tuning", str(self.device))
        if probs.shape != self.probs.shape:
            raise InputError(
                f"finetune gave shape {tuple(probs.shape)}, the pool has {tuple(self.probs.shape)}"
            )
        return check_probabilities(probs, self.task)

    def _soft_targets(self) -> torch.Tensor:
        """(N, K): the labels told so far, and what the model says of all others."""
        all_rows = slice(None)
        # A copy: single precision comes out of rows() as the view's own matrix.
        targets = self.rows(all_rows).clone()
        labels = self.to_device(self.labels)
        labelled = self.to_device(self.labelled)
        targets[labelled] = labels.to(targets.dtype)
        return targets

    def dropout_passes(self) -> Iterator[torch.Tensor]:
        assert self.dropout is not None
        for predicted in self.dropout():
            probs = as_matrix(predicted, "dropout probabilities", str(self.device))
            if probs.shape != self.probs.shape:
                raise InputError(
                    f"a dropout pass has shape {tuple(probs.shape)}, not {tuple(self.probs.shape)}"
                )
            yield check_probabilities(probs, self.task)

    def boundary_distances(self, positions: np.ndarray, steps: int) -> np.ndarray:
        assert self._measure is not None
        measured = self._measure(positions, steps)
        return check_distances(measured, len(positions))

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
            case Need.GRADIENTS:
                return self._measure is not None


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
    head: Any = None,
    boundary_distances: BoundaryDistances | None = None,
    seed: int = 0,
    device: str = "cpu",
) -> PoolView:
    """The view of a model's predictions. The arguments are those of ArrayView.

    probs: arrays, or a PredictionSource. That brings a view of its own, and with it its own
    features, fine-tuning, dropout passes, head and distances: those given here are not used then.
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
        head=head,
        boundary_distances=boundary_distances,
        seed=seed,
        device=device,
    )
