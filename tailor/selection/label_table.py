"""The table behind a learner and a run: a row an example, with its label, its pick, and whether it
belongs to the hold-out.
"""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

import numpy as np

from tailor.common.checks import check_instance, check_whole
from tailor.errors import InputError
from tailor.selection.answer_columns import AnswerColumns
from tailor.selection.availability import Availability
from tailor.selection.class_edits import ClassEdit
from tailor.selection.pick_columns import PickColumns
from tailor.selection.view_checks import check_distinct_positions
from tailor.task import Task

#: examples that are looked at together when those that may be asked for are counted
STRETCH = 16_384


class LabelTotal:
    """How many examples have a label, and how many of them each class."""

    def __init__(self, classes: int) -> None:
        self.examples = 0
        self.by_class = np.zeros(classes, np.int64)

    def copy(self) -> LabelTotal:
        return deepcopy(self)

    def add(self, labels: np.ndarray, sign: int) -> None:
        """labels (n, K) came (sign 1) or went (-1)."""
        examples = len(labels)
        # Wider than the labels, which are bytes and would overflow.
        by_class = labels.sum(0, dtype=np.int64)
        self.examples += sign * examples
        self.by_class += sign * by_class


class LabelTable:
    """A row an example: `answers`, `picks` and `availability` hold the columns.

    What an arm or the selector may see (`labelled`, `labels`, `counts`, `pending`, `free`) leaves
    out the hold-out, the examples that were asked to measure the model. Every change is checked
    whole before it is made.

    task   the classes
    pool   N, how many examples there are now

    >>> from tailor import MultiClass
    >>> table = LabelTable(MultiClass(["cat", "dog"]), 4)
    >>> table.tell([2, 0], [[1, 0], [0, 1]])
    False
    >>> table.labelled, table.counts
    (array([0, 2]), array([1., 1.]))
    """

    def __init__(self, task: Task, pool: int) -> None:
        self.task = check_instance(
            task,
            Task,
            "task",
            "a MultiClass or a MultiLabel",
        )
        classes = task.size
        self.pool = 0
        self.answers = AnswerColumns(classes)
        self.picks = PickColumns(classes)
        self.availability = Availability()
        # Totals are kept up to date, since they are wanted after every answer.
        self.total = LabelTotal(classes)  # the hold-out's too
        self.holdout_total = LabelTotal(classes)
        count = check_whole(pool, "pool", least=0)
        self.grow(count)

    def grow(self, count: int, for_holdout: np.ndarray | None = None) -> None:
        """New examples join at the end. for_holdout (count,) bool: which of them only the hold-out
        may ask for.
        """
        self.answers.grow(count)
        self.picks.grow(count)
        self.availability.grow(count, for_holdout)
        self.pool += count

    def copy(self) -> LabelTable:
        """A table of its own, as this one stands now."""
        twin = copy(self)
        twin.answers = self.answers.copy()
        twin.picks = self.picks.copy()
        twin.availability = self.availability.copy()
        twin.total = self.total.copy()
        twin.holdout_total = self.holdout_total.copy()
        return twin

    # ------------------------------------------------------------------ what may be learned from

    @property
    def labelled(self) -> np.ndarray:
        """(n,) positions with a label, ascending; without the hold-out's."""
        answered = self.answers.labels.positions
        return self.picks.without_holdout(answered)

    @property
    def labels(self) -> np.ndarray:
        """(n, K) float32, in the order of `labelled`."""
        return self.labels_of(self.labelled)

    @property
    def unlabelled(self) -> np.ndarray:
        """(N,) bool: what is not in `labelled`."""
        # The hold-out's labels are not to be learned from: they count as none.
        has_no_label = ~self.answers.labels.mask
        in_holdout = self.picks.holdout
        return np.logical_or(has_no_label, in_holdout)

    @property
    def counts(self) -> np.ndarray:
        """(K,) float64: labels in each class, without the hold-out's."""
        of_all = self.total.by_class
        of_holdout = self.holdout_total.by_class
        counts = of_all - of_holdout
        return counts.astype(np.float64)

    @property
    def answered(self) -> int:
        """How many examples have a label, without the hold-out's."""
        of_all = self.total.examples
        of_holdout = self.holdout_total.examples
        return of_all - of_holdout

    @property
    def pending(self) -> np.ndarray:
        """(m,) positions that were asked and are neither answered nor skipped; without the
        hold-out's.
        """
        answers = self.answers
        is_answered = answers.labels.mask | answers.skipped
        is_pending = self.picks.stands & ~is_answered
        pending = np.flatnonzero(is_pending)
        return self.picks.without_holdout(pending)

    @property
    def free(self) -> np.ndarray:
        """(N,) bool: what an arm may ask for."""
        untouched = self.untouched()
        for_arms = self.availability.for_arms()
        return untouched & for_arms

    # ------------------------------------------------------------------ everything

    @property
    def holdout_labelled(self) -> np.ndarray:
        """(n,) positions of the hold-out that have a label, ascending."""
        labelled = self.answers.labels.positions
        in_holdout = self.picks.is_holdout(labelled)
        return labelled[in_holdout]

    def has_label(self, positions: np.ndarray | int) -> np.ndarray:
        """bool for each, the hold-out's too."""
        return self.answers.labels.has(positions)

    def labels_of(self, positions: np.ndarray) -> np.ndarray:
        """(n, K) float32 of positions that have a label, the hold-out's too."""
        rows = self.answers.labels.get(positions)
        return rows.astype(np.float32)

    def untouched(self, part: Any = slice(None)) -> np.ndarray:
        """bool for each position of a part: neither asked, told nor skipped."""
        answers = self.answers
        has_label = answers.labels.has(part)
        is_skipped = answers.skipped[part]
        is_asked = self.picks.stands[part]
        is_touched = has_label | is_skipped | is_asked
        return np.logical_not(is_touched)

    # ------------------------------------------------------------------ changes

    def tell(self, positions: Any, labels: Any) -> bool:
        """Enter labels (n, K); whether one was changed that the selector has learned from."""
        told = check_distinct_positions(positions, self.pool, "positions")
        labels = self.task.check_labels(labels)
        position_count = len(told)
        label_count = len(labels)
        if label_count != position_count:
            raise InputError(f"{position_count} positions but {label_count} labels")
        # Answers that are replaced leave the totals first.
        self._count(told, -1)
        changed = self.answers.tell(told, labels)
        self._count(told, 1)
        # One that was learned from and withdrawn has its label again: that is a change, too.
        is_learned = self.picks.learned[told]
        concerns_selector = changed & is_learned
        return bool(concerns_selector.any())

    def withdraw(self, positions: Any) -> bool:
        """These answers are no more: what was asked waits again; whether one is gone that the
        selector learned from.
        """
        withdrawn = check_distinct_positions(positions, self.pool, "positions")
        # Asked before the labels are gone.
        had_label = self.has_label(withdrawn)
        self._count(withdrawn, -1)
        self.answers.withdraw(withdrawn)
        is_learned = self.picks.learned[withdrawn]
        concerns_selector = had_label & is_learned
        return bool(concerns_selector.any())

    def skip(self, positions: Any) -> None:
        """These can't be answered. Raises InputError where one has a label."""
        skipped = check_distinct_positions(positions, self.pool, "positions")
        self.answers.skip(skipped)

    def offer_again(self, positions: Any) -> None:
        """These may be asked again. Raises InputError where one was not skipped."""
        offered = check_distinct_positions(positions, self.pool, "positions")
        self.answers.unskip(offered)
        self.picks.revoke(offered)

    def reclass(self, change: ClassEdit, arms: np.ndarray) -> None:
        """The classes are others from now on. arms (M,): what each arm has become."""
        self.task = change.after
        self.answers.reclass(change)
        self.picks.reclass(change, arms)
        # Classes that became one may both have been in a row: the totals can't be added up.
        classes = change.after.size
        self.total = LabelTotal(classes)
        self.holdout_total = LabelTotal(classes)
        labelled = self.answers.labels.positions
        self._count(labelled, 1)

    def _count(self, positions: np.ndarray, sign: int) -> None:
        """Add the labels of those of the positions that have one (sign 1), or take them off."""
        has_label = self.has_label(positions)
        labelled = positions[has_label]
        labels = self.answers.labels.get(labelled)
        in_holdout = self.picks.is_holdout(labelled)
        holdout_labels = labels[in_holdout]
        self.total.add(labels, sign)
        self.holdout_total.add(holdout_labels, sign)


def count_askable(table: LabelTable, most: int) -> int:
    """How many examples may still be asked for, by an arm or for the hold-out, but no more than
    `most`: a large pool is not gone through.
    """
    count = 0
    start = 0
    while count < most and start < table.pool:
        part = slice(start, start + STRETCH)
        untouched = table.untouched(part)
        readable = table.availability.readable(part)
        is_askable = untouched & readable
        count += int(is_askable.sum())
        start += STRETCH
    # The last part may have had more than was wanted, and `most` may be below 0.
    count = min(count, most)
    return max(0, count)
