"""Small families and a snapshot of a loop, for the tests of rounds and loops."""

from __future__ import annotations

import numpy as np

from tailor.errors import Exhausted
from tailor.strategies import Cursor, Strategy


class Few(Strategy):
    """Gives the first `count` free examples from `start` up, then is dry. Counts how often it is
    opened.
    """

    def __init__(self, name, start=0, count=2):
        self.name = name
        self.start = start
        self.count = count
        self.opened = []

    def open(self, arms, view, pulls, rngs):
        self.opened.append(list(pulls))
        return [FewCursor(view, self) for _ in arms]


class FewCursor(Cursor):
    def __init__(self, view, family):
        super().__init__(view)
        self.at = family.start
        self.left = family.count

    def take(self):
        free = np.flatnonzero(self.ledger.free[self.at :])
        if self.left == 0 or len(free) == 0:
            raise Exhausted("that was all")
        self.left -= 1
        return int(self.at + free[0])


def snapshot(learner):
    """All that a failed call must leave as it was."""
    table = learner.label_table
    everything = np.arange(table.pool)
    label_table = columns(table.answers) | columns(table.picks) | columns(table.availability)
    label_table["labels"] = table.answers.labels.get(everything)
    predicted = {"predictions": table.picks.predictions.get(everything)}
    state = {name: array.copy() for name, array in learner.selector.state().items()}
    return (
        learner.round,
        label_table,
        predicted,
        state,
        learner.current_round,
        len(learner.history.rounds),
    )


def credited(learner):
    """Positions that an arm asked for and that were answered."""
    return learner.label_table.picks.credited(learner.label_table.labelled)


def columns(group):
    """Copies of the arrays of a group of columns, by name."""
    return {
        name: value.copy() for name, value in vars(group).items() if isinstance(value, np.ndarray)
    }


def same(one, other):
    def arrays(a, b):
        return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)

    return (
        one[0] == other[0]
        and all(arrays(a, b) for a, b in zip(one[1:4], other[1:4]))
        and one[4] is other[4]
        and one[5] == other[5]
    )
