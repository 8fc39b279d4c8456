"""A few examples of a pool, as if they were all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tailor.selection.pool_view import CHUNK, Need, PoolState, PoolView

if TYPE_CHECKING:
    import torch


class SubsetView(PoolView):
    """A pool that consists of what is labelled, pending or taken in another view, and of some of
    what is free there.

    Rows are read from the other view when they are asked for, so that a subset takes no memory for
    them; over shards they are brought into this process. What is taken in the other view when the
    subset is made is pending here. Takes and labels that come later are passed on by follow().

    pool     the other view
    offered  (m,) positions there, free and each once: what the subset offers

    >>> import numpy as np
    >>> from tailor import MultiClass
    >>> from tailor.selection.array_view import ArrayView
    >>> pool = ArrayView(MultiClass(2), np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]]))
    >>> subset = SubsetView(pool, np.array([2, 1]))
    >>> subset.positions.tolist(), subset.size
    ([1, 2], 2)
    """

    def __init__(self, pool: PoolView, offered: np.ndarray) -> None:
        taken = pool.ledger.taken
        members = [
            pool.labelled,
            pool.pending,
            taken,
            pool.skipped,
            offered,
        ]
        #: (n,) int64, ascending: the subset's examples in the other view
        self.positions = np.unique(np.concatenate(members))
        self.pool = pool
        free = np.zeros(len(self.positions), bool)
        free[self.find(offered)] = True
        pending = np.concatenate([pool.pending, taken])
        state = PoolState(
            labelled=self.find(pool.labelled),
            labels=pool._labels,
            pending=self.find(pending),
            free=free,
        )
        super().__init__(
            pool.task,
            len(self.positions),
            pool.device,
            state,
            pool._seed,
        )
        self.head = pool.head
        self.skipped = self.find(pool.skipped)
        self._indices = self.to_device(self.positions)
        self._heard_takes = pool.ledger.count
        self._heard_labels = 0

    def find(self, positions: np.ndarray) -> np.ndarray:
        """(n,) int64: where the other view's positions (n,) lie here. All are in the subset."""
        return np.searchsorted(self.positions, positions)

    def follow(self) -> None:
        """Enter what was taken and revealed in the other view since this was last called. What is
        not in the subset is left out.
        """
        pool_ledger = self.pool.ledger
        for position in pool_ledger.taken[self._heard_takes :].tolist():
            place = self._place(position)
            if place is not None:
                self.ledger.take(place)
        self._heard_takes = pool_ledger.count
        for position, label in pool_ledger.revealed[self._heard_labels :]:
            place = self._place(position)
            if place is None:
                continue
            if label is None:
                self.ledger.withdraw(place)
            else:
                self.ledger.reveal(place, label)
        self._heard_labels = len(pool_ledger.revealed)

    def _place(self, position: int) -> int | None:
        """Where the other view's position lies here; None where it is not in the subset."""
        place = int(np.searchsorted(self.positions, position))
        if place < self.size and self.positions[place] == position:
            return place
        return None

    @cached_property
    def ties(self) -> np.ndarray:
        return self.pool.ties[self.positions]

    @property
    def predictions(self) -> Any:
        return self.rows(slice(None))

    def rows(
        self, which: slice | torch.Tensor, classes: slice | Sequence[int] | np.ndarray | None = None
    ) -> torch.Tensor:
        import torch

        # A part at a time: of all rows, only the classes in question are held.
        parts = []
        for indices in self._indices[which].split(CHUNK):
            part_rows = self.pool.rows(indices, classes)
            parts.append(part_rows)
        return torch.cat(parts)

    def feature_rows(self, which: slice | torch.Tensor) -> torch.Tensor:
        indices = self._indices[which]
        return self.pool.feature_rows(indices)

    def finetuned(self, epochs: int) -> torch.Tensor:
        probs = self.pool.finetuned(epochs)
        return probs[self._indices]

    def dropout_passes(self) -> Iterator[torch.Tensor]:
        for probs in self.pool.dropout_passes():
            yield probs[self._indices]

    def boundary_distances(self, positions: np.ndarray, steps: int) -> np.ndarray:
        return self.pool.boundary_distances(self.positions[positions], steps)

    def has(self, need: Need) -> bool:
        return self.pool.has(need)
