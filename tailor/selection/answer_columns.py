"""What was answered for every example: its label, or that it can't be answered."""

from __future__ import annotations

from copy import copy

import numpy as np

from tailor.errors import InputError
from tailor.selection.class_edits import ClassEdit
from tailor.selection.columns import extended
from tailor.selection.sparse_rows import SparseRows


class AnswerColumns:
    """The columns of a label table that are about answers, by position.

    Labels take room only for the examples that have one.
    """

    def __init__(self, classes: int) -> None:
        self.labels = SparseRows(classes, np.uint8)
        self.skipped = np.empty(0, bool)

    def grow(self, count: int) -> None:
        """Add `count` examples without an answer."""
        self.labels.grow(count)
        self.skipped = extended(self.skipped, count, False)

    def copy(self) -> AnswerColumns:
        # Rows are only ever appended, so the two may share them.
        twin = copy(self)
        twin.labels = self.labels.copy()
        twin.skipped = self.skipped.copy()
        return twin

    def tell(self, positions: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Enter labels (n, K) -> (n,) bool: which are new or other than before."""
        had_label = self.labels.has(positions)
        answered_before = positions[had_label]
        old_labels = self.labels.get(answered_before)
        new_labels = labels[had_label]
        differs = old_labels != new_labels
        # A first label is a change, whatever it says.
        changed = np.ones(len(positions), bool)
        changed[had_label] = differs.any(1)
        # Only what has changed: every row that is set takes room of its own.
        changed_positions = positions[changed]
        self.labels.set(changed_positions, labels[changed])
        self.skipped[positions] = False
        return changed

    def withdraw(self, positions: np.ndarray) -> None:
        """As if these had never been answered."""
        self.labels.clear(positions)
        self.skipped[positions] = False

    def skip(self, positions: np.ndarray) -> None:
        """These can't be answered. Raises InputError where one has a label."""
        has_label = self.labels.has(positions)
        if has_label.any():
            labelled = positions[has_label]
            first = labelled[0]
            raise InputError(f"example {first} has a label: it can't be skipped")
        self.skipped[positions] = True

    def unskip(self, positions: np.ndarray) -> None:
        """These may be answered again. Raises InputError where one was not skipped."""
        is_skipped = self.skipped[positions]
        not_skipped = positions[~is_skipped]
        if len(not_skipped):
            first = not_skipped[0]
            raise InputError(f"example {first} is not skipped: nothing to offer again")
        self.skipped[positions] = False

    def reclass(self, change: ClassEdit) -> None:
        """The classes are others from now on."""
        self.labels.convert(change.labels)
