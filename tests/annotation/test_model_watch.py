"""The model is measured in the background, once a round, and nobody's labelling depends on it."""

from __future__ import annotations

import numpy as np
import pytest
from coordinators import label, open_coordinator, prepare

from tailor.annotation.model_watch import ModelWatch
from tailor.run.goals import Goals


class WithFeatures:
    """What Centroids lack: features that no label has changed."""

    has_first_features = True

    def first_features(self, positions):
        rows = self.pool.read(positions.tolist())
        return np.stack([np.asarray(row, np.float32) for row in rows])


def featured_model():
    from small import Centroids

    class Featured(WithFeatures, Centroids):
        pass

    return Featured


@pytest.fixture
def coordinator(tmp_path):
    found = open_coordinator(tmp_path / "a.db", batch=12, holdout=0.3, model=featured_model())
    prepare(found)
    yield found
    found.close()


def test_each_rounds_model_is_measured_once(coordinator, monkeypatch):
    watch = coordinator.model_watch
    measured = []
    measure = ModelWatch._measure

    def counted(self, session_round):
        measured.append(session_round.number)
        return measure(self, session_round)

    monkeypatch.setattr(ModelWatch, "_measure", counted)
    assert watch.facts is None  # a start has no model
    label(coordinator, 60)
    assert len(measured) >= 3
    assert len(set(measured)) == len(measured)
    assert watch.facts.round == measured[-1]


def test_the_facts_are_those_of_the_rounds_model(coordinator):
    label(coordinator, 50)
    facts = coordinator.model_watch.facts
    session = coordinator.session
    table = session.run_state.label_table
    assert table.picks.is_holdout(facts.holdout).sum() >= len(table.holdout_labelled) - 12
    ready = coordinator.planner._ready or session.session_round
    expected = np.asarray(ready.probs[facts.holdout]).astype(np.float16)
    np.testing.assert_array_equal(facts.holdout_probs, expected)
    assert not np.intersect1d(facts.cross_fit.positions, table.holdout_labelled).size
    assert facts.expected.sum() == pytest.approx(
        (~table.has_label(np.arange(table.pool))).sum(), abs=12
    )


def test_a_failure_disturbs_nobody(coordinator, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("no memory left")

    monkeypatch.setattr(ModelWatch, "_measure", fail)
    label(coordinator, 40)
    assert coordinator.model_watch.facts is None
    assert coordinator.planner.trouble is None
    assert "the model could not be measured" in caplog.text
    assert coordinator.model_insight.view().report.holdout is None


def test_other_classes_make_the_facts_worthless_until_the_next_round(coordinator):
    label(coordinator, 50)
    insight = coordinator.model_insight
    assert insight.view().report.holdout is not None
    coordinator.class_editor.rename("c", "see", "ann")
    assert insight.view().report.holdout is None
    assert [row.name for row in insight.view().report.classes] == ["a", "b", "see"]


def test_a_view_is_made_once_for_each_event(coordinator):
    label(coordinator, 30)
    insight = coordinator.model_insight
    first = insight.view()
    assert insight.view() is first
    insight.set_goals(Goals(per_class=3), "ann")
    assert insight.view() is not first
    assert insight.view().goals == Goals(per_class=3)


def test_a_goal_that_is_raised_lets_the_run_go_on(coordinator):
    label(coordinator, 20)
    coordinator.model_insight.set_goals(Goals(budget=20), "ann")
    prepare(coordinator)
    assert coordinator.overview()["stopped"] == "the budget of 20 labels is spent"
    coordinator.model_insight.set_goals(Goals(budget=30), "ann")
    assert len(label(coordinator, 5)) == 5
