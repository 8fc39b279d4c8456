"""Which examples of a pool can be asked for at all."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from tailor.selection.columns import extended


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
        self.unreadable = extended(self.unreadable, count, False)
        self.absent = extended(self.absent, count, False)
        self.for_holdout = extended(self.for_holdout, count, False)
        if for_holdout is not None:
            first = len(self.for_holdout) - count
            self.for_holdout[first:] = for_holdout

    def copy(self) -> Availability:
        return deepcopy(self)

    def set_absent(self, positions: np.ndarray) -> None:
        """These, and no others, are away for now."""
        # All at once: who is back is not told apart, only who is away.
        self.absent[:] = False
        self.absent[positions] = True

    def readable(self, part: Any = slice(None)) -> np.ndarray:
        """bool for each position of a part: it can be read and is there."""
        unreadable = self.unreadable[part]
        absent = self.absent[part]
        hidden = np.logical_or(unreadable, absent)
        return np.logical_not(hidden)

    def for_arms(self, part: Any = slice(None)) -> np.ndarray:
        """bool for each position of a part: an arm may ask for it."""
        readable = self.readable(part)
        only_holdout = self.for_holdout[part]
        not_holdout = np.logical_not(only_holdout)
        return np.logical_and(readable, not_holdout)
