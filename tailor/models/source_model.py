"""What models share that read a pool's entries as rows of a Source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from tailor.errors import InputError
from tailor.models.base import Model, ProgressCallback, as_array, quiet
from tailor.models.inputs import check_position_array, keep_readable
from tailor.models.source import Source
from tailor.models.targets import Targets

#: the rate of dropout() where a model is trained without dropout
DEFAULT_DROPOUT = 0.2


class SourceModel(Model):
    """A model over the rows of a Source, with fine-tuning and dropout in parts.

    A derived class sets `name` and `source`.
    """

    can_finetune = True
    can_dropout = True
    can_finetune_in_parts = True
    can_dropout_in_parts = True
    name: str
    source: Source

    def prepare(self, progress: ProgressCallback = quiet) -> dict[int, str]:
        return self.source.prepare(progress)

    def dropout(self, passes: int, *, seed: int) -> Iterator[np.ndarray]:
        # dropout_at() is a generator: without this, a model that is not trained would be refused
        # only when the first pass is asked for.
        self._trained()
        self._ensure_prepared()
        everything = np.arange(len(self.source.rows))
        return self.dropout_at(everything, passes, seed=seed)

    @abstractmethod
    def dropout_at(
        self,
        positions: np.ndarray,
        passes: int,
        *,
        seed: int,
    ) -> Iterator[np.ndarray]: ...

    @abstractmethod
    def _trained(self) -> Any:
        """What fit() or load() made. Raises InputError before either was called."""

    def _not_trained(self) -> InputError:
        return InputError(f"this {self.name} model is not trained yet: call fit() or load() first")

    def _ensure_prepared(self) -> None:
        """Compute the rows of entries that came since the last prepare()."""
        computed = len(self.source.rows)
        if computed < len(self.pool):
            self.prepare()

    def _check_positions(self, positions: Any) -> np.ndarray:
        """(n,) int64, with their rows computed."""
        self._ensure_prepared()
        count = len(self.source.rows)
        return check_position_array(positions, count)

    def _check_training_set(
        self, positions: Any, labels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions (m,) int64 that can be read, and their labels (m, K)."""
        checked_labels = self.task.check_labels(labels)
        checked_positions = self._check_positions(positions)
        return keep_readable(checked_positions, checked_labels, self.source.readable)

    def _check_targets(self, targets: Any) -> np.ndarray | Targets:
        """Soft targets (N, K) of the whole pool: Targets, an array or a tensor."""
        checked: np.ndarray | Targets
        if isinstance(targets, Targets):
            checked = targets
        else:
            checked = as_array(targets)
        self._ensure_prepared()
        expected = (len(self.source.rows), self.task.size)
        if checked.shape != expected:
            raise InputError(f"targets have shape {checked.shape}, not {expected}")
        return checked
