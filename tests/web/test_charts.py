"""The numbers beside the picture, drawn and in words."""

from __future__ import annotations

import re

import pytest
import sites  # noqa: F401  or a skip that says what is missing

from tailor import strategies
from tailor.web.charts import HEIGHT, WIDTH, accuracy_line, arm_bars, class_bars
from tailor.web.explanations import IDEAS, explain_to_annotator


def estimate(labels, accuracy, lower, upper):
    return {"labels": labels, "accuracy": accuracy, "lower": lower, "upper": upper}


def test_accuracy_rises_to_the_right_and_stays_inside():
    line = accuracy_line(
        [estimate(20, 0.4, 0.2, 0.6), estimate(40, 0.7, 0.5, 0.85), estimate(80, 1.0, 0.9, 1.0)]
    )
    (x0, y0), (x1, y1), (x2, y2) = line.points
    assert x0 < x1 < x2
    assert y0 > y1 > y2  # up is better
    assert x1 - x0 == pytest.approx(
        (x2 - x1) / 2, abs=0.2
    )  # labels, not rounds, run along the axis
    numbers = [float(n) for n in re.findall(r"[\d.]+", line.path + line.band)]
    assert all(0 <= n <= WIDTH for n in numbers[::2])
    assert all(0 <= n <= HEIGHT for n in numbers[1::2])
    assert "after 80 labels: 100%, between 90% and 100%" in line.description


def test_one_measurement_and_none():
    assert accuracy_line([]) is None
    line = accuracy_line([estimate(0, 0.5, 0.1, 0.9)])
    assert len(line.points) == 1
    assert line.band == ""


def test_a_good_model_is_shown_closer():
    """From 50% upwards, where the whole interval lies there: so that a gain can be seen."""
    line = accuracy_line([estimate(10, 0.9, 0.8, 0.95), estimate(20, 0.92, 0.85, 0.96)])
    assert [tick.text for tick in line.y_ticks] == ["50%", "75%", "100%"]


def test_bars():
    bars = class_bars(
        [{"name": "plum", "count": 0}, {"name": "pear", "count": 5}, {"name": "apple", "count": 20}]
    )
    assert [(bar.name, bar.share) for bar in bars] == [("plum", 0), ("pear", 25), ("apple", 100)]
    assert class_bars([{"name": "plum", "count": 0}])[0].share == 0
    found = {"a": 1, "b": 9, "c": 3, "d": 2, "e": 0}
    one = {"name": "x", "pulls": 15, "round_pulls": 4, "found": found}
    first, second = arm_bars([one, {"name": "y", "pulls": 3, "round_pulls": 0, "found": {}}])
    assert first.note == "b 9, c 3, d 2, others 1"
    assert (first.this_round, second.share) == (4, 20)
    assert second.note == "nothing answered yet"


@pytest.mark.parametrize("family", list(strategies.registry))
def test_every_family_says_why_in_words(family):
    assert family in IDEAS, (
        f"{family}: say in tailor/web/explanations.py why it picks something, for whoever labels it"
    )


def test_why_names_the_class_and_keeps_the_guess_to_itself():
    why = {
        "arm": "galaxy[red fox]",
        "round": 2,
        "predicted": {"cat": 0.9},
        "expected": {"red fox": 0.4, "cat": 0.6},
    }
    said = explain_to_annotator(why)
    assert "border of red fox" in said["sentences"][0]
    assert "60% is expected to be cat" in said["sentences"][1]
    assert not [text for text in said["sentences"] if "90%" in text]
    assert said["sentences"][2] == "Asked for in round 3."
    assert explain_to_annotator({"arm": "my-own-arm", "predicted": {}, "expected": {}})["sentences"]
    assert (
        explain_to_annotator({"arm": "galaxy[{0}]", "predicted": {}, "expected": {}})["sentences"][
            0
        ].count("{0}")
        == 1
    )


@pytest.mark.parametrize(
    "arm", ["confidence", "margin", "entropy", "uncertainty[cat]", "cluster-margin(size=9)"]
)
@pytest.mark.parametrize(
    ("predicted", "sure"),
    [
        ({"cat": 0.96, "dog": 0.04}, True),
        ({"cat": 0.55, "dog": 0.45}, False),
        ({"cat": 0.99, "dog": 0.5}, False),
        ({"cat": 0.97, "dog": 0.93}, True),
        ({"cat": 0.15, "dog": 0.14}, False),
    ],
)
def test_no_doubt_is_claimed_where_the_model_is_sure(arm, predicted, sure):
    """What is least certain of all that is left may be certain enough; the page shows 96% beside
    the words.
    """
    said = explain_to_annotator({"arm": arm, "predicted": predicted, "expected": {}})["sentences"][
        0
    ]
    assert ("fairly sure of all that was left" in said) == sure
    assert ("least" in said or "close" in said or "most classes" in said) == (not sure)
    assert "was left" in said  # never of all examples there are
