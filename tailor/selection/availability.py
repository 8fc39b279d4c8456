"""Which examples of a pool can be asked for at all."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np


class Availability:
    """Columns by position: what can't be read, what is away for now, what the hold-out drew.

    What the hold-out drew may be asked for to measure the model, and never by an arm.
    """

    def __init__(self) -> None:
        self.unreadable = np.empty(0, bool)
        self.absent = np.empty(0, bool)
        self.for_holdout = np.empty(0, bool)

    def grow(self, count: int, for_holdout: np.ndarray | None = None) -> None:
        """Add `count` examples. for_holdout (count,) bool: which of them the hold-out drew."""
        none = np.zeros(count, bool)
        drawn = none if for_holdout is None else for_holdout
        self.unreadable = np.concatenate([self.unreadable, none])
        self.absent = np.concatenate([self.absent, none])
        self.for_holdout = np.concatenate([self.for_holdout, drawn])

    def copy(self) -> Availability:
        twin = copy(self)
        twin.unreadable = self.unreadable.copy()
        twin.absent = self.absent.copy()
        twin.for_holdout = self.for_holdout.copy()
        return twin

    def set_absent(self, positions: np.ndarray) -> None:
        """These, and no others, are away for now."""
        self.absent[:] = False
        self.absent[positions] = True

    def readable(self, part: Any = slice(None)) -> np.ndarray:
        """bool for each position of a part: it can be read and is there."""
        return np.logical_not(self.unreadable[part] | self.absent[part])

    def for_arms(self, part: Any = slice(None)) -> np.ndarray:
        """bool for each position of a part: an arm may ask for it."""
        return np.logical_and(self.readable(part), ~self.for_holdout[part])
