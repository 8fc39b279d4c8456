"""Random small rounds for the property tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tailor.errors import Exhausted
from tailor.task import MultiClass, MultiLabel
from tailor.testing import make_pool, make_view


def many(count):
    """The same examples in every run."""
    return settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@dataclass(frozen=True)
class Case:
    """A pool in some state. view() gives a fresh round on it each time."""

    task: object
    size: int
    seed: int
    grid: int | None
    copies: float
    labelled: float
    pending: float
    skipped: float
    never: int | None

    @property
    def pool(self):
        return make_pool(self.task, self.size, self.seed, grid=self.grid, copies=self.copies)

    def view(self, **more):
        return make_view(
            self.pool,
            self.seed,
            labelled=self.labelled,
            pending=self.pending,
            skipped=self.skipped,
            never=self.never,
            **more,
        )


@st.composite
def cases(draw, kinds=(MultiClass, MultiLabel), grids=(None, 4, 64), classes=None, sizes=(1, 40)):
    """Ties, copies, an unseen class, nothing labelled, one example left, examples skipped and
    pending.
    """
    task = draw(st.sampled_from(kinds))(classes or draw(st.integers(2, 6)))
    labelled, pending, skipped = draw(
        st.sampled_from(
            [
                (0.3, 0.0, 0.0),
                (0.1, 0.0, 0.1),
                (0.4, 0.2, 0.1),
                (0.15, 0.15, 0.15),
                (0.2, 0.05, 0.0),
                (0.0, 0.0, 0.0),
                (0.0, 0.3, 0.0),
                (1.0, 0.0, 0.0),
                (0.9, 0.1, 0.0),
                (0.6, 0.0, 0.2),
            ]
        )
    )
    return Case(
        task,
        size=draw(st.integers(*sizes) | st.integers(sizes[1] // 2, sizes[1])),
        seed=draw(st.integers(0, 2**32 - 1)),
        grid=draw(st.sampled_from(grids)),
        copies=draw(st.sampled_from([0.0, 0.0, 0.4])),
        labelled=labelled,
        pending=pending,
        skipped=skipped,
        never=draw(st.sampled_from([None, None, 0, task.size - 1])),
    )


#: how often another arm takes an example in between
others = st.sampled_from([0.0, 0.3, 0.7])


def walk(view, cursor, seed, share, check, after=lambda rng: None):
    """Take until nothing is left, check(pick) before it is entered, other arms taking a share in
    between.
    """
    rng = np.random.default_rng((seed, 2))
    while view.ledger.left:
        if rng.random() < share:
            view.ledger.take(int(rng.choice(np.flatnonzero(view.ledger.free))))
        else:
            index = cursor.take()
            assert view.ledger.free[index]
            check(index)
            view.ledger.take(index)
        after(rng)
    try:
        cursor.take()
    except Exhausted:
        return
    raise AssertionError("an example was given when none was free")


def reveal_some(view, pool, share):
    """A step that reveals labels of taken examples, some of them wrong at first and told again
    later, and withdraws some.
    """

    def step(rng):
        for i in view.ledger.taken.tolist():
            if rng.random() < share / 3:
                label = pool.truth[i]
                view.ledger.reveal(i, np.roll(label, 1) if rng.random() < 0.2 else label)
            if rng.random() < share / 10:
                view.ledger.withdraw(i)

    return step


def open_arm(strategy, view, klass=None, pulls=None, seed=0):
    arm = strategy.arms(view.task)[klass or 0]
    return arm.open(view, pulls or view.ledger.left, np.random.default_rng(seed))
