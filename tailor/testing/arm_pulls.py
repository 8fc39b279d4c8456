"""Pulling an arm as a round does, with a look at everything that it gives."""

from __future__ import annotations

import numpy as np

from tailor.errors import Exhausted
from tailor.selection.pool_view import PoolView
from tailor.strategies.base import Arm, Cursor


def take_all(
    arm: Arm,
    view: PoolView,
    seed: int = 0,
    others: float = 0.0,
) -> list[int]:
    """Take from one arm until nothing is left, entering each in the ledger; its own picks in order.

    others  how often another arm takes a random example in between
    """
    ledger = view.ledger
    pulls = max(1, ledger.left)
    arm_rng = np.random.default_rng(seed)
    cursor = arm.open(view, pulls, arm_rng)
    # Its own generator: how much the arm draws must not decide what the others take.
    others_rng = np.random.default_rng(seed)
    picks = []
    while ledger.left:
        if others_rng.random() < others:
            free = np.flatnonzero(ledger.free)
            taken = others_rng.choice(free)
            ledger.take(int(taken))
            continue
        index = take_free(arm, cursor, view)
        ledger.take(index)
        picks.append(index)
    # Rounds rely on Exhausted: they then give the arm's slots to others.
    try:
        extra = cursor.take()
    except Exhausted:
        return picks
    raise AssertionError(
        f"arm {arm.name!r} gave example {extra} when none was free: it must raise Exhausted"
    )


def take_free(arm: Arm, cursor: Cursor, view: PoolView) -> int:
    """The arm's next pick; AssertionError where it is not a free example of the pool."""
    index = take(arm, cursor)
    expect(0 <= index < view.size, arm, f"gave position {index}, the pool has {view.size} examples")
    expect(
        bool(view.ledger.free[index]),
        arm,
        f"gave example {index}, which is labelled, taken or set aside",
    )
    return index


def open_arm(arm: Arm, view: PoolView, pulls: int) -> Cursor:
    """A cursor of the arm with a generator that is the same each time."""
    rng = np.random.default_rng(0)
    return arm.open(view, pulls, rng)


def take(arm: Arm, cursor: Cursor) -> int:
    """The arm's next pick; AssertionError where it is exhausted or gives no position."""
    try:
        index = cursor.take()
    except Exhausted as error:
        raise AssertionError(
            f"arm {arm.name!r} is exhausted while examples are free: {error}"
        ) from error
    expect(isinstance(index, (int, np.integer)), arm, f"gave {index!r}, not a position")
    return int(index)


def expect(holds: bool, arm: Arm, message: str) -> None:
    """Raises AssertionError about an arm unless the condition holds."""
    require(holds, f"arm {arm.name!r} {message}")


def require(holds: bool, message: str) -> None:
    # Not `assert`: python -O would leave the contract out.
    if not holds:
        raise AssertionError(message)
