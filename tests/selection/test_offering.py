"""A view that offers another part of the pool."""

from __future__ import annotations

import numpy as np

from tailor import MultiClass
from tailor.selection.array_view import ArrayView

FREE = np.array([True, True, False, True])
FEWER = np.array([False, True, False, False])


def test_what_follows_from_free_is_worked_out_anew():
    view = ArrayView(MultiClass(2), np.full((4, 2), 0.5), free=FREE)
    free_ids = view.free_ids
    closed = view.closed
    part = view.offering(FEWER)
    assert part.free_ids.tolist() == [1]
    assert part.closed.tolist() == (~FEWER).tolist()
    # The view itself offers what it did, and works it out once.
    assert view.free_ids is free_ids
    assert view.closed is closed
    assert free_ids.tolist() == [0, 1, 3]
    assert closed.tolist() == (~FREE).tolist()


def test_its_ledger_is_its_own():
    view = ArrayView(MultiClass(2), np.full((4, 2), 0.5), free=FREE)
    part = view.offering(FEWER)
    part.ledger.take(1)
    assert part.ledger.left == 0
    assert view.ledger.left == 3
