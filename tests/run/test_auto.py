"""`auto`: what a new run is begun with, and that a run keeps what it stood for."""

from __future__ import annotations

import numpy as np
import pytest

from tailor import Learner, MultiClass, open_run
from tailor.bandits import AUTO_SELECTOR, TwoLevelThompsonSampling
from tailor.run.project import Project
from tailor.run.settings import Settings
from tailor.strategies import AUTO, expand_sets, make_arms


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, np.random.default_rng(0).normal(size=(120, 4)))
    return path


def test_a_new_run_is_begun_with_auto(points):
    with open_run(points, classes=["a", "b"], batch=10) as run:
        settings = run.session.settings
        assert settings.strategies == tuple(AUTO["multi-class"])
        assert settings.selector == AUTO_SELECTOR
        assert (settings.start, settings.cover) == ("coverage", True)
        assert run.session.model.prior_correction == "auto"
        for _ in range(3):
            asked = run.ask()
            run.tell({pick.id: "ab"[number % 2] for number, pick in enumerate(asked)})
        assert run.status()["answered"] == 30


def test_settings_hold_what_auto_stands_for():
    settings = Settings(
        "multi-label", ("a", "b"), strategies=("auto", "emal"), selector="auto", start="auto"
    )
    assert settings.strategies == (*AUTO["multi-label"], "emal")
    assert settings.selector == AUTO_SELECTOR
    assert settings.start == "coverage"


def test_a_run_keeps_what_auto_stood_for_when_it_was_begun(points, monkeypatch):
    with open_run(points, classes=["a", "b"], batch=10) as run:
        run.ask()
        folder = run.folder
    later = {"multi-class": ["random"], "multi-label": ["random"]}
    monkeypatch.setattr("tailor.run.settings.AUTO_SELECTOR", "tailor")
    monkeypatch.setattr("tailor.strategies.SETS", {"auto": later})
    assert expand_sets(["auto"], "multi-class") == ["random"]
    project = Project(folder)
    assert project.settings.strategies == ("herding", "galaxy", "margin", "badge")
    assert project.settings.selector == AUTO_SELECTOR
    with project.session().store:
        pass


def test_a_learner_knows_auto_too():
    learner = Learner(MultiClass(3), 50, strategies="auto", selector="auto", batch=5)
    assert isinstance(learner.selector, TwoLevelThompsonSampling)
    assert {arm.family for arm in learner.arms} == set(AUTO["multi-class"])


def test_a_set_and_its_members_are_listed_once():
    families = expand_sets(["auto", "narrow", "coreset"], "multi-class")
    assert families == [*AUTO["multi-class"], "confidence", "coreset"]
    assert make_arms(["auto", "coreset"], MultiClass(2))
