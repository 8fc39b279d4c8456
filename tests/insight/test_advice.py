"""What a run is advised to do, in a real run over a small pool."""

from __future__ import annotations

import numpy as np
import pytest
from coordinators import label, open_coordinator, prepare

from tailor.errors import InputError
from tailor.insight import advice as rules
from tailor.insight.advice import advise
from tailor.insight.class_needs import neediest_class
from tailor.insight.holdout_report import report_holdout
from tailor.insight.intervals import Share
from tailor.insight.learning_curve import ExpectedGain
from tailor.insight.search_progress import search_progress
from tailor.run.goals import Goals
from tailor.task import MultiClass


def gain(mean, upper):
    return ExpectedGain(labels=100, gain=mean, lower=-0.01, upper=upper, rounds=5, examples=60)


@pytest.mark.parametrize(
    ("mean", "upper", "verdict", "beginning"),
    [
        (0.03, 0.06, "go on", "Go on: the next 100 labels are expected to bring 3.0 points"),
        (0.002, 0.02, "stop", "You can stop: the next 100 labels are expected to bring 0.2 points"),
        (0.002, 0.06, "unsure", "It may be enough"),
    ],
)
def test_gains_decide(mean, upper, verdict, beginning):
    said, sentence = rules._decide_gain(gain(mean, upper))
    assert said == verdict
    assert sentence.startswith(beginning)
    assert "5 rounds measured on 60 examples" in sentence


@pytest.mark.parametrize(
    ("positives", "examples", "found", "verdict"),
    [(10, 100, 20, "go on"), (100, 1000, 1000, "unsure"), (1, 2000, 1000, "stop")],
)
def test_a_search_goes_on_while_much_is_left(positives, examples, found, verdict):
    search = search_progress(Share(positives, examples), found, pool=10_000)
    said, sentence = rules._decide_search(search)
    assert said == verdict
    assert f"{found:,} positives are found" in sentence


def test_what_is_left_of_a_class_is_estimated_from_the_holdout():
    progress = search_progress(Share(10, 100), found=20, pool=1000)
    assert (progress.left, progress.recall) == (80, pytest.approx(0.2))
    share = Share(10, 100)
    assert progress.left_lower == round(1000 * share.lower) - 20
    assert progress.left_upper == round(1000 * share.upper) - 20
    assert progress.recall_lower == pytest.approx(20 / (1000 * share.upper))
    # More were found than the hold-out lets expect: none is below zero.
    assert search_progress(Share(0, 50), found=30, pool=100).left == 0
    assert search_progress(Share(0, 50), found=0, pool=100).recall is None


def test_the_class_with_most_to_gain_is_named():
    labels = np.eye(3)[[0] * 10 + [1] * 10 + [2] * 2]
    probs = np.eye(3)[[0] * 10 + [1] * 7 + [0] * 3 + [2] * 2]
    report = report_holdout(MultiClass(3), labels, probs)
    need = neediest_class(("a", "b", "c"), np.array([50, 50, 50]), report)
    assert need.name == "b"
    assert need.reason == "it has 50 labels to learn from, and 7 of 10 in the hold-out are found"
    # As many mistakes, but b has ten times the labels: c is new.
    assert neediest_class(("a", "b", "c"), np.array([50, 500, 1]), report).name == "c"
    right = report_holdout(MultiClass(3), labels, labels)
    assert neediest_class(("a", "b", "c"), np.array([1, 1, 1]), right) is None


@pytest.fixture
def coordinator(tmp_path):
    found = open_coordinator(tmp_path / "a.db", batch=12, holdout=0.3)
    prepare(found)
    yield found
    found.close()


def test_advice_grows_with_the_run(coordinator):
    session = coordinator.session
    first = advise(session.run_state)
    assert (first.verdict, first.gain) == ("go on", None)
    assert "0 of the 20 hold-out labels" in first.sentence
    label(coordinator, 80)
    later = advise(session.run_state)
    assert later.gain is not None
    assert later.foreseen.n == rules.LAST_ANSWERS
    assert later.unmeasured == ()
    assert "points of accuracy" in later.sentence


def test_goals_end_the_run_and_outlive_the_process(coordinator, tmp_path):
    insight = coordinator.model_insight
    label(coordinator, 20)
    insight.set_goals(Goals(budget=20), "ann")
    assert coordinator.session.why_stop() == "the budget of 20 labels is spent"
    view = insight.view()
    assert view.advice.verdict == "stop"
    assert view.advice.sentence == "Stop: the budget of 20 labels is spent."
    coordinator.close()
    again = open_coordinator(tmp_path / "a.db", batch=12, holdout=0.3)
    assert again.session.run_state.goals == Goals(budget=20)
    again.model_insight.set_goals(Goals(), "ann")
    assert again.session.why_stop() is None
    again.close()


@pytest.mark.parametrize("wrong", [{"budget": 0}, {"accuracy": 1.5}, {"per_class": -1}])
def test_goals_that_cannot_be_are_refused(wrong):
    with pytest.raises(InputError):
        Goals(**wrong)


def test_the_foreseen_answers_are_those_that_were_said_before(coordinator):
    label(coordinator, 40)
    run_state = coordinator.session.run_state
    asked = [position for positions in run_state.asked_in for position in positions]
    right = []
    for position in asked:
        prediction = run_state.label_table.picks.prediction_of(position)
        label_row = run_state.label_of(position)
        if prediction is not None and label_row is not None:
            right.append(prediction.argmax() == label_row.argmax())
    last = right[-rules.LAST_ANSWERS :]
    assert advise(run_state).foreseen == Share(int(sum(last)), len(last))
