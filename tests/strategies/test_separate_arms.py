"""SeparateArms: the base of families whose arms are opened one by one."""

from __future__ import annotations

import numpy as np
import pytest

from tailor import Exhausted, MultiClass, MultiLabel
from tailor.selection.array_view import ArrayView
from tailor.strategies import Cursor, SeparateArms
from tailor.testing import check_strategy


class FirstFree(SeparateArms):
    """The free example with the smallest position."""

    name = "first-free"

    def __init__(self):
        self.opened = []

    def cursor(self, view, pulls, rng):
        self.opened.append((view, pulls, rng))
        return FirstFreeCursor(view)


class FirstFreeCursor(Cursor):
    def take(self):
        free = np.flatnonzero(self.ledger.free)
        if len(free) == 0:
            raise Exhausted("every example has been taken")
        return int(free[0])


class WithoutCursor(SeparateArms):
    """Lacks what a family has to write."""

    name = "without-cursor"


@pytest.fixture
def view():
    return ArrayView(MultiClass(2), np.full((4, 2), 0.5), free=np.array([False, True, True, True]))


@pytest.mark.parametrize("task", [MultiClass(3), MultiLabel(3)])
def test_a_family_that_writes_cursor_keeps_the_contract(task):
    check_strategy(FirstFree(), task)


def test_each_arm_is_opened_with_its_own_pulls_and_generator(view):
    family = FirstFree()
    (arm,) = family.arms(view.task)
    rngs = [np.random.default_rng(seed) for seed in (0, 1)]
    cursors = family.open([arm, arm], view, [3, 5], rngs)
    assert [opened[1:] for opened in family.opened] == [(3, rngs[0]), (5, rngs[1])]
    assert all(opened[0] is view for opened in family.opened)
    assert cursors[0] is not cursors[1]
    assert [cursor.take() for cursor in cursors] == [1, 1]  # the caller enters what was taken


def test_an_arm_opens_itself(view):
    (arm,) = FirstFree().arms(view.task)
    assert arm.open(view, 1, np.random.default_rng(0)).take() == 1


def test_a_generator_too_few_is_an_error(view):
    family = FirstFree()
    (arm,) = family.arms(view.task)
    with pytest.raises(ValueError, match="shorter"):
        family.open([arm, arm], view, [3, 5], [np.random.default_rng(0)])


def test_a_family_without_cursor_can_not_be_made():
    with pytest.raises(TypeError, match="cursor"):
        WithoutCursor()
