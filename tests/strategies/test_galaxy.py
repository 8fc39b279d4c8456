"""galaxy against a walk over the sorted pool for each pick."""

from __future__ import annotations

import numpy as np
import pytest
from cases import cases, many, open_arm, others, reveal_some, walk
from hypothesis import given
from hypothesis import strategies as st
from oracles import galaxy_pick

from tailor.errors import InputError
from tailor.selection.array_view import ArrayView
from tailor.strategies.galaxy.galaxy import Galaxy
from tailor.strategies.galaxy.galaxy_all import GalaxyAll
from tailor.task import MultiClass, MultiLabel

MODES = ["split", "predicted", "revealed"]


def check_agreement(case, strategy, mode, klass, share, reveal):
    view = case.view()
    classes = [klass] if klass is not None else list(range(case.task.size))
    cursor = open_arm(strategy, view, klass, pulls=3)

    def check(index):
        expected = galaxy_pick(view, classes, mode)
        assert expected is None or index == expected

    walk(view, cursor, case.seed, share, check, reveal_some(view, case.pool, reveal))


@pytest.mark.parametrize("mode", MODES)
@many(400)
@given(case=cases(), share=others, reveal=st.sampled_from([0.0, 0.5, 1.0]))
def test_one_class(mode, case, share, reveal):
    klass = case.seed % case.task.size
    check_agreement(case, Galaxy(pending=mode), mode, klass, share, reveal)


@pytest.mark.parametrize("mode", MODES)
@many(150)
@given(case=cases(kinds=(MultiClass,)), share=others, reveal=st.sampled_from([0.0, 0.5]))
def test_all_classes(mode, case, share, reveal):
    check_agreement(case, GalaxyAll(pending=mode), mode, None, share, reveal)


@pytest.mark.parametrize("classes", [2, 50])
@many(12)
@given(data=st.data())
def test_few_and_many_classes(classes, data):
    case = data.draw(cases(classes=classes, grids=(64,)))
    check_agreement(case, Galaxy(), "split", classes - 1, 0.3, 0.0)
    if isinstance(case.task, MultiClass) and classes == 2:
        check_agreement(case, GalaxyAll(), "split", None, 0.3, 0.0)


@many(40)
@given(case=cases(grids=(64,)), dtype=st.sampled_from([np.float32, np.float16]))
def test_lower_precision_gives_the_same_picks(case, dtype):
    """Multiples of 1/64 are exact in half precision too."""
    picks = []
    for precision in (np.float64, dtype):
        view = case.view(dtype=precision)
        mine = []
        walk(view, open_arm(Galaxy(), view, 0), case.seed, 0.0, mine.append)
        picks.append(mine)
    known = galaxy_pick(case.view(), [0], "split")
    assert known is None or picks[0][0] == known
    if known is not None:
        assert picks[0][0] == picks[1][0]
    assert sorted(picks[0]) == sorted(picks[1])


def line_of_ten(labelled, labels, **more):
    """One class; the score of example i is i/16."""
    probs = np.arange(10)[:, None] / 16
    return ArrayView(
        MultiLabel(1), probs, labelled=labelled, labels=np.array(labels)[:, None], **more
    )


def test_takes_the_middle_of_the_shortest_cut():
    view = line_of_ten([0, 5, 9], [0, 1, 0])
    assert open_arm(Galaxy(), view).take() == 7  # 6, 7, 8 lie in the shorter cut


def test_split_keeps_both_halves_open():
    view = line_of_ten([0, 9], [0, 1])
    cursor = open_arm(Galaxy(), view)
    picks = []
    for _ in range(4):
        picks.append(cursor.take())
        view.ledger.take(picks[-1])
    assert picks == [5, 7, 8, 6]  # 3 above 5 are fewer than 4 below; of equals the highest


def test_predicted_goes_where_the_model_says_the_cut_is():
    view = line_of_ten([0, 9], [0, 1])
    cursor = open_arm(Galaxy(pending="predicted"), view)
    view.ledger.take(
        cursor.take()
    )  # 5/16 < 1/2: it stands as a negative, so only the upper half stays open
    assert cursor.take() == 7


@pytest.mark.parametrize(("label", "expected"), [(0, 7), (1, 3)])
def test_revealed_bisects(label, expected):
    view = line_of_ten([0, 9], [0, 1])
    cursor = open_arm(Galaxy(pending="revealed"), view)
    view.ledger.take(cursor.take())
    view.ledger.reveal(5, np.array([label]))
    assert cursor.take() == expected


def test_split_and_predicted_never_use_a_revealed_label():
    for mode in ("split", "predicted"):
        picks = []
        for label in (0, 1):
            view = line_of_ten([0, 9], [0, 1])
            cursor = open_arm(Galaxy(pending=mode), view)
            view.ledger.take(cursor.take())
            view.ledger.reveal(5, np.array([label]))
            picks.append(cursor.take())
        assert picks[0] == picks[1]


def test_with_no_open_cut_takes_what_is_nearest_to_a_closed_one():
    view = line_of_ten([4, 5], [0, 1])
    cursor = open_arm(Galaxy(), view)
    picks = []
    for _ in range(4):
        picks.append(cursor.take())
        view.ledger.take(picks[-1])
    assert picks == [6, 3, 7, 2]


def test_a_positive_below_a_negative_is_no_closed_cut():
    """Without a cut of either kind every free example has the same chance."""
    counts = np.zeros(10)
    for seed in range(800):
        counts[open_arm(Galaxy(), line_of_ten([4, 5], [1, 0]), seed=seed).take()] += 1
    assert counts[[4, 5]].sum() == 0
    expected = 800 / 8
    assert (
        (counts[counts > 0] - expected) ** 2 / expected
    ).sum() < 24.3  # chi-square, 7 degrees, p = 0.001


def test_skipped_examples_are_not_on_the_line():
    free = np.ones(10, bool)
    free[[0, 9, 5, 6, 7]] = False
    assert (
        open_arm(Galaxy(), line_of_ten([0, 9], [0, 1], free=free)).take() == 3
    )  # of 1, 2, 3, 4, 8


def test_multi_class_ties_are_settled_by_the_probability():
    """Where the class leads, its distance to the largest is 0 for all: p orders them."""
    lead = np.array([0.9, 0.5, 0.7, 0.6, 0.8])
    view = ArrayView(
        MultiClass(2), np.stack([lead, 1 - lead], 1), labelled=[0, 1], labels=[[1, 0], [0, 1]]
    )
    assert open_arm(Galaxy(), view, 0).take() == 2  # .5 < .6 < .7 < .8 < .9


def test_pending_must_be_a_mode():
    with pytest.raises(
        InputError, match="pending is 'hidden': it must be one of split, predicted, revealed"
    ):
        Galaxy(pending="hidden")
