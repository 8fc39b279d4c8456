"""Who answers in a simulation: known labels, and labels with mistakes at a stated rate."""

from __future__ import annotations

import numpy as np
import pytest
from small import Points

from tailor.annotation.simulated import KnownLabels, NoisyAnnotator
from tailor.errors import InputError
from tailor.task import MultiClass, MultiLabel

SIZE = 20_000
IDS = [f"example {i}" for i in range(SIZE)]
FOUR = MultiClass(["a", "b", "c", "d"])
SET = MultiLabel(["a", "b", "c"])


def test_known_labels_and_what_has_none():
    known = KnownLabels({"x": "a", "y": ["b"]})
    assert known.answer(["y", "x", "z"]) == {"y": ["b"], "x": "a", "z": None}
    with pytest.raises(InputError, match="no known labels to simulate with"):
        KnownLabels.of(Points(5))


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_rate_of_mistakes_is_right_and_they_are_spread_evenly(rate):
    """Bounds of 5 standard deviations of a binomial."""
    told = NoisyAnnotator(KnownLabels(dict.fromkeys(IDS, "a")), FOUR, rate, seed=3).answer(IDS)
    counts = FOUR.encode(list(told.values())).sum(0)
    deviation = np.sqrt(SIZE * rate * (1 - rate))
    assert abs(counts[1:].sum() - SIZE * rate) < 5 * deviation
    each = SIZE * rate / 3
    assert np.abs(counts[1:] - each).max() < 5 * np.sqrt(each)


def test_rates_of_nothing_and_everything():
    known = KnownLabels(dict.fromkeys(IDS[:200], "b"))
    assert NoisyAnnotator(known, FOUR, 0.0).answer(IDS[:200]) == dict.fromkeys(IDS[:200], "b")
    assert 1 not in FOUR.encode(
        list(NoisyAnnotator(known, FOUR, 1.0).answer(IDS[:200]).values())
    ).argmax(1)
    flipped = NoisyAnnotator(KnownLabels({"x": ["a", "c"]}), SET, 1.0).answer(["x"])
    assert SET.encode([flipped["x"]]).tolist() == [[0, 1, 0]]


def test_the_same_mistake_twice_in_any_order_and_others_with_another_seed():
    known = KnownLabels(dict.fromkeys(IDS[:500], "a"))
    first = NoisyAnnotator(known, FOUR, 0.5, seed=1)
    told = first.answer(IDS[:500])
    assert first.answer(IDS[499::-1]) == told
    assert NoisyAnnotator(known, FOUR, 0.5, seed=1).answer(IDS[100:101]) == {
        IDS[100]: told[IDS[100]]
    }
    assert NoisyAnnotator(known, FOUR, 0.5, seed=2).answer(IDS[:500]) != told


def test_each_class_of_a_subset_flips_at_the_rate():
    told = NoisyAnnotator(KnownLabels({one: ["a"] for one in IDS}), SET, 0.2, seed=0).answer(IDS)
    wrong = SET.encode(list(told.values())) != SET.encode([["a"]])
    assert np.abs(wrong.mean(0) - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / SIZE)
    both = (wrong[:, 0] & wrong[:, 1]).mean()  # flips of two classes are independent
    assert abs(both - 0.04) < 5 * np.sqrt(0.04 / SIZE)


def test_what_is_not_known_is_skipped_also_by_who_errs():
    assert NoisyAnnotator(KnownLabels({"x": "a"}), FOUR, 0.9).answer(["y"]) == {"y": None}
    assert NoisyAnnotator(KnownLabels({"x": []}), SET, 0.0).answer(["x", "y"]) == {
        "x": [],
        "y": None,
    }


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_rate_outside_is_refused(rate):
    with pytest.raises(InputError, match="noise is"):
        NoisyAnnotator(KnownLabels({}), FOUR, rate)
