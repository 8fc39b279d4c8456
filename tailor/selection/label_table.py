"""What is known of every example of a pool: its label, who asked for it and when, whether anyone
learned from it.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from tailor.common.checks import check_instance, check_whole
from tailor.errors import InputError
from tailor.selection.class_edits import ClassEdit
from tailor.selection.pool_view import check_positions
from tailor.selection.round import NOBODY
from tailor.task import Task

NEVER = -1


class LabelTable:
    """Labels and provenance by position. Every change is checked whole before it is made.

    Labels stand in a table with a row for each labelled example, so that a large pool costs a few
    bytes an example.
    """

    def __init__(self, task: Task, pool: int) -> None:
        self.task = check_instance(task, Task, "task", "a MultiClass or a MultiLabel")
        self.pool = 0
        self._row = np.empty(0, np.int64)  # where its label stands in the table
        self._skipped = np.empty(0, bool)
        self._aside = np.empty(
            0, bool
        )  # never to be offered: unreadable, or kept for another purpose
        self._absent = np.empty(0, bool)  # not to be offered as long as it is away
        self._round = np.empty(0, np.int64)  # in which round it was asked
        self._arm = np.empty(0, np.int64)  # by which arm
        self._chance = np.empty(0)  # with which probability that arm was drawn
        self._learned = np.empty(0, bool)  # whether the selector has heard the answer
        self._table = np.empty((64, task.size), np.uint8)
        self._rows = 0
        self._counts = np.zeros(task.size, np.int64)
        self._answered = 0
        self._predicted: dict[
            int, np.ndarray
        ] = {}  # what the model said, of those nobody has learned from yet
        self.grow(check_whole(pool, "pool", least=0))

    def grow(self, more: int) -> None:
        """New examples join at the end."""

        def longer(array: np.ndarray, value: float) -> np.ndarray:
            return np.concatenate([array, np.full(more, value, array.dtype)])

        self._row = longer(self._row, NEVER)
        self._round = longer(self._round, NEVER)
        self._arm = longer(self._arm, NOBODY)
        self._chance = longer(self._chance, 1)
        self._skipped = longer(self._skipped, False)
        self._aside = longer(self._aside, False)
        self._absent = longer(self._absent, False)
        self._learned = longer(self._learned, False)
        self.pool += more

    def copy(self) -> LabelTable:
        """LabelTable of their own, as these stand now."""
        twin = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(twin, name, value.copy())
        twin._predicted = dict(self._predicted)
        return twin

    @property
    def _labelled(self) -> np.ndarray:
        return self._row != NEVER

    @property
    def labelled(self) -> np.ndarray:
        """(n,) positions with a label, ascending."""
        return np.flatnonzero(self._labelled)

    @property
    def labels(self) -> np.ndarray:
        """(n, K) float32, in the order of `labelled`."""
        return self.labels_of(self.labelled)

    @property
    def unlabelled(self) -> np.ndarray:
        """(N,) bool."""
        return ~self._labelled

    @property
    def counts(self) -> np.ndarray:
        """(K,) labels in each class."""
        return self._counts.astype(np.float64)

    @property
    def answered(self) -> int:
        """How many have a label."""
        return self._answered

    @property
    def pending(self) -> np.ndarray:
        """(m,) positions that were asked and are neither answered nor skipped."""
        return np.flatnonzero((self._round != NEVER) & ~self._labelled & ~self._skipped)

    @property
    def free(self) -> np.ndarray:
        """(N,) bool: what may be asked."""
        return self.free_in(slice(None))

    def free_in(self, part: slice) -> np.ndarray:
        """bool for each of these positions."""
        return self.untouched_in(part) & ~self._aside[part] & ~self._absent[part]

    @property
    def untouched(self) -> np.ndarray:
        """(N,) bool: neither asked, told nor skipped."""
        return self.untouched_in(slice(None))

    def untouched_in(self, part: slice) -> np.ndarray:
        """bool for each of these positions."""
        return (self._row[part] == NEVER) & ~self._skipped[part] & (self._round[part] == NEVER)

    @property
    def skipped(self) -> np.ndarray:
        """(m,) positions that were skipped."""
        return np.flatnonzero(self._skipped)

    @property
    def credited(self) -> np.ndarray:
        """(m,) positions that an arm asked for and that were answered."""
        return np.flatnonzero(self._labelled & (self._arm != NOBODY))

    def has_label(self, positions: np.ndarray | int) -> np.ndarray:
        """bool for each."""
        found: np.ndarray = self._row[positions] != NEVER
        return found

    def is_skipped(self, position: int) -> bool:
        return bool(self._skipped[position])

    def is_untouched(self, position: int) -> bool:
        return bool(
            self._row[position] == NEVER
            and self._round[position] == NEVER
            and not self._skipped[position]
        )

    def is_pending(self, position: int) -> bool:
        return bool(
            self._row[position] == NEVER
            and self._round[position] != NEVER
            and not self._skipped[position]
        )

    def is_absent(self, position: int) -> bool:
        """Whether it is set aside or away, so that nobody can look at it."""
        return bool(self._aside[position] or self._absent[position])

    def labels_of(self, positions: np.ndarray) -> np.ndarray:
        """(n, K) float32 of positions that have a label."""
        return self._table[self._row[positions]].astype(np.float32)

    @property
    def predicted(self) -> dict[int, np.ndarray]:
        """What the model said (K,), of those nobody has learned from yet; by position."""
        return self._predicted

    def credit(self, position: int, arm: int) -> None:
        """It was this arm's pick, if it still is one: not where it was offered again since."""
        if self._arm[position] != NOBODY:
            self._arm[position] = arm

    def arms_of(self, positions: np.ndarray) -> np.ndarray:
        return self._arm[positions]

    def chances_of(self, positions: np.ndarray) -> np.ndarray:
        return self._chance[positions]

    def ask(
        self,
        positions: np.ndarray,
        number: int,
        arms: np.ndarray,
        chances: np.ndarray,
        predicted: np.ndarray,
    ) -> None:
        """Enter picks of round `number`: who asked, how likely that was, and what the model said
        (n, K).
        """
        self._round[positions], self._arm[positions], self._chance[positions] = (
            number,
            arms,
            chances,
        )
        self._predicted.update(zip(positions.tolist(), predicted))

    def tell(self, positions: Any, labels: Any) -> bool:
        """Enter labels (n, K); whether one was changed that the selector has learned from."""
        where = check_positions(positions, self.pool, "positions")
        labels = self.task.check_labels(labels)
        if len(labels) != len(where):
            raise InputError(f"{len(where)} positions but {len(labels)} labels")
        known = self._row[where] != NEVER
        changed = np.zeros(len(where), bool)
        changed[known] = (self._table[self._row[where[known]]] != labels[known]).any(1)
        changed[~known] = True  # one that was learned from and withdrawn has its label again
        self._counts -= self._table[self._row[where[known]]].sum(0, dtype=np.int64)
        self._add_rows(where[~known])
        self._table[self._row[where]], self._skipped[where] = labels, False
        self._counts += self._table[self._row[where]].sum(0, dtype=np.int64)
        self._answered += int((~known).sum())
        return bool((changed & self._learned[where]).any())

    def withdraw(self, positions: Any) -> bool:
        """These answers are no more: what was asked waits again; whether one is gone that the
        selector learned from.
        """
        where = check_positions(positions, self.pool, "positions")
        known = where[self._row[where] != NEVER]
        self._counts -= self._table[self._row[known]].sum(0, dtype=np.int64)
        self._answered -= len(known)
        self._row[known], self._skipped[where] = NEVER, False
        return bool(self._learned[known].any())

    def _add_rows(self, positions: np.ndarray) -> None:
        needed = self._rows + len(positions)
        if needed > len(self._table):
            room = np.empty((2 * needed - len(self._table), self.task.size), np.uint8)
            self._table = np.concatenate([self._table, room])
        self._row[positions] = np.arange(self._rows, needed)
        self._rows = needed

    def set_absent(self, positions: np.ndarray) -> None:
        """These, and no others, are away for now."""
        self._absent[:] = False
        self._absent[positions] = True

    def set_aside(self, positions: Any) -> None:
        """These are never offered: unreadable, or kept for another purpose."""
        self._aside[check_positions(positions, self.pool, "positions")] = True

    def skip(self, positions: Any) -> None:
        where = check_positions(positions, self.pool, "positions")
        if self._labelled[where].any():
            raise InputError(
                f"example {where[self._labelled[where]][0]} has a label: it can't be skipped"
            )
        self._skipped[where] = True

    def offer_again(self, positions: Any) -> None:
        where = check_positions(positions, self.pool, "positions")
        if not self._skipped[where].all():
            raise InputError(
                f"example {where[~self._skipped[where]][0]} is not skipped: nothing to offer again"
            )
        self._skipped[where], self._round[where], self._arm[where] = False, NEVER, NOBODY
        self._learned[where] = False

    def to_learn(self, among: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(positions (n,), predictions (n, K)) of answered picks, late ones too, that the selector
        hasn't heard of; or of those among these positions that are still an arm's picks.
        """
        if among is None:
            where = np.flatnonzero(self._labelled & (self._arm != NOBODY) & ~self._learned)
        else:
            where = among[(self._arm[among] != NOBODY) & ~self._learned[among]]
        rows = [self._predicted[i] for i in where.tolist()]
        return where, np.array(rows, np.float32).reshape(-1, self.task.size)

    def mark_learned(self, positions: np.ndarray) -> None:
        self._learned[positions] = True
        for position in positions.tolist():
            self._predicted.pop(position, None)

    def reclass(self, change: ClassEdit, arms: np.ndarray) -> None:
        """The classes are others from now on. arms (M,): what each arm has become."""
        self.task = change.after
        self._table = change.labels(self._table[: self._rows])
        self._counts = self._table[self._row[self.labelled]].sum(0, dtype=np.int64)
        self._predicted = change.shares_by_key(self._predicted)
        asked = self._arm != NOBODY
        self._arm[asked] = arms[self._arm[asked]]
